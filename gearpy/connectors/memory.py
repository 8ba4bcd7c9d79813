"""A collection as a source and a list as a sink."""

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, overload

from gearpy.columns.row_schema import RowSchema, SchemaLike, row_schema_of
from gearpy.connectors.files.stamps import (
    CountPlace,
    FromRecords,
    StampedReader,
    StampedSource,
    Stamps,
    in_zone,
)
from gearpy.core.base.copies import own_each
from gearpy.core.base.times import Duration, duration_ms, event_time_ms
from gearpy.core.base.zones import ZoneName
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.table import Table, Times
from gearpy.messages.type_variables import Row, T, T_contra
from gearpy.task.api.interfaces import Sink, SinkWriter, Source
from gearpy.task.sources.share import numbered_partitions


@overload
def collection(
    values: Iterable[Message[T]],
    *,
    timestamp: None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
    schema: None = None,
) -> Source[T]: ...


@overload
def collection(
    values: Iterable[T | Message[T]],
    *,
    timestamp: Callable[[T], int | datetime] | None = None,
    zone: ZoneName | None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
    schema: None = None,
) -> Source[T]: ...


@overload
def collection(
    values: Iterable[T | Message[T]],
    *,
    timestamp: Callable[[T], int | datetime] | None = None,
    zone: ZoneName | None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
    schema: SchemaLike[Row],
) -> Source[Row]: ...


def collection(
    values: Iterable[Any],
    *,
    timestamp: Callable[[Any], int | datetime] | None = None,
    zone: ZoneName | None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
    schema: object = None,
) -> Source[Any]:
    """Read the values of a collection, which is copied, then end.

    With several partitions, partition ``k`` of ``n`` has the values at ``k``, ``k + n``, ....

    Args:
        values: the records; a `Message` is a value with its event time.
        timestamp: gives the event time of a value, ms since the epoch or a datetime.
            Without it values that are no `Message` have the time 0, the Unix epoch.
        zone: name of the time zone of datetimes of ``timestamp`` that tell none, such as
            "Europe/Berlin".
        partitions: number of parts that can be read in parallel.
        out_of_order: how far back in time a later value of the same partition may be.
        schema: of the values, which then come as tables: a `pyarrow.Schema`, a dataclass,
            NamedTuple or TypedDict class, or a dict of names and types.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("numbers"), []
        >>> app.read(gp.collection([1, 2, 3])).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [1, 2, 3]
    """
    return CollectionSource(
        values,
        timestamp=in_zone("collection", timestamp, zone),
        parts=partitions,
        bound_ms=duration_ms(out_of_order),
        schema=None if schema is None else row_schema_of(schema),
    )


class Growing(Protocol[T_contra]):
    """A list as checkers see it: one of wider values takes these records, too."""

    def extend(self, values: Iterable[T_contra], /) -> None:
        """Append values for the source to read."""


@overload
def to_list(results: Growing[T], *, messages: Literal[False] = False) -> Sink[T]: ...


@overload
def to_list(results: Growing[Message[T]], *, messages: Literal[True]) -> Sink[T]: ...


@overload
def to_list(results: list[Any], *, messages: bool) -> Sink: ...


def to_list(results: Any, *, messages: bool = False) -> Sink:
    """Append the records to a list of this process.

    Works in an application that runs embedded, also on several processes: the records come to this
    one. On a cluster tasks append to lists of their own. After a failure records come again that
    are in the list already.

    Args:
        results: the list.
        messages: append each value with its event time, as a `Message`.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("times"), []
        >>> app.read(gp.collection([gp.Message("a", 5)])).write(gp.to_list(results, messages=True))
        >>> _ = gp.run(app)
        >>> results
        [Message(value='a', timestamp=5)]
    """
    return MemorySink(results, messages=messages)


class CollectionSource(StampedSource[Any]):
    """A collection; see `collection`. Gearpump: `CollectionDataSource`."""

    replayable = True
    schema: RowSchema | None = None
    bounded = True

    def __init__(
        self,
        values: Iterable[Any],
        *,
        timestamp: Callable[[Any], int | datetime] | None,
        parts: int,
        bound_ms: int,
        schema: RowSchema | None = None,
    ) -> None:
        if parts < 1:
            raise ConfigError(f"collection: partitions is {parts}, must be 1 or more")
        self._values: list[Any] = []
        self._times: list[int] = []
        for value in values:
            if not isinstance(value, Message):
                self._values.append(value)
                self._times.append(0)
                continue
            if timestamp is not None:
                raise ConfigError(
                    f"collection: {value!r:.100} has an event time: leave out timestamp="
                )
            self._values.append(value.value)
            self._times.append(event_time_ms(value.timestamp))
        self._timestamp = timestamp
        self._parts = parts
        self._bound_ms = bound_ms
        self.schema = schema

    @property
    def description(self) -> str:
        return f"collection({len(self._values)} values)"

    def partitions(self) -> Sequence[str]:
        return numbered_partitions(self._parts)

    def open(self, partition: str, resume: CountPlace | None) -> "CollectionReader":
        share = slice(int(partition), None, self._parts)
        place = resume or {"position": 0, "watermark_ms": MIN_MS}
        watermark_ms = place["watermark_ms"]
        stamps: Stamps
        if self._timestamp is None:
            times = self._times[share][place["position"] :]
            stamps = _Known(times, bound_ms=self._bound_ms, watermark_ms=watermark_ms)
        else:
            stamps = FromRecords(
                "collection(timestamp)",
                self._timestamp,
                bound_ms=self._bound_ms,
                watermark_ms=watermark_ms,
            )
        return CollectionReader(self._values[share], stamps, place["position"], self.schema)


class CollectionReader(StampedReader):
    """Reads one part of a collection from a position on."""

    def __init__(
        self, values: list[Any], stamps: Stamps, position: int, schema: RowSchema | None = None
    ) -> None:
        super().__init__(stamps)
        self._values = values
        self._schema = schema
        self._position = position

    def read_batch(self, max_records: int) -> Batch | None:
        values = self._values[self._position : self._position + max_records]
        self._position += len(values)
        self.finished = self._position >= len(self._values)
        if not values:
            return None
        values, times = self._stamps.stamped(values)
        if self._schema is None:
            # The program has them, and they are read again after a failure.
            return Batch(own_each(values), times)
        return Batch(Table(self._schema.table(values)), Times.of(times))

    def snapshot(self) -> CountPlace:
        return {"position": self._position, "watermark_ms": self.watermark_ms}

    @property
    def progress(self) -> tuple[int, int]:
        return self._position, len(self._values)


class _Known(Stamps):
    """Event times that stand in a list, as long as the values."""

    is_by_arrival = False

    def __init__(self, times: list[int], *, bound_ms: int, watermark_ms: int) -> None:
        super().__init__(bound_ms)
        self._times = times
        self._next = 0
        self.watermark_ms = watermark_ms
        self.out_of_order_ms = bound_ms

    def of(self, values: Sequence[Any]) -> list[int]:
        times = self._times[self._next : self._next + len(values)]
        self._next += len(values)
        self.on_records(times)
        return times


class MemorySink(Sink):
    """A list; see `to_list`."""

    of_program = True

    def __init__(self, results: list[Any], *, messages: bool) -> None:
        if not isinstance(results, list):
            raise ConfigError(f"to_list() needs a list to append to, got {results!r:.100}")
        self._results = results
        self._messages = messages
        self._lock = threading.Lock()

    @property
    def description(self) -> str:
        return "to_list"

    def open(self, task_index: int, parallelism: int) -> "MemoryWriter":
        return MemoryWriter(self._results, self._lock, messages=self._messages)


class MemoryWriter(SinkWriter):
    """Appends to a list that other tasks and its program append to: nothing is taken back."""

    def __init__(self, results: list[Any], lock: threading.Lock, *, messages: bool) -> None:
        self._results = results
        self._lock = lock
        self._messages = messages

    def write_batch(self, batch: Batch) -> None:
        values = list(batch.messages()) if self._messages else batch.values
        with self._lock:
            self._results.extend(values)
