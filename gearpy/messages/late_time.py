"""Event times that say more than a number: late ones, and lists in which none is.

On the path of rows late times stand in the list of times among plain ones; on that of columns
`Times` has a second column. A step that passes times on as they are passes that on, too.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from gearpy.errors import ConfigError

_FIRST: Final = 16  # Times that show, as a rule, that a list is in no order.


class LateTime(int):
    """An event time in ms that is older than an earlier promise of its partition.

    Equal to the plain number, and as good for all that counts with times.

    Attributes:
        promised_ms: the promise; greater than the time.
    """

    promised_ms: int


class OrderedTimes(list[int]):
    """A list of event times in ms in ascending order, with no late one.

    So its oldest and its newest time are known without a look at the others.
    """

    __slots__ = ()


def ordered(times: list[int]) -> list[int]:
    if len(times) > _FIRST and sorted(first := times[:_FIRST]) != first:
        return times
    # To sort what is sorted is the quickest look at all of them that Python has.
    found = OrderedTimes(times)
    found.sort()
    return found if found == times else times


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
    if type(timestamps) is OrderedTimes:
        return []
    kinds = list(map(type, timestamps))
    if LateTime not in kinds:
        return []
    return [at for at, kind in enumerate(kinds) if kind is LateTime]


def check_times(timestamps: Sequence[Any]) -> None:
    """Refuse what is no event time in ms."""
    if timestamps and type(timestamps[0]) is not int and type(timestamps[0]) is not LateTime:
        raise ConfigError(f"timestamp {timestamps[0]!r} is no int: give ms since the epoch")
