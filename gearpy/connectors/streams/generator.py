"""Records made by a function, at a given rate."""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final, overload

from gearpy.clocks import wall_ms
from gearpy.columns.row_schema import RowSchema, SchemaLike, row_schema_of
from gearpy.connectors.files.stamps import (
    CountPlace,
    StampedReader,
    StampedSource,
    Stamps,
    in_zone,
    stamps_of,
)
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Message
from gearpy.messages.table import Table, Times
from gearpy.messages.type_variables import Row, T
from gearpy.task.api.failure import operator_error
from gearpy.task.api.interfaces import Batch, Source
from gearpy.task.sources.share import numbered_partitions

#: What a program has given is passed on after so long, and looked at after so many records.
_PATIENCE_MS: Final = 5
_PORTION_MAX: Final = 32
#: With a rate no more is asked for at a time than comes in so long, or than such a portion.
_PORTION_MS: Final = 10
#: A program that takes so long for a portion waits for something, as a rule.
_WAITS_MS: Final = 50
#: Tables of a paced source are so far apart, as a small one costs as much as a large one.
_TABLE_MS: Final = 10
_ONE_BY_ONE: Final = 256
_MAKE: Final = "generate(make)"
_MS_PER_S: Final = 1000


@overload
def generate(
    make: Callable[..., Iterable[T]],
    *,
    rate: float | None = None,
    timestamp: Callable[[T], int | datetime] | None = None,
    zone: ZoneName | None = None,
    limit: int | None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
    schema: None = None,
) -> Source[T]: ...


@overload
def generate(
    make: Callable[..., Iterable[T]],
    *,
    rate: float | None = None,
    timestamp: Callable[[T], int | datetime] | None = None,
    zone: ZoneName | None = None,
    limit: int | None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
    schema: SchemaLike[Row],
) -> Source[Row]: ...


def generate(
    make: Callable[..., Iterable[Any]],
    *,
    rate: float | None = None,
    timestamp: Callable[[Any], int | datetime] | None = None,
    zone: ZoneName | None = None,
    limit: int | None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
    schema: object = None,
) -> Source[Any]:
    """Read the records of a function's iterator; ends when it ends, or at the limit.

    To resume after a failure the function is called again and what was read is skipped: it has
    to give the same records every time.

    Args:
        make: returns an iterable. If it has a parameter it is called with the number of the
            partition, else every partition has the same records.
        rate: records per second of all partitions together; without it as fast as they are
            taken. Time that was lost is made up for, but no more than a second of it.
        timestamp: gives the event time of a record, ms since the epoch or a datetime.
            Without it records have the time at which they were made.
        zone: name of the time zone of datetimes of ``timestamp`` that tell none, such as
            "Europe/Berlin".
        limit: number of records of all partitions together.
        partitions: number of iterators that can be read in parallel.
        out_of_order: how far back in time a later record of the same partition may be.
        schema: of the records, which then come as tables: a `pyarrow.Schema`, a dataclass,
            NamedTuple or TypedDict class, or a dict of names and types. `generate_tables` is
            faster.

    Example:
        >>> import gearpy as gp
        >>> from itertools import count
        >>> app, results = gp.StreamApp("counting"), []
        >>> app.read(gp.generate(lambda: count(1), limit=3)).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [1, 2, 3]
    """
    return GeneratorSource(
        make,
        rate=rate,
        timestamp=in_zone("generate", timestamp, zone),
        limit=limit,
        parts=partitions,
        bound_ms=duration_ms(out_of_order),
        schema=None if schema is None else row_schema_of(schema),
    )


class Pace:
    """Says how many records may go now. Gives the first at once.

    Those of a time that was lost go in portions: the program may wait in the midst of one.

    Invariant: in any ``t`` ms no more than ``per_second * (t / 1000 + 1) + 2`` records go.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._burst = max(1, math.floor(per_second))
        self._portion = max(_PORTION_MAX, math.ceil(per_second * _PORTION_MS / _MS_PER_S))
        self._since_ms: int | None = None
        self._last_ms = 0
        self._given = 0  # Since `_since_ms`.

    def take(self, now_ms: int, at_most: int) -> int:
        """Return how many records go now; they count as gone."""
        if self._since_ms is None:
            self._since_ms, self._given = now_ms, 0
        elif now_ms < self._last_ms:  # The clock was set back.
            self._since_ms, self._given = now_ms, 1
        self._last_ms = now_ms
        due = math.floor((now_ms - self._since_ms) * self._per_second / _MS_PER_S) + 1 - self._given
        if due > self._burst:
            self._since_ms, self._given, due = now_ms, 1 - self._burst, self._burst
        going = max(0, min(due, at_most, self._portion))
        self._given += going
        return going

    def pause_ms(self, *, in_tables: bool = False) -> int:
        """Return how long after the last `take` the next record goes, or a table of some."""
        if self._since_ms is None:
            return 0
        next_ms = self._since_ms + math.ceil(self._given * _MS_PER_S / self._per_second)
        pause_ms = max(0, next_ms - self._last_ms)
        return max(pause_ms, _TABLE_MS) if pause_ms and in_tables else pause_ms

    def give_back(self, records: int) -> None:
        self._given -= records


class GeneratorSource(StampedSource[Any]):
    """Iterators made by a function; see `generate`."""

    replayable = calls_program = True
    schema: RowSchema | None = None

    def __init__(
        self,
        make: Callable[..., Iterable[Any]],
        *,
        rate: float | None,
        timestamp: Callable[[Any], int | datetime] | None,
        limit: int | None,
        parts: int,
        bound_ms: int,
        schema: RowSchema | None = None,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        check_generator("generate", make, rate=rate, limit=limit, parts=parts)
        self.bounded = limit is not None
        self._make = make
        self._takes_part = takes_part(make)
        self._rate = rate
        self._timestamp = timestamp
        self._limit = limit
        self._parts = parts
        self._bound_ms = bound_ms
        self.is_by_arrival = timestamp is None
        self.schema = schema
        self._now_ms = now_ms

    @property
    def description(self) -> str:
        return f"generate({getattr(self._make, '__name__', type(self._make).__name__)})"

    def partitions(self) -> Sequence[str]:
        return numbered_partitions(self._parts)

    def open(self, partition: str, resume: CountPlace | None) -> "GeneratorReader":
        part = int(partition)
        place = resume or {"position": 0, "watermark_ms": MIN_MS}
        try:
            iterator = iter(self._make(part) if self._takes_part else self._make())
        except Exception as error:
            raise operator_error(_MAKE, error) from error
        stamps = stamps_of(
            "generate(timestamp)",
            self._timestamp,
            bound_ms=self._bound_ms,
            now_ms=self._now_ms,
            watermark_ms=place["watermark_ms"],
        )
        return GeneratorReader(
            iterator,
            stamps,
            position=place["position"],
            limit=None if self._limit is None else share_of(self._limit, part, self._parts),
            pace=None if self._rate is None else Pace(self._rate / self._parts),
            now_ms=self._now_ms,
            schema=self.schema,
        )


class GeneratorReader(StampedReader):
    may_wait = True
    operator: str = _MAKE  #: The user's function, for errors.

    def __init__(
        self,
        iterator: Iterator[Any],
        stamps: Stamps,
        *,
        position: int,
        limit: int | None,
        pace: Pace | None,
        now_ms: Callable[[], int],
        schema: RowSchema | None = None,
    ) -> None:
        self._schema = schema
        self._iterator: Iterator[Any] = islice(iterator, position, None)
        super().__init__(stamps)
        self._position = position
        self._limit = limit
        self._pace = pace
        self._now_ms = now_ms
        self._one_by_one = 0  # So many records come one by one.

    def read_batch(self, max_records: int) -> Batch | None:
        wanted = self._left(1 if self._one_by_one else max_records)
        if self._pace is not None:
            wanted = self._pace.take(self._now_ms(), wanted)
        try:
            values, has_ended = self._take(wanted)
        except Exception as error:
            raise operator_error(self.operator, error) from error
        if Message in set(map(type, values)):
            raise OperatorError(
                operator=self.operator,
                cause="it gives a gp.Message, which would be a value within a record: give values, "
                "and their event times with timestamp=",
                is_final=True,
            )
        self._position += len(values)
        if self._pace is not None:
            self._pace.give_back(wanted - len(values))
            self.pause_ms = self._pace.pause_ms(in_tables=self._schema is not None)
        self.finished = has_ended or self._left(1) == 0
        if not values:
            return None
        values, times = self._stamps.stamped(values)
        if self._schema is None:
            return Batch(values, times)
        return Batch(Table(self._schema.table(values)), Times.of(times))

    def _take(self, wanted: int) -> tuple[list[Any], bool]:
        """Return the next values, fewer if they are slow to come, and whether it was all."""
        values: list[Any] = []
        portion, now_ms = 1, self._now_ms()
        until_ms = now_ms + _PATIENCE_MS
        while len(values) < wanted:
            asked = min(portion, wanted - len(values))
            before = len(values)
            values += islice(self._iterator, asked)
            if len(values) - before < asked:
                return values, True
            before_ms, now_ms = now_ms, self._now_ms()
            if self._pace is None:
                took_ms = now_ms - before_ms
                self._one_by_one = one_by_one(self._one_by_one, took_ms, _ONE_BY_ONE)
            if now_ms >= until_ms:
                break
            portion = min(2 * portion, _PORTION_MAX) if now_ms == before_ms else 1
        return values, False

    def snapshot(self) -> CountPlace:
        return {"position": self._position, "watermark_ms": self.watermark_ms}

    @property
    def progress(self) -> tuple[int, int]:
        return self._position, self._limit or 0

    def close(self) -> None:
        self._iterator = islice((), 0)

    def _left(self, wanted: int) -> int:
        return wanted if self._limit is None else max(0, min(wanted, self._limit - self._position))


def one_by_one(left: int, took_ms: int, many: int) -> int:
    """Return how many portions of a program are passed on one by one, behind one that took so long.

    It may wait again: else the first ones would wait for the next.
    """
    return many if took_ms >= _WAITS_MS else max(0, left - 1)


def share_of(limit: int, part: int, parts: int) -> int:
    return limit // parts + (part < limit % parts)


def takes_part(make: Callable[..., Any]) -> bool:
    """Whether there is a parameter without a default, which is for the partition."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):  # Some builtins do not tell.
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.kind in positional and p.default is p.empty for p in parameters)


def check_generator(
    name: str, make: Any, *, rate: float | None, limit: int | None, parts: int
) -> None:
    mistakes = []
    if not callable(make):
        mistakes.append(f"{name}: {make!r:.100} is no function: use collection() for values")
    if rate is not None and not 0 < rate < math.inf:
        mistakes.append(f"{name}: rate is {rate}, must be more than 0 records per second")
    if limit is not None and limit < 0:
        mistakes.append(f"{name}: limit is {limit}, must not be negative")
    if parts < 1:
        mistakes.append(f"{name}: partitions is {parts}, must be 1 or more")
    if mistakes:
        raise ConfigError(*mistakes)
