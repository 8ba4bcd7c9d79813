"""The tasks that the stream language lowers to: a chain of stages, fed by a source or by inputs.

A stage takes columns of records and yields columns of records; all of a chain run in one task,
one after the other on each batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.summaries import ConsumerReport
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import Columns, Task, TaskContext
from gearpy.task.api.rejects import Midway
from gearpy.task.api.snapshots import decode_state, state_pieces

#: Key of snapshots: the states of steps, by id.
STEPS: Final = "steps"


class Stage(Protocol):
    """One step of a chain. Deals with records on which user code raises by itself."""

    name: str  #: For people.
    place: int  #: Number in the chain, which sets it; for `Midway`.

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Take records, yield the results that are ready now."""
        ...

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Learn how far event time has come, yield the records that were waiting for it.

        Where that takes long, portions without any records let others go on.
        """
        ...

    def snapshot(self) -> Any:
        """Return the state between records, as plain data; None for none."""
        ...

    def restore(self, state: Any) -> None:
        """Go on from a snapshot, None at the first start; called once, before all else."""
        ...

    def close(self, *, completed: bool) -> None:
        """Release everything."""
        ...

    @property
    def hold_ms(self) -> int:
        """Oldest event time that is kept here and not yielded; `MAX_MS` if none."""
        ...


@runtime_checkable
class TimingStage(Protocol):
    """A stage that may give what it yields other event times than it was given."""

    keeps_times: bool  #: Whether it does not.


@runtime_checkable
class DrainingStage(Protocol):
    """A stage that keeps something, but has it sent before a snapshot is taken."""

    def drain(self) -> Iterator[Columns]:
        """Yield all that is kept."""
        ...


@runtime_checkable
class CommittingStage(Protocol):
    """A stage that shows its results only when the epoch is complete."""

    def commit(self, epoch: int) -> None:
        """Learn that an epoch, and all before it, are complete."""
        ...


@runtime_checkable
class KeepingStage(Protocol):
    """A stage that keeps records until the epoch ends."""

    @property
    def epoch_fill(self) -> float:
        """The share in use of the room for kept records; see `Task.epoch_fill`."""
        ...

    @property
    def may_end_epoch(self) -> bool:
        """Tell whether an epoch may end now; see `Task.may_end_epoch`."""
        ...


@runtime_checkable
class ConsumedStage(Protocol):
    """A stage whose output has consumers outside of the stream."""

    @property
    def is_delivered(self) -> bool:
        """Whether the end of the stream need not wait for them."""
        ...

    def consumers(self) -> Sequence[ConsumerReport]:
        """Return the consumers."""
        ...

    @property
    def waits_for(self) -> str:
        """The thing outside that it waits for; see `Task.waits_for`."""
        ...


@runtime_checkable
class TimedStage(Stage, Protocol):
    """A stage that waits for wall time."""

    @property
    def wake_ms(self) -> int | None:
        """The time at which to call `on_time`, in ms since the epoch; None: not at all.

        Asked after each batch: keep it at hand. Nothing of it is in snapshots; a stage that was
        restored tells again.
        """
        ...

    def on_time(self, now_ms: int) -> Iterator[Columns]:
        """Learn that ``wake_ms`` has come, yield the records that were waiting for it.

        Called at most once in each ms, and never at the end of the stream, when nothing is kept
        any more.
        """
        ...


@runtime_checkable
class DeferringStage(Stage, Protocol):
    """A stage whose results come some time after its records. `process` yields nothing."""

    @property
    def has_room(self) -> bool:
        """Whether it takes more. If not, the records wait in the stages before."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether `release` has something to yield; when that becomes so, the task is woken."""
        ...

    def release(self) -> Iterator[Columns]:
        """Yield the results that are there."""
        ...

    @property
    def passed_ms(self) -> int:
        """The event time behind the stage: no older record is in it. Only grows."""
        ...


@runtime_checkable
class ExpectingStage(DeferringStage, Protocol):
    """A deferring stage whose room depends on the records that come."""

    def expect(self, values: list[Any], timestamps: list[int]) -> None:
        """Learn of the next records: from now on ``has_room`` tells of these."""
        ...


@runtime_checkable
class WorkingStage(Protocol):
    """A stage that has something done outside of the task."""

    @property
    def is_working(self) -> bool:
        """Whether that is under way; see `Task.is_working`."""
        ...


class _Lane:
    """Stages of a chain that run without a wait; the first of them, or one behind a deferring one.

    Args:
        timed: its stages that wait for wall time, and their places.
    """

    def __init__(
        self, first: int, head: DeferringStage | None, timed: Sequence[tuple[int, TimedStage]]
    ) -> None:
        self.first = first
        self.head = head
        self.timed = timed
        self.work: Iterator[Batch | None] | None = None  #: Was left for want of room behind.
        #: How far its stages know that event time has come; after a restart they are told again.
        self.told_ms = MIN_MS

    @property
    def wake_ms(self) -> int | None:
        """The time at which there is something to do; 0 is now."""
        head = self.head
        if head is not None and (head.is_ready or head.passed_ms > self.told_ms):
            return 0
        times = (stage.wake_ms for _, stage in self.timed)
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
        lane: whose work it is; None: a job of the runner.
    """

    place: int
    lane: _Lane | None


class StagesOfSteps(list[Stage]):
    """Stages, and the id of the step that each of them belongs to."""

    def __init__(self, stages: Sequence[Stage], ids: Sequence[str]) -> None:
        super().__init__(stages)
        assert len(ids) == len(stages)
        self.ids = tuple(ids)


class ChainTask(Task):
    """Runs a chain of stages over its inputs.

    Behind a deferring stage begins a new lane. Work that comes to a deferring stage without room is
    left there; only the lanes behind that stage go on meanwhile, and make room. Their work may be
    left further behind; work left last goes on first. As long as work is left no record is
    taken, so a snapshot has all that is not done.

    Work may go through several lanes, as some deferring stages yield a part at once.

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
        self._consumed: Sequence[ConsumedStage] = ()
        self._keeping: Sequence[KeepingStage] = ()
        self._draining: Sequence[tuple[int, DrainingStage]] = ()
        self._committing: Sequence[CommittingStage] = ()
        self._working: Sequence[WorkingStage] = ()
        self._deferring: dict[int, DeferringStage] = {}  # By place.
        self._expecting: dict[int, ExpectingStage] = {}  # By place.
        self._lanes: Sequence[_Lane] = ()  # Those that may have something to do by themselves.
        self._left: list[_Left] = []  # Each at a place behind the one before it.
        self._full = 0  # Place of the stage for want of whose room a job has stopped.

    def on_start(self, start_time_ms: int) -> None:
        """Make the stages; each goes on from where it was."""
        self._stages = self._make_stages(self.context)
        kept = self._restored(self.context.resume or {})
        for place, (stage, state) in enumerate(zip(self._stages, kept, strict=True)):
            stage.place = place
            stage.restore(decode_state(state))
        self._deferring = {
            place: stage
            for place, stage in enumerate(self._stages)
            if isinstance(stage, DeferringStage)
        }
        self._expecting = {
            place: stage
            for place, stage in self._deferring.items()
            if isinstance(stage, ExpectingStage)
        }
        self._consumed = [each for each in self._stages if isinstance(each, ConsumedStage)]
        self._keeping = [each for each in self._stages if isinstance(each, KeepingStage)]
        self._draining = [
            (place, each)
            for place, each in enumerate(self._stages)
            if isinstance(each, DrainingStage)
        ]
        self._committing = [each for each in self._stages if isinstance(each, CommittingStage)]
        self._working = [each for each in self._stages if isinstance(each, WorkingStage)]
        self.keeps_times = all(
            each.keeps_times for each in self._stages if isinstance(each, TimingStage)
        )
        self._lanes = _lanes_of(self._stages)

    def _restored(self, resume: Mapping[str, Any]) -> Sequence[bytes]:
        """Return the state that each stage goes on from, and let it find its keyed state."""
        made = self._stages
        places = [str(place) for place in range(len(made))]
        ids = self.context.step_ids = made.ids if isinstance(made, StagesOfSteps) else places
        kept: Mapping[str, bytes] = resume.get(STEPS, {})
        if unknown := kept.keys() - set(ids):
            raise ConfigError(
                f"snapshot has a step {min(unknown)!r}, the program has {', '.join(ids)}: "
                "it is of another program"
            )
        return [kept.get(each, b"") for each in ids]

    def snapshot(self) -> dict[str, Any]:
        kept = [state_pieces(stage.name, stage.snapshot()) for stage in self._stages]
        named = zip(self.context.step_ids, kept, strict=True)
        return {STEPS: {name: state for name, state in named if state}}

    def before_snapshot(self) -> Iterator[Batch]:
        """Let stages send the records that they would not have in a snapshot."""
        for place, stage in self._draining:
            for values, timestamps in stage.drain():
                pushed = self._push(place + 1, values, timestamps, patient=False)
                yield from (batch for batch in pushed if batch is not None)

    def on_commit(self, epoch: int) -> None:
        for stage in self._committing:
            stage.commit(epoch)

    def on_batch(self, batch: Batch) -> Iterator[Batch | None]:
        """Push the records through all stages."""
        first = batch.values[0] if len(batch) == 1 else None
        if isinstance(first, Midway):
            # At once: a lane may wait there, and can run no second thing.
            return self._push(first.place, [first.value], batch.timestamps, patient=False)
        job = self._push(0, batch.values, batch.timestamps)
        return self._left_for_room(job) if self._deferring else job

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch | None]:
        """Tell each stage, and push its records through the stages behind it."""
        job = self._advance(0, watermark_ms)
        if not self._deferring:
            return job
        return chain(self._left_for_room(job), self.on_wake(self.context.now_ms()))

    @property
    def wake_ms(self) -> int | None:
        """The time at which a stage has something to yield by itself, and may."""
        if not self._lanes:
            return None
        return min(
            (at for lane in self._lanes if (at := self._wake_of(lane)) is not None), default=None
        )

    def on_wake(self, now_ms: int) -> Iterator[Batch]:
        """Let each lane work as far as it can, the last one first, as that makes room."""
        for lane in reversed(self._lanes):
            if not self._may_run(lane):
                continue
            if lane.work is None:
                work = self._work_of(lane, now_ms)
            else:
                work, lane.work = lane.work, None
                self._left.pop()
            for batch in work:
                if batch is None:
                    lane.work = work
                    self._left.append(_Left(self._full, lane))
                    break
                yield batch

    @property
    def has_room(self) -> bool:
        """Whether the runner's work can go on, or, when none is left, new work can begin."""
        if self._left:
            last = self._left[-1]
            return last.lane is None and self._deferring[last.place].has_room
        if not self._deferring:
            return True
        return next(iter(self._deferring.values())).has_room

    @property
    def is_at_rest(self) -> bool:
        return not (self._left or self._draining)

    @property
    def passes_ms(self) -> int:
        return min((lane.passes_ms for lane in self._lanes), default=MAX_MS)

    @property
    def is_delivered(self) -> bool:
        return all(stage.is_delivered for stage in self._consumed)

    @property
    def epoch_fill(self) -> float:
        """The fill of the stage that has the least room left."""
        fill = 0.0
        for stage in self._keeping:
            fill = max(fill, stage.epoch_fill)
        return fill

    @property
    def may_end_epoch(self) -> bool:
        """Tell whether no stage lets the end of an epoch wait; asked some times in each turn."""
        for stage in self._keeping:  # noqa: SIM110 - a generator costs more than its loop
            if not stage.may_end_epoch:
                return False
        return True

    @property
    def is_working(self) -> bool:
        return any(stage.is_working for stage in self._working)

    def consumers(self) -> Sequence[ConsumerReport]:
        return [each for stage in self._consumed for each in stage.consumers()]

    @property
    def waits_for(self) -> str:
        return next((waits for stage in self._consumed if (waits := stage.waits_for)), "")

    def on_stop(self, *, completed: bool) -> None:
        """Close all stages, also when one of them raises."""
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
        return min([stage.hold_ms for stage in self._stages], default=MAX_MS)

    def _wake_of(self, lane: _Lane) -> int | None:
        if not self._may_run(lane):
            return None
        return lane.wake_ms if lane.work is None else 0

    def _may_run(self, lane: _Lane) -> bool:
        """Tell whether a lane is behind all work left, or owns the last of it and has room."""
        if not self._left:
            return True
        place, owner = self._left[-1]
        return lane.first > place or (lane is owner and self._deferring[place].has_room)

    def _work_of(self, lane: _Lane, now_ms: int) -> Iterator[Batch | None]:
        """Yield the records that the stages of a lane held until now."""
        for place, stage in lane.timed:
            if stage.wake_ms is not None and stage.wake_ms <= now_ms:
                for values, timestamps in stage.on_time(now_ms):
                    yield from self._push(place + 1, values, timestamps)
        if lane.head is None:
            return
        for values, timestamps in lane.head.release():
            yield from self._push(lane.first, values, timestamps)
        passed_ms = lane.head.passed_ms
        if passed_ms > lane.told_ms:
            yield from self._advance(lane.first, passed_ms)
            lane.told_ms = passed_ms

    def _advance(self, first: int, watermark_ms: int) -> Iterator[Batch | None]:
        """Tell the stages of a lane how far event time has come, and the deferring one behind."""
        for place in range(first, len(self._stages)):
            for values, timestamps in self._stages[place].on_watermark(watermark_ms):
                yield from self._push(place + 1, values, timestamps)
            if place in self._deferring:
                return

    def _left_for_room(self, job: Iterator[Batch | None]) -> Iterator[Batch | None]:
        """Note while the runner's work is left."""
        for batch in job:
            if batch is not None:
                yield batch
                continue
            self._left.append(_Left(self._full, None))
            yield None
            self._left.pop()

    def _push(
        self, place: int, values: list[Any], timestamps: list[int], *, patient: bool = True
    ) -> Iterator[Batch | None]:
        if place == len(self._stages) or not len(values):  # Without any, others may go on.
            yield Batch(values, timestamps)
            return
        if patient and place in self._deferring:
            if place in self._expecting:
                self._expecting[place].expect(values, timestamps)
            while not self._deferring[place].has_room:
                self._full = place
                yield None
        for out, times in self._stages[place].process(values, timestamps):
            yield from self._push(place + 1, out, times, patient=patient)


def _lanes_of(stages: Sequence[Stage]) -> list[_Lane]:
    """Return the lanes that may have something to do by themselves, in their order."""
    lanes: list[_Lane] = []
    first, head = 0, None
    timed: list[tuple[int, TimedStage]] = []
    for place, stage in enumerate(stages):
        if isinstance(stage, TimedStage):
            timed.append((place, stage))
        if isinstance(stage, DeferringStage):
            lanes.append(_Lane(first, head, timed))
            first, head, timed = place + 1, stage, []
    lanes.append(_Lane(first, head, timed))
    return [lane for lane in lanes if lane.head is not None or lane.timed]
