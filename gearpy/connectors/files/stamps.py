"""Gives records their event times, and tells the watermark of a partition that follows."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from gearpy.core.base.times import EventTime, event_time_ms
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.failure import operator_error

T = TypeVar("T")
U = TypeVar("U")


class Stamps(Protocol):
    """Gives event times to the records of one partition, in order."""

    @property
    def out_of_order_ms(self) -> int | None: ...

    @property
    def is_by_arrival(self) -> bool: ...

    @property
    def watermark_ms(self) -> int: ...

    def of(self, values: Sequence[Any]) -> list[int]: ...


class FromRecords:
    """Event times that a user's function reads from the records."""

    is_by_arrival = False

    def __init__(
        self,
        operator: str,
        function: Callable[[Any], EventTime],
        *,
        bound_ms: int,
        watermark_ms: int = MIN_MS,
    ) -> None:
        self._operator = operator
        self._function = function
        self._order = BoundedOutOfOrder(bound_ms)
        self._order.watermark_ms = watermark_ms
        self.out_of_order_ms: int | None = bound_ms

    @property
    def watermark_ms(self) -> int:
        return self._order.watermark_ms

    def of(self, values: Sequence[Any]) -> list[int]:
        times: list[Any] = each(self._operator, self._function, values)
        is_plain = set(map(type, times)) <= {int}
        if not is_plain or (times and not (min(times) > MIN_MS and max(times) < MAX_MS)):
            times = each(self._operator, event_time_ms, times, records=values)
        self._order.on_records(times)
        return times


class Fixed:
    """One event time for all records; the watermark is there from the beginning."""

    out_of_order_ms: int | None = None
    is_by_arrival = True

    def __init__(self, time_ms: int) -> None:
        self.watermark_ms = time_ms

    def of(self, values: Sequence[Any]) -> list[int]:
        return [self.watermark_ms] * len(values)


class FromClock:
    """The wall time at which records come in; never goes back, even when the clock does."""

    out_of_order_ms: int | None = None
    is_by_arrival = True

    def __init__(self, now_ms: Callable[[], int], *, watermark_ms: int = MIN_MS) -> None:
        self._now_ms = now_ms
        self.watermark_ms = watermark_ms

    def of(self, values: Sequence[Any]) -> list[int]:
        if values:
            self.watermark_ms = max(self.watermark_ms, self._now_ms())
        return [self.watermark_ms] * len(values)


def each(
    operator: str,
    function: Callable[[T], U],
    values: Iterable[T],
    *,
    records: Sequence[Any] | None = None,
) -> list[U]:
    """Return ``function(value)`` for each value; an error names the value, or its record."""
    out: list[U] = []
    append = out.append
    value: Any = None
    try:
        for value in values:
            append(function(value))
    except Exception as error:
        record = value if records is None else records[len(out)]
        raise operator_error(operator, error, record=record) from error
    return out
