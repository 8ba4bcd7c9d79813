"""The results of joins."""

from typing import Generic, NamedTuple

from gearpy.messages.type_variables import K_co, L_co, R_co
from gearpy.wire.values.records import register_record


class JoinResult(NamedTuple, Generic[K_co, L_co, R_co]):
    """A record of each side, of one key; None where one is missing. Times in ms since the epoch.

    ``start`` and ``end`` are those of the window. Where there is none, they are the older one's
    event time, and the newer one's and one ms; for `join_latest` the left one's counts alone.
    """

    key: K_co
    left: L_co
    right: R_co
    start: int
    end: int


class CoGroup(NamedTuple, Generic[K_co, L_co, R_co]):
    """All records of a key in a window ``[start, end)``, in the order in which they came.

    Those of a session that several ones have become come one part after the other.
    """

    key: K_co
    left: list[L_co]
    right: list[R_co]
    start: int
    end: int


register_record(JoinResult, "gearpy.JoinResult")
register_record(CoGroup, "gearpy.CoGroup")
