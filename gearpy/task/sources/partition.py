"""One partition of a source as its task reads it: late records, the cut by event time, silence.

Gives batches with their origin and promise; after `begin_cut` only records older than the cut. The
rest is held and given again behind the cut. Calls neither clock nor network but through its reader.

Small batches are joined, since a batch costs all steps behind it the same as a large one. What is
late, and where an epoch is cut, must not depend on it. So they are joined only as long as their
records are judged as if one batch came after the other.
"""

import logging
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from gearpy.core.flow.read_size import ReadSize
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import NOWHERE, Batch, Origin, Promise
from gearpy.messages.late_time import OrderedTimes, check_times, ordered
from gearpy.messages.table import Table, Times, newest_of
from gearpy.task.api.failure import is_final
from gearpy.task.api.interfaces import SourceReader, TaskCounters
from gearpy.task.api.rejects import Rejects
from gearpy.task.api.sides import BadRecord
from gearpy.task.time.late import (
    LateRecords,
    filtered,
    flags_at,
    others,
    part_of,
    parted_at,
    picked,
    places_of,
    promised_before,
    rows_before,
)
from gearpy.wire.values.payload import decode_batch, encode_batch

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


_log = logging.getLogger(__name__)

_YEAR_MS: Final = 31_556_952_000
#: Times from 1985 to 2286 are such numbers of seconds.
_LEAST_S: Final = 500_000_000
_MOST_S: Final = 10_000_000_000
_PER_S: Final = {"s": 1, "us": 1_000_000, "ns": 1_000_000_000}


def unit_mistake(time_ms: int) -> str:
    """Return the likely mistake in the unit of an event time; empty if it may be right.

    Seconds in the place of milliseconds are in early 1970, microseconds and nanoseconds in years
    that nobody has.
    """
    for unit, per_s in _PER_S.items():
        if _LEAST_S * per_s <= time_ms < _MOST_S * per_s:
            by = "multiply by 1,000" if unit == "s" else f"divide by {per_s // 1000:,}"
            year = "1970" if unit == "s" else f"{1970 + time_ms // _YEAR_MS:,}"
            return (
                f"its first event time, {time_ms}, is of the year {year} "
                f"if it is in ms, and looks like {unit}: give time_unit={unit!r}, or {by}"
            )
    return ""


class UnitCheck:
    """Looks at the first event times of a source, and warns once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._has_told = False

    def look(self, time_ms: int) -> None:
        if not self._has_told and (mistake := unit_mistake(time_ms)):
            self._has_told = True
            _log.warning("%s: %s", self._source, mistake)


class SourcePartition:
    """Reads one partition.

    Every record is given once, in the order of the partition; by a cut those of its epoch come
    before those that are held, and both keep their order. Where the cut lies is told by the
    records alone: behind the first one with which the partition promises the time of the cut,
    nothing belongs to the epoch, whatever its time.

    Invariant: no record given is older than `promised_ms` was before, late ones excepted.

    Args:
        idle_after_ms: how long it gives nothing until it counts as idle; None: its reader tells.
        clock_ms: ends reading on behind a small batch; None: nothing is read on.
        read_size: tells which batch is small, and for how long to read on behind it. None: one that
            is less than was asked for, and a ms.
        sets_bad_aside: whether its reader is asked for bad records.
        quarantines_bad: the same, and they go into quarantine.
        units: looks at its first records.
        advances: whether it then promises that nothing older than ``idle_after_ms`` before the wall
            time will come, and so is not idle, but moves on with the clock.
    """

    def __init__(
        self,
        name: str,
        reader: SourceReader,
        *,
        source: str,
        late: LateRecords,
        counters: TaskCounters,
        origin: Origin = NOWHERE,
        idle_after_ms: int | None = None,
        advances: bool = False,
        clock_ms: Callable[[], int] | None = None,
        read_size: ReadSize | None = None,
        sets_bad_aside: bool = False,
        quarantines_bad: bool = False,
        rejects: Rejects | None = None,
        units: UnitCheck | None = None,
    ) -> None:
        self.name = name
        self.reader = reader
        self._origin = origin._replace(
            is_sorted=origin.is_alone and reader.out_of_order_ms == 0,
            is_by_arrival=reader.is_by_arrival,
        )
        self.read_records = 0  #: So many have been read; restored by the owner.
        self.first_record = 0  #: The number of the first one in this run; set by the owner.
        self._end: list[Any] = []  # The place where it has ended.
        self._source = source
        self._late = late
        self._counters = counters
        self._idle_after_ms = idle_after_ms
        self._quiet_since_ms: int | None = None  # First asked in vain since it gave.
        self._is_quiet = False
        self._advances = advances
        #: Promised since the partition was silent, apart from its reader; `MIN_MS` if not.
        self.floor_ms = MIN_MS
        self._skipped = 0  # Bad records that its reader has told of.
        self._sets_bad_aside = sets_bad_aside
        self._rejects = rejects or Rejects()
        self._quarantine = self._rejects.of_step("quarantine") if quarantines_bad else None
        self.bad: list[BadRecord] = []  #: Set aside by the last `read`, at `bad_ms` of event time.
        self.bad_ms = 0
        self._units = units
        self._cut_ms: int | None = None
        self.held_records = 0  #: Records behind the cut that were read.
        self._held: list[Batch] = []
        self._backlog: deque[Batch] = deque()  # Read, and to be given before all else.
        self._empty_ms: int | None = None  # Was asked behind what it gave, and had nothing.
        self._clock_ms = clock_ms
        self._read_size = read_size

    def read(self, max_records: int, now_ms: int) -> Batch | None:
        """Return the records to send now; None if the partition has none at present.

        The batch may be empty, when all that was read is held or has been dropped. What is in
        `bad` then belongs before the cut, as the reader is behind it from now on.
        """
        self.bad = []
        batch = self._backlog.popleft() if self._backlog else self._read(max_records, now_ms)
        if batch is None or self._cut_ms is None:
            return batch
        cut_ms = self._cut_ms
        before_ms, after_ms, bound_ms, _ = batch.promise
        until = len(batch)  # This many stand before the promise has come to the cut.
        if before_ms >= cut_ms:
            until = 0
        elif after_ms >= cut_ms and bound_ms is not None:
            until = bisect_left(promised_before(batch), cut_ms)
        newest_ms = newest_of(batch.timestamps, cut_ms - 1)
        if until == len(batch) and newest_ms < cut_ms:
            return batch
        going, held, first = _parted(batch, until, cut_ms)
        if held:
            held.promise = held.promise._replace(before_ms=promised_before(batch)[first])
            self._held.append(held)
            self.held_records += len(held)
        return going

    def read_few(self, max_records: int, now_ms: int) -> Batch | None:
        """Return the next records, never more than asked for, also of those that have waited."""
        batch = self.read(max_records, now_ms)
        if batch is None or len(batch) <= max_records:
            return batch
        rest = part_of(batch, max_records, len(batch))
        rest.promise = rest.promise._replace(before_ms=promised_before(batch)[max_records])
        self._backlog.appendleft(rest)
        return part_of(batch, 0, max_records)

    def begin_cut(self, cut_time_ms: int) -> None:
        self.end_cut()
        self._cut_ms = cut_time_ms

    def end_cut(self) -> None:
        """Give the records that were held back, then go on."""
        self._backlog.extendleft(reversed(self._held))
        self._held = []
        self.held_records = 0
        self._cut_ms = None

    def has_promised(self, time_ms: int) -> bool:
        return self.promised_ms >= time_ms or (self.reader.finished and not self._backlog)

    @property
    def promised_ms(self) -> int:
        return self._backlog[0].promise.before_ms if self._backlog else self._known_ms

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to give, so that no other partition need wait for it."""
        if self._backlog or (self._advances and self._is_quiet):
            return False
        return self.reader.idle or self._is_quiet

    @property
    def is_finished(self) -> bool:
        return self.reader.finished and not self._backlog and not self._held

    def snapshot(self) -> list[Any]:
        """Return the records that were read and not given, as plain data; empty for none."""
        kept = []
        for batch in (*self._held, *self._backlog):
            try:
                body = b"".join(encode_batch(batch.values, batch.timestamps))
            except ConfigError as error:
                raise OperatorError(
                    operator=self._source,
                    cause=f"records that wait for the end of an epoch cannot be stored: {error}",
                    is_final=is_final(error),
                ) from error
            before_ms, after_ms, _, aside = batch.promise
            places = None if aside is None else places_of(aside)
            kept.append([len(batch), body, before_ms, after_ms, places, batch.origin.offset])
        return kept

    def restore(self, kept: Iterable[Any]) -> None:
        bound_ms = self.reader.out_of_order_ms
        for count, body, before_ms, after_ms, places, offset in kept:
            batch = decode_batch(body, count)
            aside = None if places is None else flags_at(places, count)
            batch.origin = self._origin._replace(offset=offset)
            batch.promise = Promise(before_ms, after_ms, bound_ms, aside)
            self._backlog.append(batch)

    @property
    def has_given(self) -> bool:
        return self.read_records > self.first_record

    @property
    def place(self) -> Any:
        return self._end[0] if self._end else self.reader.snapshot()

    def end(self) -> Any:
        """Release it where it is, and return this place."""
        self._end = [self.reader.snapshot()]
        self.reader.close()
        return self.place

    def close(self) -> None:
        self.reader.close()

    def _read(self, max_records: int, now_ms: int) -> Batch | None:
        if self.reader.finished:
            return None
        self.bad_ms = before_ms = self._known_ms
        empty_ms, self._empty_ms = self._empty_ms, None
        batch = None if empty_ms == now_ms else self._next(max_records)
        if batch is None:
            if self._idle_after_ms is not None:
                if self._quiet_since_ms is None:
                    self._quiet_since_ms = now_ms
                self._is_quiet = now_ms - self._quiet_since_ms >= self._idle_after_ms
                if self._is_quiet and self._advances:
                    self.floor_ms = max(self.floor_ms, now_ms - self._idle_after_ms)
            return None
        if self.bad and before_ms == MIN_MS:  # Nothing is promised yet.
            self.bad_ms = int(batch.timestamps[0])
        self._quiet_since_ms, self._is_quiet = None, False
        size, count = self._read_size, len(batch.values)
        enough = max_records if size is None else size.enough
        if count >= enough or self._clock_ms is None or not _may_join(batch):
            return self._judged(batch, before_ms, self._known_ms)

        # Others that are there at once join it. The first record waits meanwhile, so that ends
        # soon. Of a large table only so much joins it as it takes: the rest need not be copied.
        first, clock_ms = batch, self._clock_ms
        most = min(max_records, enough) if type(batch.values) is Table else max_records
        reader, batches, other = self.reader, [first], None
        after_ms, now_ms = self._known_ms, clock_ms()
        until_ms = now_ms + (1 if size is None else size.read_on_ms)
        while now_ms <= until_ms and count < enough and not (reader.finished or reader.may_wait):
            # Records that follow must be judged alike; of those by arrival none is late.
            is_known = reader.out_of_order_ms is not None or reader.is_by_arrival
            if not is_known and after_ms != before_ms:
                break
            batch = self._next(most - count)
            if batch is None:
                self._empty_ms = now_ms
                break
            if not _can_join(first, batch):
                other = batch
                break
            batches.append(batch)
            after_ms, count, now_ms = self._known_ms, count + len(batch), clock_ms()
        joined = self._judged(_joined(batches), before_ms, after_ms)
        if other is not None:
            self._backlog.append(self._judged(other, after_ms, self._known_ms))
        return joined

    def _next(self, max_records: int) -> Batch | None:
        """Return the next batch of the reader, checked; None if it has no records."""
        batch = self.reader.read_batch(max_records)
        skipped = self.reader.skipped_records
        if skipped != self._skipped:
            self._counters.skipped_records += skipped - self._skipped
            self._skipped = skipped
        for _, error in self.reader.take_refused():
            # It has no time at which it could be given back.
            self._rejects.take_encoded(b"", MIN_MS, error)
        if self._sets_bad_aside:
            self.bad += self.reader.take_bad()
        elif self._quarantine is not None:
            for bad in self.reader.take_bad():
                cause = f"{bad.where}: {bad.error}"
                error = OperatorError(operator=bad.step, cause=cause, record=bad.record)
                self._quarantine.take_encoded(b"", MIN_MS if bad.time is None else bad.time, error)
        if batch is None or not batch.values:
            return None
        values, times = batch.values, batch.timestamps
        if len(values) != len(times):
            raise ConfigError(
                f"source {self._source} gave {len(values)} values but {len(times)} timestamps"
            )
        if (type(values) is Table) != (type(times) is Times):
            raise ConfigError(
                f"source {self._source} gave {type(values).__name__} values with "
                f"{type(times).__name__} timestamps: give a Table with Times, or lists"
            )
        if type(times[0]) is not int and type(times) is not Times:
            check_times(times)
        if self._units is not None:
            if not self.reader.is_by_arrival:
                self._units.look(int(times[0]))
            self._units = None
        return batch

    def _judged(self, batch: Batch, before_ms: int, after_ms: int) -> Batch:
        counters, times = self._counters, batch.timestamps
        if type(times) is not Times:
            times = ordered(times)
        counters.records_in += len(times)
        counters.newest_ms = max(counters.newest_ms, newest_of(times, MIN_MS))
        origin = self._origin.at(self.read_records)
        if after_ms == MIN_MS:  # It never promises: no one could wait for its records.
            origin = origin._replace(is_by_arrival=True)
        self.read_records += len(times)
        promise = Promise(before_ms, after_ms, self.reader.out_of_order_ms)
        judged = Batch(batch.values, times, False, origin, promise)
        # Nothing is late, as a rule.
        if type(times) is OrderedTimes and times[0] >= before_ms:
            return judged
        return self._late.judge(judged)

    @property
    def _known_ms(self) -> int:
        return max(self.reader.watermark_ms, self.floor_ms)


class LimitedPartition(SourcePartition):
    """Leaves out records that are too far ahead of the wall clock, so that they promise nothing.

    It promises by itself, as its reader does by all records.

    Args:
        max_ahead_ms: how far a record may be ahead.
    """

    def __init__(
        self, name: str, reader: SourceReader, *, max_ahead_ms: int, **others: Any
    ) -> None:
        super().__init__(name, reader, **others)
        self._max_ahead_ms = max_ahead_ms
        self._now_ms = 0
        self.ahead: list[Any] = []  #: Values that the last `read` left out, if they are set aside.

    def read(self, max_records: int, now_ms: int) -> Batch | None:
        """Read what is not ahead of this time, as the other does."""
        self.ahead, self._now_ms = [], now_ms
        return super().read(max_records, now_ms)

    def _next(self, max_records: int) -> Batch | None:
        batch = super()._next(max_records)
        if batch is None:
            return None
        limit_ms, bound_ms = self._now_ms + self._max_ahead_ms, self.reader.out_of_order_ms
        if bound_ms is None:
            raise ConfigError(
                f"source {self._source} has the times of arrival, or promises event time by "
                "itself: leave out max_ahead="
            )
        if newest_of(batch.timestamps, MIN_MS) > limit_ms:
            batch, ahead = parted_at(batch, limit_ms)
            self._counters.ahead_records += len(ahead)
            self._counters.records_in += len(ahead)
            if self._late.sets_aside:
                self.ahead.append(ahead.values)
            if not batch.values:
                return None
        self.floor_ms = max(self.floor_ms, newest_of(batch.timestamps, MIN_MS) - bound_ms)
        return batch

    @property
    def _known_ms(self) -> int:
        return self.floor_ms


def _parted(batch: Batch, until: int, cut_ms: int) -> tuple[Batch, Batch, int]:
    """Return the records before a cut, the rest, and the place where the rest begins."""
    times = batch.timestamps
    if type(times) is Times:
        going = rows_before(times, cut_ms, until=until)
        staying = others(going)
        first = staying.index(True).as_py()
        return filtered(batch, going), filtered(batch, staying), first
    gone = [at for at in range(until) if times[at] < cut_ms]
    there = set(gone)
    held = [at for at in range(len(times)) if at not in there]
    return picked(batch, gone), picked(batch, held), held[0] if held else 0


def _may_join(batch: Batch) -> bool:
    values, times = batch.values, batch.timestamps
    if type(values) is not Table:
        return type(values) is list
    return type(times) is Times and times.promised is None and _is_plain(values.batch.schema)


def _can_join(first: Batch, other: Batch) -> bool:
    mine, others = first.values, other.values
    if type(mine) is not Table or type(others) is not Table:
        return type(mine) is type(others)
    return mine.batch.schema.equals(others.batch.schema, check_metadata=True) and _may_join(other)


@lru_cache(maxsize=64)
def _is_plain(schema: "pa.Schema") -> bool:
    return all(_has_no_dictionary(field.type) for field in schema)


def _has_no_dictionary(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    if pa.types.is_dictionary(kind):
        return False
    return all(_has_no_dictionary(kind.field(at).type) for at in range(kind.num_fields))


def _joined(batches: Sequence[Batch]) -> Batch:
    first = batches[0]
    if len(batches) == 1:
        return first
    if type(first.values) is Table:
        import pyarrow as pa  # noqa: PLC0415 - the tables have loaded it

        tables = [batch.values.batch for batch in batches if type(batch.values) is Table]
        arrays = [batch.timestamps.array for batch in batches if type(batch.timestamps) is Times]
        return Batch(Table(pa.concat_batches(tables)), Times(pa.concat_arrays(arrays)))
    values: list[Any] = []
    times: list[int] = []
    for batch in batches:
        values += batch.values
        times += batch.timestamps
    return Batch(values, times)
