"""The results of windows and joins."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias

from gearpy.messages.type_variables import K_co, L_co, R_co, V_co
from gearpy.wire.values.records import register_record

Timing: TypeAlias = Literal["early", "on-time", "late"]


class WindowResult(NamedTuple, Generic[K_co, V_co]):
    """The result of one key in one window ``[start, end)``; times in ms since the epoch.

    ``key`` is None for a stream without keys. The window over everything has
    ``start = MIN_MS`` and ``end = MAX_MS``. The last three fields tell the results of a window
    apart that fires more than once.
    """

    key: K_co
    value: V_co
    start: int
    end: int
    firing: int = 0  #: Number of the firing of this key and window, from 0.
    timing: Timing = "on-time"  #: Whether the window had still to close, closed, or had closed.
    retracts: bool = False  #: This was put out before, and is replaced by the next result.

    def __repr__(self) -> str:
        """Show the fields; the last ones only if they are not the usual ones."""
        shown = list(zip(self._fields, self, strict=True))
        plain = (self.firing, self.timing, self.retracts) == (0, "on-time", False)
        fields = ", ".join(f"{name}={value!r}" for name, value in shown[: 4 if plain else None])
        return f"WindowResult({fields})"


register_record(WindowResult, "gearpy.WindowResult")

#: Makes a result of a tuple of all its fields, at the speed of a tuple.
result_of: Final[Callable[[Iterable[Any]], WindowResult[Any, Any]]] = partial(
    tuple.__new__, WindowResult
)


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
