"""Gives records their event times, and tells the watermark of a partition that follows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypedDict, TypeVar

from gearpy.core.base.times import EventTime, event_time_ms
from gearpy.core.base.zones import ZoneName, zone_of
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.type_variables import T_co
from gearpy.task.api.failure import operator_error
from gearpy.task.api.interfaces import Source, SourceReader
from gearpy.task.api.sides import BadRecord, SetAside

T = TypeVar("T")
U = TypeVar("U")


class Stamps(BoundedOutOfOrder, ABC):
    """Gives event times to the records of one partition, in order."""

    is_by_arrival = True
    out_of_order_ms: int | None = None

    #: The records of the last call of `stamped` that have no event time, and why.
    refused: Sequence[tuple[Any, OperatorError]] = ()

    @abstractmethod
    def of(self, values: Sequence[Any]) -> list[int]: ...

    def stamped(self, values: list[Any]) -> tuple[list[Any], list[int]]:
        """Return the records that have an event time, and these."""
        return values, self.of(values)


class FromRecords(Stamps):
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
        super().__init__(bound_ms)
        self._operator = operator
        self._function = function
        self.watermark_ms = watermark_ms
        self.out_of_order_ms = bound_ms

    def of(self, values: Sequence[Any]) -> list[int]:
        times: list[Any] = each(self._operator, self._function, values)
        is_plain = set(map(type, times)) <= {int}
        if not is_plain or (times and not (min(times) > MIN_MS and max(times) < MAX_MS)):
            times = each(self._operator, event_time_ms, times, records=values)
        self.on_records(times)
        return times

    def stamped(self, values: list[Any]) -> tuple[list[Any], list[int]]:
        kept, times, self.refused = that_pass(self.of, values)
        return kept, times


class Fixed(Stamps):
    """One event time for all records; the watermark is there from the beginning."""

    def __init__(self, time_ms: int) -> None:
        super().__init__()
        self.watermark_ms = time_ms

    def of(self, values: Sequence[Any]) -> list[int]:
        return [self.watermark_ms] * len(values)


class FromClock(Stamps):
    """The wall time at which records come in; never goes back, even when the clock does."""

    def __init__(self, now_ms: Callable[[], int], *, watermark_ms: int = MIN_MS) -> None:
        super().__init__()
        self._now_ms = now_ms
        self.watermark_ms = watermark_ms

    def of(self, values: Sequence[Any]) -> list[int]:
        if values:
            self.watermark_ms = max(self.watermark_ms, self._now_ms())
        return [self.watermark_ms] * len(values)


class InZone:
    """A user's function for event times, whose datetimes without a zone are of this one."""

    def __init__(self, function: Callable[[Any], EventTime], zone: ZoneName) -> None:
        self._function = function
        self._zone = zone_of(zone)

    def __call__(self, record: Any) -> int:
        time: Any = self._function(record)
        return time if type(time) is int else event_time_ms(time, self._zone)

    @property
    def note(self) -> str:
        return f"times that tell no zone are of {self._zone.name}"


def in_zone(
    operator: str, function: Callable[[Any], EventTime] | None, zone: ZoneName | None
) -> Callable[[Any], EventTime] | None:
    """Return the function of `timestamp=`, as `zone=` has it.

    Raises:
        ConfigError: there is no such zone, or nothing that is of it.
    """
    if zone is None:
        return function
    if function is None:
        raise ConfigError(
            f"{operator}: zone= is of the times that timestamp= gives: give that, too"
        )
    try:
        return InZone(function, zone)
    except ConfigError as error:
        raise ConfigError(f"{operator}: {error}") from None


class CountPlace(TypedDict):
    """Snapshot of a reader: how many records it has read, and the watermark so far."""

    position: int
    watermark_ms: int


class StampedSource(Source[T_co]):
    """A source whose records have their event times from a user's function, or none."""

    _timestamp: Callable[[Any], EventTime] | None

    @property
    def note(self) -> str:
        return self._timestamp.note if isinstance(self._timestamp, InZone) else ""


def stamps_of(
    operator: str,
    function: Callable[[Any], EventTime] | None,
    *,
    bound_ms: int,
    now_ms: Callable[[], int],
    watermark_ms: int = MIN_MS,
) -> Stamps:
    """Return event times by a user's function, or without one those of the clock."""
    if function is None:
        return FromClock(now_ms, watermark_ms=watermark_ms)
    return FromRecords(operator, function, bound_ms=bound_ms, watermark_ms=watermark_ms)


class OrderedReader(SourceReader[T_co]):
    """A reader that has its watermark from the order of its records, and sets bad ones aside."""

    _order: BoundedOutOfOrder
    _aside: SetAside | None = None

    @property
    def watermark_ms(self) -> int:
        return self._order.watermark_ms

    def take_bad(self) -> Sequence[BadRecord]:
        return () if self._aside is None else self._aside.take()


class StampedReader(OrderedReader[Any]):
    """A reader whose watermark is that of the event times which it gives."""

    def __init__(self, stamps: Stamps) -> None:
        self._order = self._stamps = stamps
        self.out_of_order_ms = stamps.out_of_order_ms
        self.is_by_arrival = stamps.is_by_arrival

    def take_refused(self) -> Sequence[tuple[Any, OperatorError]]:
        refused = self._stamps.refused
        if refused:
            self._stamps.refused = ()
        return refused


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


def that_pass(
    work: Callable[[Sequence[T]], list[U]], values: list[T]
) -> tuple[list[T], list[U], Sequence[tuple[T, OperatorError]]]:
    """Return the values that work can be done on, its results, and the others with their errors.

    Args:
        work: gives a result for each value; see `each`.
    """
    try:
        return values, work(values), ()
    except OperatorError:
        passed, results, refused = list[T](), list[U](), list[tuple[T, OperatorError]]()
        for value in values:
            try:
                results += work([value])
            except OperatorError as error:
                refused.append((value, error))
            else:
                passed.append(value)
        return passed, results, refused
