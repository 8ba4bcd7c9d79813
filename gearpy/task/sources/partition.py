"""One partition of a source as its task reads it: late records, the cut by event time, silence.

Gives portions of records; after `begin_cut` only records older than the cut. The rest is held and
given again behind the cut. Calls neither clock nor network but through its reader.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import NOWHERE, Batch, Origin
from gearpy.messages.late_time import ordered
from gearpy.messages.table import Table, Times, newest_of
from gearpy.task.api.failure import is_final
from gearpy.task.api.interfaces import SourceReader, TaskCounters
from gearpy.task.api.sides import BadRecord
from gearpy.task.sources.gathering import BatchJoiner
from gearpy.task.time.late import LateRecords, Portion, flags_at, others, places_of, rows_before
from gearpy.wire.values.payload import decode_batch, encode_batch


class SourcePartition:
    """Reads one partition.

    Every record is given once, in the order of the partition; by a cut those of its epoch come
    before those that are held, and both keep their order. Where the cut lies is told by the
    records alone: behind the first one with which the partition promises the time of the cut,
    nothing belongs to the epoch, whatever its time.

    Invariant: no record given is older than `promised_ms` was before, late ones excepted.

    Args:
        idle_after_ms: how long it gives nothing until it counts as idle; None: its reader tells.
        clock_ms: ends reading on behind a small batch, see `BatchJoiner`; None: there is none.
        sets_bad_aside: whether its reader is asked for bad records.
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
        sets_bad_aside: bool = False,
    ) -> None:
        self.name = name
        self.reader = reader
        self._origin = origin._replace(
            is_sorted=origin.is_alone and reader.out_of_order_ms == 0,
            is_by_arrival=reader.is_by_arrival,
        )
        self.read_records = 0  #: So many have been read; restored by the owner.
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
        self.bad: list[BadRecord] = []  #: Set aside by the last `read`, at `bad_ms` of event time.
        self.bad_ms = 0
        self._cut_ms: int | None = None
        self.held_records = 0  #: Records behind the cut that were read.
        self._held: list[Portion] = []
        self._backlog: deque[Portion] = deque()  # Read, and to be given before all else.
        self._empty_ms: int | None = None  # Was asked behind what it gave, and had nothing.
        self._joiner = clock_ms and BatchJoiner(
            reader, self._next, promised_ms=lambda: self._known_ms, clock_ms=clock_ms
        )

    def read(self, max_records: int, now_ms: int) -> Portion | None:
        """Return the records to send now; None if the partition has none at present.

        A portion may be empty, when all that was read is held or has been dropped. What is in
        `bad` then belongs before the cut, as the reader is behind it from now on.
        """
        self.bad = []
        portion = self._backlog.popleft() if self._backlog else self._read(max_records, now_ms)
        if portion is None or self._cut_ms is None:
            return portion
        return self._split(portion, self._cut_ms)

    def read_few(self, max_records: int, now_ms: int) -> Portion | None:
        """Return the next records, never more than asked for, also of those that have waited."""
        portion = self.read(max_records, now_ms)
        if portion is None or len(portion) <= max_records:
            return portion
        before_ms = portion.promised()[max_records]
        self._backlog.appendleft(replace(portion.part(max_records), before_ms=before_ms))
        return portion.part(0, max_records)

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
        return self._backlog[0].before_ms if self._backlog else self._known_ms

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
        """Return the records that were read and not given, as plain data; empty for none.

        Raises:
            OperatorError: a record is none.
        """
        return [self._encoded(portion) for portion in (*self._held, *self._backlog)]

    def restore(self, kept: Iterable[Any]) -> None:
        """Go on from the return value of `snapshot`; `floor_ms` is set beside it."""
        bound_ms = self.reader.out_of_order_ms
        for count, body, before_ms, after_ms, places, offset in kept:
            batch = decode_batch(body, count)
            self._late.has_marked |= batch.has_late
            self._backlog.append(
                Portion(
                    batch.values,
                    batch.timestamps,
                    before_ms,
                    after_ms,
                    bound_ms,
                    None if places is None else flags_at(places, count),
                    self._origin._replace(offset=offset),
                )
            )

    def close(self) -> None:
        self.reader.close()

    def _read(self, max_records: int, now_ms: int) -> Portion | None:
        if self.reader.finished:
            return None
        self.bad_ms = before_ms = self._known_ms
        empty_ms, self._empty_ms = self._empty_ms, None
        batch = None if empty_ms == now_ms else self._next(max_records)
        if batch is None:
            self._note_silence(now_ms)
            return None
        self._quiet_since_ms, self._is_quiet = None, False
        if self._joiner is None:
            return self._portion(batch, before_ms, self._known_ms)
        batch, after_ms, other, self._empty_ms = self._joiner.behind(batch, max_records, before_ms)
        portion = self._portion(batch, before_ms, after_ms)
        if other is not None:
            self._backlog.append(self._portion(other, after_ms, self._known_ms))
        return portion

    def _next(self, max_records: int) -> Batch | None:
        batch = self.reader.read_batch(max_records)
        self._count_skipped()
        if self._sets_bad_aside:
            self.bad += self.reader.take_bad()
        if batch is None or not batch.values:
            return None
        self._check(batch)
        return batch

    def _portion(self, batch: Batch, before_ms: int, after_ms: int) -> Portion:
        """Count the records, and judge which of them are late."""
        counters, times = self._counters, batch.timestamps
        if type(times) is not Times:
            times = ordered(times)
        counters.records_in += len(times)
        counters.newest_ms = max(counters.newest_ms, newest_of(times, MIN_MS))
        origin = self._origin.at(self.read_records)
        if after_ms == MIN_MS:  # It never promises: no one could wait for its records.
            origin = origin._replace(is_by_arrival=True)
        self.read_records += len(times)
        return self._late.judge(
            Portion(
                batch.values,
                times,
                before_ms,
                after_ms,
                self.reader.out_of_order_ms,
                origin=origin,
            )
        )

    def _check(self, batch: Batch) -> None:
        values, times = len(batch.values), len(batch.timestamps)
        if values != times:
            raise ConfigError(f"source {self._source} gave {values} values but {times} timestamps")
        if (type(batch.values) is Table) != (type(batch.timestamps) is Times):
            raise ConfigError(
                f"source {self._source} gave {type(batch.values).__name__} values with "
                f"{type(batch.timestamps).__name__} timestamps: give a Table with Times, or lists"
            )

    def _note_silence(self, now_ms: int) -> None:
        """Count as idle after a while. Silent is a partition that was asked and gave nothing."""
        if self._idle_after_ms is None:
            return
        if self._quiet_since_ms is None:
            self._quiet_since_ms = now_ms
        self._is_quiet = now_ms - self._quiet_since_ms >= self._idle_after_ms
        if self._is_quiet and self._advances:
            self.floor_ms = max(self.floor_ms, now_ms - self._idle_after_ms)

    @property
    def _known_ms(self) -> int:
        return max(self.reader.watermark_ms, self.floor_ms)

    def _count_skipped(self) -> None:
        skipped = self.reader.skipped_records
        if skipped != self._skipped:
            self._counters.skipped_records += skipped - self._skipped
            self._skipped = skipped

    def _split(self, portion: Portion, cut_ms: int) -> Portion:
        """Return the records before the cut; hold the rest."""
        until = self._reaches(portion, cut_ms)
        newest_ms = newest_of(portion.timestamps, cut_ms - 1)
        if until == len(portion) and newest_ms < cut_ms:
            return portion
        going, held, first = _parted(portion, until, cut_ms)
        if held:
            self._held.append(replace(held, before_ms=portion.promised()[first]))
            self.held_records += len(held)
        return going

    def _reaches(self, portion: Portion, cut_ms: int) -> int:
        """Return how many records stand before the promise has come to the cut."""
        if portion.before_ms >= cut_ms:
            return 0
        if portion.after_ms < cut_ms or portion.out_of_order_ms is None:
            return len(portion)
        return bisect_left(portion.promised(), cut_ms)

    def _encoded(self, portion: Portion) -> list[Any]:
        try:
            body = b"".join(encode_batch(portion.values, portion.timestamps))
        except ConfigError as error:
            raise OperatorError(
                operator=self._source,
                cause=f"records that wait for the end of an epoch cannot be stored: {error}",
                is_final=is_final(error),
            ) from error
        places = None if portion.aside is None else places_of(portion.aside)
        offset = portion.origin.offset
        return [len(portion), body, portion.before_ms, portion.after_ms, places, offset]


def _parted(portion: Portion, until: int, cut_ms: int) -> tuple[Portion, Portion, int]:
    """Return the records before a cut, the rest, and the place where the rest begins."""
    times = portion.timestamps
    if type(times) is Times:
        going = rows_before(times, cut_ms, until=until)
        staying = others(going)
        first = staying.index(True).as_py()
        return portion.filtered(going), portion.filtered(staying), first
    gone = [at for at in range(until) if times[at] < cut_ms]
    there = set(gone)
    held = [at for at in range(len(times)) if at not in there]
    return portion.picked(gone), portion.picked(held), held[0] if held else 0
