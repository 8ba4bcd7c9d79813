"""Event times of late records, which know what had been promised before them.

On the path of rows they stand in the list of times among plain ones; on that of columns `Times` has
a second column. What passes times on as they are passes that on, too.
"""

from collections.abc import Iterable

__all__ = ["LateTime", "late_places", "late_time", "promise_of"]


class LateTime(int):
    """An event time in ms that is older than what its partition had promised before.

    Equal to the plain number, and as good for all that counts with times.

    Attributes:
        promised_ms: the promise; greater than the time.
    """

    promised_ms: int


def late_time(time_ms: int, promised_ms: int) -> int:
    """Return a time as that of a record before which this was promised; plain if it is not late."""
    if time_ms >= promised_ms:
        return int(time_ms)
    late = LateTime(time_ms)
    late.promised_ms = int(promised_ms)
    return late


def promise_of(time_ms: int) -> int:
    """Return the promise before a late record; of any other record its time, which is as good.

    With it `late_time` makes the time again, where a time is stored as a plain number.
    """
    return time_ms.promised_ms if type(time_ms) is LateTime else int(time_ms)


def late_places(timestamps: Iterable[int]) -> list[int]:
    """Return the places of the times that are late, in a list; most lists have none."""
    kinds = list(map(type, timestamps))
    if LateTime not in kinds:
        return []
    return [at for at, kind in enumerate(kinds) if kind is LateTime]
