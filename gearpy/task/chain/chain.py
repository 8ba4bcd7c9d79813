"""The tasks that the stream language lowers to: a chain of stages, fed by a source or by inputs.

A stage takes columns of records and yields columns of records; all of a chain run in one task,
one after the other on each batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.summaries import ConsumerReport
from gearpy.task.api.failure import USER_ERRORS, shown
from gearpy.task.api.interfaces import Task, TaskContext
from gearpy.task.api.rejects import Midway
from gearpy.task.api.snapshots import decode_state, state_pieces
from gearpy.task.api.window_result import LocalWindowResult, WindowResult
from gearpy.task.chain.stage import Stage

#: Key of snapshots: the states of steps, by id.
STEPS: Final = "steps"


_LOOKED_AT: Final = 16  # Batches begin with one record, so most have all of theirs looked at.
_RESULTS: Final = frozenset({WindowResult, LocalWindowResult})
_MAY_BE_MESSAGES: Final = frozenset({Message, *_RESULTS})

#: What the chain asks of those of its stages that override it.
_ASKED: Final = (
    "drain",
    "commit",
    "epoch_fill",
    "may_end_epoch",
    "is_working",
    "is_delivered",
    "consumers",
    "waits_for",
    "hold_ms",
    "open_windows",
)


class _Segment:
    """Stages of a chain that run without a wait; the first of them, or one behind a deferring one.

    Args:
        first: the place of its first stage.
        head: the deferring stage before it, if there is one.
        stages: its stages; the last one may defer.
    """

    def __init__(self, first: int, head: Stage | None, stages: Sequence[Stage]) -> None:
        self.first = first
        self.head = head
        self.timed = [stage for stage in stages if stage.overrides("on_time")]
        #: Those that are told of event time.
        self.told = [stage for stage in stages if stage.overrides("on_watermark")]
        self.work: Iterator[Batch | None] | None = None  #: Was left for want of room behind.
        #: How far its stages know that event time has come; after a restart they are told again.
        self.told_ms = MIN_MS

    @property
    def wake_ms(self) -> int | None:
        head = self.head
        if head is not None and (head.is_ready or head.passed_ms > self.told_ms):
            return 0
        times = (stage.wake_ms for stage in self.timed)
        return min((time for time in times if time is not None), default=None)

    @property
    def passes_ms(self) -> int:
        """The highest watermark that the chain may tell; `MAX_MS` if nothing waits."""
        head = self.head
        if head is None or (
            self.work is None and head.hold_ms == MAX_MS and self.told_ms == head.passed_ms
        ):
            return MAX_MS
        return self.told_ms


class _Left(NamedTuple):
    """Work that was left in the middle, as a deferring stage had no room.

    Attributes:
        segment: whose work it is; None: a job of the runner.
    """

    place: int
    segment: _Segment | None


class StagesOfSteps(list[Stage]):
    """Stages, and the id of the step that each of them belongs to."""

    def __init__(self, stages: Sequence[Stage], ids: Sequence[str]) -> None:
        super().__init__(stages)
        assert len(ids) == len(stages)
        self.ids = tuple(ids)


class ChainTask(Task):
    """Runs a chain of stages over its inputs.

    Behind a deferring stage begins a new segment. Work that comes to a deferring stage without room
    is left there; only the segments behind that stage go on meanwhile, and make room. Their work
    may be left further behind; work left last goes on first. As long as work is left no record is
    taken, so a snapshot has all that is not done.

    Work may go through several segments, as some deferring stages yield a part at once.

    Args:
        make_stages: makes this task's own stages; called by `on_start`. Of `StagesOfSteps` state
            is found by their ids, of others by their numbers in the chain.
    """

    counts_output = True  # A sink is one of the stages.
    keeps_state_until_told = True  # Records that have waited for event time still need it.
    marks_late = True  # Its stages know of which records their results are.

    def __init__(
        self, context: TaskContext, make_stages: Callable[[TaskContext], Sequence[Stage]]
    ) -> None:
        super().__init__(context)
        self._make_stages = make_stages
        self._stages: Sequence[Stage] = ()
        # Stages that override a method, by the name of the method.
        self._with: Mapping[str, Sequence[Stage]] = dict.fromkeys(_ASKED, ())
        self._deferring: dict[int, Stage] = {}  # The keys are their places.
        self._first = _Segment(0, None, ())
        self._active: Sequence[_Segment] = ()  # May have something to do by themselves.
        self._left: list[_Left] = []  # Each at a place behind the one before it.
        self._full = 0  # Place of the stage for want of whose room a job has stopped.

    def on_start(self, start_time_ms: int) -> None:
        self._stages = self._make_stages(self.context)
        made = self._stages
        places = [str(place) for place in range(len(made))]
        ids = self.context.step_ids = made.ids if isinstance(made, StagesOfSteps) else places
        kept: Mapping[str, bytes] = (self.context.resume or {}).get(STEPS, {})
        if unknown := kept.keys() - set(ids):
            raise ConfigError(
                f"snapshot has a step {min(unknown)!r}, the program has {', '.join(ids)}: "
                "it is of another program"
            )
        states = [kept.get(each, b"") for each in ids]
        for place, (stage, state) in enumerate(zip(made, states, strict=True)):
            stage.place = place
            stage.restore(decode_state(state))
        self._with = {
            name: [stage for stage in self._stages if stage.overrides(name)] for name in _ASKED
        }
        self._deferring = {place: stage for place, stage in enumerate(self._stages) if stage.defers}
        self.keeps_times = all(stage.keeps_times for stage in self._stages)
        segments: list[_Segment] = []
        first, head = 0, None
        for place, stage in enumerate(made):
            if stage.defers:
                segments.append(_Segment(first, head, made[first : place + 1]))
                first, head = place + 1, stage
        segments.append(_Segment(first, head, made[first:]))
        self._first, *others = segments
        self._active = segments if self._first.timed else others
        self.may_wait = bool(self._deferring or self._with["may_end_epoch"])
        self.may_wake = bool(self._active)

    def snapshot(self) -> dict[str, Any]:
        kept = [state_pieces(stage.name, stage.snapshot()) for stage in self._stages]
        if self.context.limits.until_caught_up:
            still_open = sum(stage.open_windows for stage in self._with["open_windows"])
            self.context.counters.open_windows = still_open
        named = zip(self.context.step_ids, kept, strict=True)
        return {STEPS: {name: state for name, state in named if state}}

    def before_snapshot(self) -> Iterator[Batch]:
        for stage in self._with["drain"]:
            for kept in stage.drain():
                pushed = self._push(stage.place + 1, kept, patient=False)
                yield from (batch for batch in pushed if batch is not None)

    def on_commit(self, epoch: int) -> None:
        for stage in self._with["commit"]:
            stage.commit(epoch)

    def on_batch(self, batch: Batch) -> Iterator[Batch | None]:
        values = batch.values
        if len(values) == 1 and isinstance(first := values[0], Midway):
            # At once: a segment may wait there, and can run no second thing.
            record = batch.giving([first.value], batch.timestamps)
            return self._push(first.place, record, patient=False)
        job = self._push(0, batch)
        return self._left_for_room(job) if self._deferring else job

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch | None]:
        job = self._advance(self._first, watermark_ms)
        if not self._deferring:
            return job
        return chain(self._left_for_room(job), self.on_wake(self.context.now_ms()))

    @property
    def wake_ms(self) -> int | None:
        if not self._active:
            return None
        return min(
            (
                at
                for segment in self._active
                if self._may_run(segment)
                and (at := segment.wake_ms if segment.work is None else 0) is not None
            ),
            default=None,
        )

    def on_wake(self, now_ms: int) -> Iterator[Batch]:
        """Let each segment work as far as it can, the last one first, as that makes room."""
        for segment in reversed(self._active):
            if not self._may_run(segment):
                continue
            if segment.work is None:
                work = self._work_of(segment, now_ms)
            else:
                work, segment.work = segment.work, None
                self._left.pop()
            for batch in work:
                if batch is None:
                    segment.work = work
                    self._left.append(_Left(self._full, segment))
                    break
                yield batch

    @property
    def has_room(self) -> bool:
        """Whether the runner's work can go on, or, when none is left, new work can begin."""
        if self._left:
            last = self._left[-1]
            return last.segment is None and self._deferring[last.place].has_room
        if not self._deferring:
            return True
        return next(iter(self._deferring.values())).has_room

    @property
    def is_at_rest(self) -> bool:
        return not (self._left or self._with["drain"])

    @property
    def passes_ms(self) -> int:
        return min((segment.passes_ms for segment in self._active), default=MAX_MS)

    @property
    def is_delivered(self) -> bool:
        return all(stage.is_delivered for stage in self._with["is_delivered"])

    @property
    def epoch_fill(self) -> float:
        return max([stage.epoch_fill for stage in self._with["epoch_fill"]], default=0.0)

    @property
    def may_end_epoch(self) -> bool:
        """Tell whether no stage lets the end of an epoch wait; asked some times in each turn."""
        for stage in self._with["may_end_epoch"]:  # noqa: SIM110 - a generator costs more than its loop
            if not stage.may_end_epoch:
                return False
        return True

    @property
    def is_working(self) -> bool:
        return any(stage.is_working for stage in self._with["is_working"])

    def consumers(self) -> Sequence[ConsumerReport]:
        return [each for stage in self._with["consumers"] for each in stage.consumers()]

    @property
    def waits_for(self) -> str:
        waits = (stage.waits_for for stage in self._with["waits_for"])
        return next(filter(None, waits), "")

    def on_stop(self, *, completed: bool) -> None:
        errors = []
        for stage in self._stages:
            try:
                stage.close(completed=completed)
            except USER_ERRORS as error:
                errors.append(error)
        if errors:
            raise errors[0]

    @property
    def hold_ms(self) -> int:
        return min([stage.hold_ms for stage in self._with["hold_ms"]], default=MAX_MS)

    def _may_run(self, segment: _Segment) -> bool:
        """Tell whether a segment is behind all work left, or owns the last of it and has room."""
        if not self._left:
            return True
        place, owner = self._left[-1]
        return segment.first > place or (segment is owner and self._deferring[place].has_room)

    def _work_of(self, segment: _Segment, now_ms: int) -> Iterator[Batch | None]:
        """Yield the records that the stages of a segment held until now."""
        for stage in segment.timed:
            if stage.wake_ms is not None and stage.wake_ms <= now_ms:
                for batch in stage.on_time(now_ms):
                    yield from self._push(stage.place + 1, batch)
        if segment.head is None:
            return
        for batch in segment.head.release():
            yield from self._push(segment.first, batch)
        passed_ms = segment.head.passed_ms
        if passed_ms > segment.told_ms:
            yield from self._advance(segment, passed_ms)
            segment.told_ms = passed_ms

    def _advance(self, segment: _Segment, watermark_ms: int) -> Iterator[Batch | None]:
        for stage in segment.told:
            for batch in stage.on_watermark(watermark_ms):
                yield from self._push(stage.place + 1, batch)

    def _left_for_room(self, job: Iterator[Batch | None]) -> Iterator[Batch | None]:
        """Note while the runner's work is left."""
        for batch in job:
            if batch is not None:
                yield batch
                continue
            self._left.append(_Left(self._full, None))
            yield None
            self._left.pop()

    def _push(self, place: int, batch: Batch, *, patient: bool = True) -> Iterator[Batch | None]:
        stages, values = self._stages, batch.values
        name = stages[place - 1].name if place else self.context.operator
        check_no_messages(name, values, batch.timestamps)
        if place == len(stages) or not values:  # Without any, others may go on.
            return iter((batch,))
        return self._process(place, batch, patient=patient)

    def _process(self, place: int, batch: Batch, *, patient: bool) -> Iterator[Batch | None]:
        stage = self._stages[place]
        if patient and stage.defers:
            stage.expect(batch)
            while not stage.has_room:
                self._full = place
                yield None
        for results in stage.process(batch):
            yield from self._push(place + 1, results, patient=patient)


def check_no_messages(operator: str, values: Sequence[Any], timestamps: Sequence[int]) -> None:
    """Refuse a message within a record, of which a function has made many, as a rule."""
    if type(values) is not list:
        return
    kinds = set(map(type, values[:_LOOKED_AT]))
    if kinds.isdisjoint(_MAY_BE_MESSAGES):
        return
    for value, time in zip(values[:_LOOKED_AT], timestamps, strict=False):
        if type(value.value if type(value) in _RESULTS else value) is Message:
            raise OperatorError(
                operator=operator,
                cause="it gives a gp.Message, which would be a value within a record: give its "
                "value; a record gets another event time from a gp.Task in process(...), or from "
                "its source",
                record=shown(value),
                event_time_ms=int(time),
                is_final=True,
            )
