"""The task that reads a source, and runs the chain of stages behind it."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from gearpy.columns.row_schema import RowSchema
from gearpy.core.app.deadly.probing import quota
from gearpy.core.flow.read_size import ReadSize
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.app import LeftOut, SourceProbe
from gearpy.messages.data import Batch, Origin
from gearpy.messages.table import Table, newest_of
from gearpy.task.api.failure import shown
from gearpy.task.api.interfaces import FINISHED, Discovery, Source, TaskContext
from gearpy.task.api.sides import Side
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.stage import Stage
from gearpy.task.sources.partition import LimitedPartition, SourcePartition, UnitCheck
from gearpy.task.sources.place_text import place_text, record_text
from gearpy.task.sources.share import partition_number
from gearpy.task.time.late import LATE, LateRecords, SourceLate

#: Asks for the end of the epoch, and lets the task do what it does without reading.
_WANTS_EPOCH: Final = 0.5


class ProbedReading:
    """Counts the records that are read, and has the epoch end when that is enough.

    Nothing is read before the epoch with what was read last is complete.
    """

    def __init__(self, probe: SourceProbe, context: TaskContext) -> None:
        self._probe = probe
        self._context = context
        self._epochs = 0  # Complete epochs behind which it reads on.
        self._epoch = context.epoch  # The epoch in which it has read last.
        self._read = Counter[str]()  # Records read behind those epochs, by partition.
        self.leaves_out: LeftOut = probe.leaves_out  #: What is still to be left out.

    @property
    def cause(self) -> str:
        return self._probe.cause

    @property
    def is_over(self) -> bool:
        return self._quota is None

    @property
    def epoch_fill(self) -> float:
        if self._context.epoch > self._epoch or self.leaves_out or (limit := self._quota) is None:
            return 0.0
        names = self._probe.partitions
        if names is None:
            return _WANTS_EPOCH if self._read.total() >= limit else 0.0
        return _WANTS_EPOCH if all(self._read[each] >= limit for each in names) else 0.0

    def room(self, partition: str, wanted: int) -> int:
        names = self._probe.partitions
        if self.leaves_out:
            return 1 if names is not None and partition in names else 0
        limit = self._quota
        if limit is None:
            return wanted
        if names is None:
            return min(wanted, limit - self._read.total())
        return min(wanted, limit - self._read[partition]) if partition in names else 0

    def on_read(self, partition: str, count: int) -> None:
        self._epoch, self.leaves_out = self._context.epoch, ""
        self._read[partition] += count

    def on_commit(self, epoch: int) -> None:
        if epoch >= self._epoch:
            self._epochs += 1
            self._read.clear()

    @property
    def _quota(self) -> int | None:
        return 0 if self._probe.leaves_out else quota(self._probe.records, self._epochs)


WhenIdle: TypeAlias = Literal["hold", "advance"]

WHEN_IDLE: Final[tuple[WhenIdle, ...]] = ("hold", "advance")

_OPEN: Final = "open"  # Keys of snapshots.
_FINISHED: Final = "finished"
_PROGRESS: Final = "progress"
_WATERMARK: Final = "watermark"
_SENT: Final = "sent"
_WAITING: Final = "waiting"
_FLOORS: Final = "floors"
_READ: Final = "read"
_DISCOVERY: Final = "discovery"
_UP_TO_NOW: Final = "up_to_now"
_GIVEN: Final = "given"

#: A batch is small below this share of the most that is read; a table, whose rows cost less, below
#: a smaller one.
_ROWS_SHARE: Final = 2
_TABLE_SHARE: Final = 16

_SHOWN_CHARS: Final = 500  #: Of input that was left out unread.

#: A source is asked eight times, at most, in as long as it was silent before; one that pauses for
#: longer than this, 20 times: there a pause may be long enough for people to see it.
_SHORT_PAUSE_MS: Final = 10
#: One that would pause for so long is called when there is more, if it tells.
_CALLED_MS: Final = 4


def source_states(
    kept: Sequence[Mapping[str, Any]], partitions: Sequence[str], parallelism: int
) -> list[dict[str, Any]]:
    """Return the states of source tasks, beside their chains, for another number of tasks.

    Args:
        kept: snapshots of all tasks that there were; of other tasks than these it is nothing.
    """
    kept = [each for each in kept if _OPEN in each]
    if not kept:
        return [{} for _ in range(parallelism)]
    places = {name: place for each in kept for name, place in each[_OPEN].items()}
    finished = {name for each in kept for name in each[_FINISHED]}
    if lost := sorted({*places, *finished} - set(partitions)):
        raise ConfigError(
            f"the source was read at partition {lost[0]!r}, which it does not have any more"
        )
    waiting = {name: held for each in kept for name, held in each[_WAITING].items()}
    floors = {name: floor for each in kept for name, floor in each.get(_FLOORS, {}).items()}
    read = {name: count for each in kept for name, count in each.get(_READ, {}).items()}
    finders = [state for each in kept for state in each.get(_DISCOVERY, ())]
    given = {name for each in kept for name in each.get(_GIVEN, ())}
    names = sorted(partitions)
    shares: list[list[str]] = [[] for _ in range(parallelism)]
    for at, name in enumerate(names):
        number = partition_number(name) if finders else at
        shares[number % parallelism].append(name)
    progress = tuple(sum(each[_PROGRESS][at] for each in kept) for at in (0, 1))
    return [
        {
            _OPEN: {name: places[name] for name in share if name in places},
            _FINISHED: [name for name in share if name in finished],
            _PROGRESS: (0, 0) if at else progress,
            _WATERMARK: min(each[_WATERMARK] for each in kept),
            _SENT: max(each[_SENT] for each in kept),
            _WAITING: {name: waiting[name] for name in share if name in waiting},
            _FLOORS: {name: floors[name] for name in share if name in floors},
            _READ: {name: read[name] for name in share if name in read},
            _DISCOVERY: finders,
            _UP_TO_NOW: any(each.get(_UP_TO_NOW) for each in kept),
            _GIVEN: [name for name in share if name in given],
        }
        for at, share in enumerate(shares)
    ]


def source_places(state: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(state.get(_FINISHED, ())), **state.get(_OPEN, {})}


class SourceTask(ChainTask):
    """Reads its share of a source's partitions and runs a chain over it.

    Partition ``k`` belongs to the task whose index is ``k`` modulo the parallelism; ``k`` is its
    `partition_number` where partitions are found while it runs, else its place by name. The
    partition that is furthest behind in event time is read first; equal ones take turns.
    After a restart the readers go on from their snapshots, or, if the source is not replayable,
    from wherever it is. Gearpump: `DataSourceTask`.

    An epoch that ends by event time has all records older than the cut, from each partition up to
    where that has promised the time of the cut. Newer ones that are read meanwhile wait for the
    next epoch, and are in the snapshot; if they are too many, the epoch ends where it is.

    Where it ends when it has caught up, a partition that has finished is at what was there when it
    was opened: its place stays in the snapshot, from which the next run opens it again. It promises
    nothing behind what it has given, as more will follow there. So the end of what is there is
    never the end of event time; but one that has given nothing in all of the run, in which it may
    have been started several times, holds back no other.

    Args:
        late: the policy for late records; see `LateRecords`.
        idle_after_ms: a partition that has given nothing for so long is idle until it gives.
        bad_tag: the side output of bad records, where the source sets them aside.
        name: of the step, for them.
        is_whole: whether it is read to its end, where it need not be read up to now.
        when_idle: "hold" leaves event time alone while all partitions are idle; with "advance" an
            idle partition promises that nothing older than ``idle_after_ms`` before the wall time
            will come.
        max_ahead_ms: records so far ahead of the wall clock are left out, or set aside as late.
    """

    def __init__(
        self,
        context: TaskContext,
        source: Source,
        make_stages: Callable[[TaskContext], Sequence[Stage]],
        *,
        late: SourceLate = "keep",
        late_tag: str = LATE,
        idle_after_ms: int | None = None,
        when_idle: WhenIdle = "hold",
        max_ahead_ms: int | None = None,
        bad_tag: str = "",
        name: str = "",
        is_whole: bool = False,
    ) -> None:
        super().__init__(context, make_stages)
        self._source = source
        self.produce_may_block = source.calls_program
        self._late = LateRecords(late, context.counters, late_tag)
        self._idle_after_ms = idle_after_ms
        self._advances = when_idle == "advance"
        self._max_ahead_ms = max_ahead_ms
        self._sets_aside = bool(bad_tag) or max_ahead_ms is not None
        self._late_tag = late_tag
        # The first task tells for all.
        self._units = None if context.task_id.task_index else UnitCheck(source.description)
        self._bad_tag = bad_tag
        self._name = name
        self._schema: RowSchema | None = None
        self._size = ReadSize(1)  # Made when it starts.
        self._discovery: Discovery | None = None
        self._unconfirmed: dict[int, dict[str, Any]] = {}  # Places at the end of each epoch.
        self._ended: dict[str, Any] = {}  # Places of partitions that have ended in this one.
        self._parts: list[SourcePartition] = []
        self._finished: list[str] = []
        self._progress = (0, 0)  # The progress of partitions that have ended.
        self._watermark_ms = MIN_MS
        self._cut_ms = MAX_MS  # No record is newer.
        self._sent_ms = MIN_MS  # Newest event time that was sent.
        self._asked_ms = 0  # By wall time, when the readers were asked last, and when one gave.
        self._gave_ms = MIN_MS
        self._probed: ProbedReading | None = None
        self._up_to_now, self._is_whole = context.limits.until_caught_up, is_whole
        self._done: list[SourcePartition] = []  # They have given what was there.
        self._done_ms = MIN_MS  # The newest time that one of them has promised.
        self._holding: list[SourcePartition] = []  # More will come behind what these have given.
        self._has_given = False  # In this run, however often it was started.

    def on_start(self, start_time_ms: int) -> None:
        super().on_start(start_time_ms)
        self._schema, limits = self._source.schema, self.context.limits
        if self._schema is None:
            self._size = ReadSize(limits.read_batch_records, share=_ROWS_SHARE)
        else:
            self._size = ReadSize(limits.columnar_batch_records, share=_TABLE_SHARE)
        kept = self.context.resume or {}
        places: dict[str, Any] = kept.get(_OPEN, {})
        if kept and self._is_whole and kept.get(_UP_TO_NOW, False) != self._up_to_now:
            raise ConfigError(
                f"source {self._source.description} ends, and was read "
                f"{'to its end' if self._up_to_now else 'up to what was there'} before: what was "
                'read without until="caught-up" cannot go on with it, nor the other way round; '
                "take another name for the run, or a source that follows"
            )
        self._progress = kept.get(_PROGRESS, (0, 0))
        self._watermark_ms = kept.get(_WATERMARK, MIN_MS)
        self._sent_ms = kept.get(_SENT, MIN_MS)
        set_by_hand = self._places_by_hand()
        self._finished = [name for name in kept.get(_FINISHED, ()) if name not in set_by_hand]
        known = [*places, *self._finished, *set_by_hand]
        mine = self._origins(known, kept.get(_DISCOVERY, ()))
        if lost := sorted(set(known) - set(mine)):
            raise ConfigError(
                f"source {self._source.description} was read at partition {lost[0]!r}, "
                "which it does not have any more: its partitions must stay the same over restarts"
            )
        if not self._source.replayable:
            places = {}
        elif self.context.probe is not None:
            self._probed = ProbedReading(self.context.probe, self.context)
        waiting: dict[str, Any] = kept.get(_WAITING, {})
        floors: dict[str, int] = kept.get(_FLOORS, {})
        given = set(kept.get(_GIVEN, ()))
        self._has_given = bool(given)
        read: dict[str, int] = kept.get(_READ, {})
        for name, origin in mine.items():  # One by one, so that those opened close if one fails.
            if name in set_by_hand:
                self._open(name, set_by_hand[name], (), origin)
            elif name not in self._finished:
                self._open(name, places.get(name), waiting.get(name, ()), origin)
                self._parts[-1].floor_ms = floors.get(name, MIN_MS)
            if self._parts and self._parts[-1].name == name:
                self._parts[-1].read_records = read.get(name, 0)
                self._parts[-1].first_record = self._parts[-1].read_records - (name in given)

    def snapshot(self) -> dict[str, Any]:
        parts = [*self._parts, *self._done]
        waiting = {part.name: part.snapshot() for part in parts}
        places = {part.name: part.place for part in parts}
        is_over = self.context.has_caught_up  # Another run goes on from here.
        given = [part.name for part in parts if part.has_given and not is_over]
        if self._discovery is not None:
            self._unconfirmed[self.context.epoch] = self._ended | places
            self._ended = {}
        return super().snapshot() | {
            _OPEN: places,
            _FINISHED: self._finished,
            _PROGRESS: (0, 0) if self._up_to_now else self._progress,
            _WATERMARK: self._watermark_ms,
            _SENT: self._sent_ms,
            _WAITING: {name: kept for name, kept in waiting.items() if kept},
            _FLOORS: {part.name: part.floor_ms for part in parts if part.floor_ms > MIN_MS},
            _READ: {part.name: part.read_records for part in parts},
            _DISCOVERY: [] if self._discovery is None else [self._discovery.snapshot()],
            **({_UP_TO_NOW: True, _GIVEN: given} if self._up_to_now else {}),
        }

    @property
    def waits_for(self) -> str:
        finder = "" if self._discovery is None else self._discovery.waits_for
        waits = (finder, *(part.reader.waits_for for part in self._parts))
        return next((each for each in waits if each), "") or super().waits_for

    def offsets(self) -> Mapping[str, Any]:
        finished: dict[str, Any] = dict.fromkeys(self._finished)
        parts = [*self._parts, *self._done]
        return finished | {part.name: part.place for part in parts}

    def on_commit(self, epoch: int) -> None:
        super().on_commit(epoch)
        if self._probed is not None:
            self._probed.on_commit(epoch)
            if self._probed.is_over:
                self._probed = None
        if self._discovery is None:
            return
        places: dict[str, Any] = {}
        for each in sorted(each for each in self._unconfirmed if each <= epoch):
            places |= self._unconfirmed.pop(each)
        self._discovery.on_commit(places)

    def produce(self) -> Generator[Batch | None, None, int]:
        """Read one batch of one partition and pass it on, then the watermark."""
        if not (self._discovery is None or self._discovery.finished):
            for name, place in self._discovery.find().items():
                self._open(name, place, (), self._origin(partition_number(name)))
                if self._cut_ms < MAX_MS:
                    self._parts[-1].begin_cut(self._cut_ms)
        batch = self._read() if self._probed is None else self._read_probed(self._probed)
        records = 0 if batch is None else len(batch.values)  # Also some that were held.
        if self._sets_aside:
            # Send what was set aside as it was read, at a time that is not late.
            for part in self._parts:
                if aside := self._aside_of(part):
                    time_ms = 0 if part.bad_ms == MIN_MS else min(part.bad_ms, self._cut_ms - 1)
                    self._sent_ms = max(self._sent_ms, time_ms)
                    yield Batch(aside, [time_ms] * len(aside))
        if batch is not None:
            self.context.set_idle(False)
            self._sent_ms = max(self._sent_ms, newest_of(batch.timestamps, MIN_MS))
            if self._late.sets_aside and records:
                batch, sides = self._late.parted(batch, self._schema)
                if len(sides):
                    yield sides
            if batch.values:
                yield from self.on_batch(batch)
        self._drop_finished()
        watermark_ms = self._reached_ms()
        if watermark_ms > self._watermark_ms:
            self._watermark_ms = watermark_ms
            yield from self.on_watermark(watermark_ms)
            self.context.update_watermark(watermark_ms)
        has_looked = self._discovery is None or self._discovery.has_looked
        is_reading = bool(self._parts or self._finds_more)
        if self._up_to_now:
            self.context.set_idle(self.is_caught_up and not self._has_given)
        else:
            self.context.set_idle(has_looked and is_reading and not self._live())
        self._size.on_read(records, self.context.worked_ms())
        if not (self._parts or self._finds_more or self._up_to_now):
            return FINISHED
        return self._pause_ms() if batch is None else 0

    def _aside_of(self, part: SourcePartition) -> list[Side]:
        bad = part.bad if self._bad_tag else []
        aside = [Side(self._bad_tag, replace(each, step=self._name)) for each in bad]
        part.bad = []
        if isinstance(part, LimitedPartition):
            for values in part.ahead:
                rows = values
                if self._schema is not None and isinstance(values, Table):
                    rows = self._schema.rows(values.batch)
                aside += [Side(self._late_tag, row) for row in rows]
            part.ahead = []
        return aside

    def _reached_ms(self) -> int:
        """Return the watermark, as far as nothing is held back."""
        live = [part.promised_ms for part in self._live()]
        if self._up_to_now:
            live += [part.promised_ms for part in self._holding]
        if live:
            promised_ms = min(live)
        elif self._parts or self._up_to_now:
            # As if the one that is furthest had become idle last.
            promised_ms = max([self._done_ms, *(part.promised_ms for part in self._parts)])
        else:
            return MIN_MS if self._finds_more else MAX_MS
        span_ms = max(promised_ms, self._watermark_ms)
        if span_ms > MIN_MS:  # Nothing is known of a source that never promises.
            counters = self.context.counters
            counters.span_ms = max(counters.span_ms, counters.newest_ms - span_ms)
        return min(promised_ms, self._cut_ms)

    @property
    def is_caught_up(self) -> bool:
        return self._up_to_now and not (self._parts or self._finds_more)

    @property
    def epoch_fill(self) -> float:
        if self._probed is None:
            return super().epoch_fill
        return max(super().epoch_fill, self._probed.epoch_fill)

    def begin_cut(self, cut_time_ms: int) -> bool:
        """Hold back records that are not older than the cut; not where only a few are read."""
        if self._probed is not None:
            return False
        if cut_time_ms != self._cut_ms:
            self._cut_ms = cut_time_ms
            for part in self._parts:
                part.begin_cut(cut_time_ms)
        return self._sent_ms < cut_time_ms

    @property
    def is_cut(self) -> bool:
        """Whether no partition that has something to give is before the cut; or too much waits."""
        if self._cut_ms == MAX_MS:
            return True
        held = sum(part.held_records for part in self._parts)
        return held > self.context.limits.held_records_max or all(
            part.is_idle or part.has_promised(self._cut_ms) for part in self._parts
        )

    def end_cut(self) -> None:
        self._cut_ms = MAX_MS
        for part in self._parts:
            part.end_cut()

    def on_stop(self, *, completed: bool) -> None:
        try:
            super().on_stop(completed=completed)
        finally:
            for part in self._parts:
                part.close()
            if self._discovery is not None:
                self._discovery.close()

    @property
    def _finds_more(self) -> bool:
        return self._discovery is not None and not self._discovery.finished

    def _origins(self, known: Sequence[str], finders: Sequence[Any]) -> dict[str, Origin]:
        first, step = self.context.task_id.task_index, self.context.parallelism
        if self._source.discovers:
            self._discovery = self._source.discover(first, step, finders)
            return {name: self._origin(partition_number(name)) for name in sorted(set(known))}
        names = sorted(self._source.partitions())
        return {
            names[at]: self._origin(at, is_alone=len(names) == 1)
            for at in range(first, len(names), step)
        }

    def _origin(self, number: int, *, is_alone: bool = False) -> Origin:
        return Origin(self.context.task_id.processor, number, is_alone=is_alone)

    def _places_by_hand(self) -> dict[str, Any]:
        places = {name: at for name, at in self.context.offsets.items() if at is not None}
        if places and not self._source.replayable:
            raise ConfigError(
                f"source {self._source.description} cannot go to a place that was set by hand: "
                "it is not replayable"
            )
        return places

    def _open(self, name: str, place: Any, waiting: Sequence[Any], origin: Origin) -> None:
        made: Any = SourcePartition
        if self._max_ahead_ms is not None:
            made = partial(LimitedPartition, max_ahead_ms=self._max_ahead_ms)
        part: SourcePartition = made(
            name,
            (self._discovery or self._source).open(name, place),
            origin=origin,
            source=self._source.description,
            late=self._late,
            counters=self.context.counters,
            idle_after_ms=self._idle_after_ms,
            advances=self._advances,
            clock_ms=self.context.now_ms,
            read_size=self._size,
            sets_bad_aside=self._source.sets_bad_aside,
            quarantines_bad=self._source.quarantines_bad,
            rejects=self.context.rejects,
            units=self._units,
        )
        self._parts.append(part)
        part.restore(waiting)
        if self._probed is not None:
            part.reader.read_little()

    def _live(self) -> list[SourcePartition]:
        return [part for part in self._parts if not part.is_idle]

    def _read(self) -> Batch | None:
        if len(self._parts) > 1:
            self._parts.sort(key=lambda part: part.promised_ms)
        self._asked_ms = now_ms = self.context.now_ms()
        for at, part in enumerate(self._parts):
            if self._cut_ms < MAX_MS and part.has_promised(self._cut_ms):
                continue  # Its records belong to the next epoch.
            batch = part.read(self._size.size, now_ms)
            if batch is not None:
                self._parts.append(self._parts.pop(at))
                self._gave_ms = now_ms
                return batch
        return None

    def _read_probed(self, probed: ProbedReading) -> Batch | None:
        self._parts.sort(key=lambda part: part.promised_ms)
        self._asked_ms = self._gave_ms = now_ms = self.context.now_ms()
        for at, part in enumerate(self._parts):
            if (room := probed.room(part.name, self._size.size)) <= 0:
                continue
            if probed.leaves_out:
                self._leave_out(part, probed, now_ms)
                return None
            batch = part.read_few(room, now_ms)
            if batch is not None:
                probed.on_read(part.name, len(batch))
                self._parts.append(self._parts.pop(at))
                return batch
        return None

    def _leave_out(self, part: SourcePartition, probed: ProbedReading, now_ms: int) -> None:
        before, operator, rejects = (
            part.reader.snapshot(),
            self.context.operator,
            self.context.rejects,
        )
        if probed.leaves_out == "record":
            if (batch := part.read_few(1, now_ms)) is None:
                return
            probed.on_read(part.name, len(batch))
            where = record_text(part.name, before, part.reader.snapshot())
            cause = f"{where}: this record ends the process that works on it: {probed.cause}"
            for value, time_ms in batch.messages():
                error = OperatorError(
                    operator=operator,
                    cause=cause,
                    record=shown(value),
                    event_time_ms=int(time_ms),
                )
                rejects.take(value, time_ms, error)
            return
        where = place_text(part.name, before)
        cause = f"{where}: to read on from there ends the process: {probed.cause}"
        try:
            left_out = part.reader.step_over(all_of_file=probed.leaves_out == "file")
        except ConfigError as error:
            raise OperatorError(
                operator=operator, cause=f"{cause}; {error}", is_final=True
            ) from error
        if left_out is not None:
            probed.on_read(part.name, 1)
            unread = OperatorError(operator=operator, cause=cause, record=left_out[:_SHOWN_CHARS])
            rejects.take_encoded(b"", MIN_MS, unread)

    def _pause_ms(self) -> int:
        """Return how long the source is left alone: a share of the time that it was silent.

        So what comes next waits for a share of that time, and a source that is silent for long is
        hardly asked. Nor is one sooner than it gives anything, where it says when; or where it
        calls, which costs more than to ask one that gives a little all the time.
        """
        limits, silent_ms = self.context.limits, self._asked_ms - self._gave_ms
        pause_ms = max(min(silent_ms // 8, _SHORT_PAUSE_MS), silent_ms // 20)
        pause_ms = min(limits.idle_poll_ms, max(limits.brisk_poll_ms, pause_ms))
        # Of one that is held back by a cut nobody knows whether it has more: it was not asked.
        is_held = self._cut_ms < MAX_MS or self._probed is not None
        may_call = not is_held and limits.woken_poll_ms > pause_ms >= _CALLED_MS
        rest_ms = limits.idle_poll_ms
        if self._idle_after_ms is None:
            rest_ms = max(rest_ms, limits.woken_poll_ms)
        if self._finds_more and self._discovery is not None:
            rest_ms = min(rest_ms, self._discovery.pause_ms)
        self.is_woken = False
        for part in self._parts:
            known_ms = part.reader.pause_ms
            if rest_ms > pause_ms >= known_ms:
                if may_call and part.reader.call_when_ready(self.context.wake):
                    self.is_woken, known_ms = True, limits.woken_poll_ms
                else:
                    known_ms = 0
            rest_ms = min(rest_ms, known_ms)
        return max(pause_ms, rest_ms)

    def _drop_finished(self) -> None:
        done, total = self._progress
        for part in self._parts[:]:
            part_done, part_total = part.reader.progress
            if not part_total:  # Without an end: it would be more than all of the others.
                part_done = 0
            done, total = done + part_done, total + part_total
            if part.is_finished:
                self._parts.remove(part)
                self._ended[part.name] = part.end()
                if self._up_to_now:
                    self._has_given = self._has_given or part.has_given
                    if self._discovery is None or self._discovery.keeps(part.name):
                        self._done.append(part)
                    self._done_ms = max(self._done_ms, part.promised_ms)
                    if part.has_given and not (self._is_whole or part.reader.idle):
                        self._holding.append(part)
                elif self._discovery is None or not self._discovery.forgets:
                    self._finished.append(part.name)
                self._progress = (self._progress[0] + part_done, self._progress[1] + part_total)
        counters = self.context.counters
        counters.done, counters.total = done, total
        counters.held_records = sum(part.held_records for part in self._parts)
