"""One region at work: its attempts, one after the other, and the epochs they store."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from gearpy.core.deployment import Command, Deployment
from gearpy.core.epochs import EpochCoordinator, EpochHistory, Manifest
from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import (
    BeginEpoch,
    EpochStored,
    RegisterExecutor,
    SnapshotFile,
    TaskClock,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)

__all__ = ["Region", "RegionState", "StepAnswer"]

RegionState: TypeAlias = Literal["waiting", "deployed", "stopping", "done"]
StepAnswer: TypeAlias = TasksLaunched | TaskLocationsReceived | TasksStarted | TasksStopped


class Region:
    """A connected part of an application, from its first attempt to its end.

    ``waiting`` for executors or for the end of a pause; ``deployed``, starting or running;
    ``stopping``, to start again or to end; ``done``.

    Invariant: an attempt goes on from the newest complete epoch, and no epoch number is announced
    twice. Each file that was stored for the region is needed by its history, awaits the rest of
    its epoch, or is given out once to be deleted.

    Args:
        number: its place among the regions of the dag.
        tasks: all of them.
        placement: where each one runs.
        version: of the dag.
        newest: the epoch that the first attempt goes on from.
        retained: how many complete epochs are kept.
        interval_ms: from one epoch to the next.
        step_timeout_ms: of each step of a start or an end.
    """

    def __init__(
        self,
        *,
        number: int,
        tasks: Iterable[TaskId],
        placement: Mapping[TaskId, ExecutorId],
        version: int,
        newest: Manifest | None,
        retained: int,
        interval_ms: int,
        step_timeout_ms: int,
    ) -> None:
        self.number = number
        self.placement = {task: placement[task] for task in tasks}
        self.executors = frozenset(self.placement.values())  #: Those that have a task of it.
        self.history = EpochHistory(retained=retained, newest=newest)
        self.state: RegionState = "waiting"
        self.resume_at_ms = 0
        self.is_completed = False  #: The stop that is under way is the good end.
        self._is_hurt = False  # It was stopped by a failure, and has not begun again.
        self._version = version
        self._interval_ms = interval_ms
        self._step_timeout_ms = step_timeout_ms
        self._next_epoch = 1 if newest is None else newest.epoch + 1
        self._deployment: Deployment | None = None
        self._launches: Mapping[ExecutorId, int] = {}
        self._epochs: EpochCoordinator | None = None
        self._clocks: dict[TaskId, int] = {}
        self._idle: set[TaskId] = set()
        self._finished: set[TaskId] = set()
        self._garbage: list[SnapshotFile] = []

    # -- questions -------------------------------------------------------------------------

    @property
    def sessions(self) -> Mapping[TaskId, SessionId]:
        """The sessions of the present attempt; empty before the first one."""
        return self._deployment.sessions if self._deployment else {}

    @property
    def attempt(self) -> int | None:
        """The number of the present attempt."""
        return self._deployment.attempt if self._deployment else None

    @property
    def is_running(self) -> bool:
        """Whether all tasks of the present attempt were started."""
        return self._deployment is not None and self._deployment.state == "running"

    @property
    def is_finished(self) -> bool:
        """Whether every task has come to the end of its stream."""
        return self.is_running and len(self._finished) == len(self.placement)

    @property
    def is_linked(self) -> bool:
        """Whether the tasks of the present attempt exist and use links."""
        return (
            self._deployment is not None
            and self.state == "deployed"
            and self._deployment.state in {"locating", "starting", "running"}
        )

    @property
    def may_fail(self) -> bool:
        """Whether a failure would stop, or spoil, what is going on."""
        return self.state == "deployed" or (self.state == "stopping" and self.is_completed)

    def needs(self, executor_id: ExecutorId) -> bool:
        """Tell whether the region cannot come to its end without an executor."""
        if self.is_completed and self.state == "stopping" and self._deployment is not None:
            return self._deployment.awaits(executor_id)
        return self.state != "done" and executor_id in self.executors

    def was_hurt_with(self, executor_id: ExecutorId, launch: int) -> bool:
        """Tell whether a process was part of the attempt that a failure has just stopped."""
        return self._is_hurt and self._launches.get(executor_id) == launch

    # -- attempts --------------------------------------------------------------------------

    def deploy(
        self,
        *,
        attempt: int,
        first_session: int,
        executors: Mapping[ExecutorId, RegisterExecutor],
        now_ms: int,
    ) -> list[Command]:
        """Begin an attempt from the newest complete epoch."""
        assert self.state == "waiting", self.state
        newest = self.history.newest
        self._deployment = Deployment(
            version=self._version,
            region=self.number,
            attempt=attempt,
            placement=self.placement,
            addresses={each: executors[each].data_address for each in self.executors},
            first_session=first_session,
            step_timeout_ms=self._step_timeout_ms,
            epoch=self._next_epoch,
            snapshots=newest.snapshots if newest else (),
            start_time_ms=newest.clock_ms if newest else MIN_MS,
        )
        self._launches = {each: executors[each].launch for each in self.executors}
        self.state, self.is_completed, self._is_hurt = "deployed", False, False
        self._clocks, self._idle, self._finished = {}, set(), set()
        return self._deployment.on_start(now_ms)

    def on_ready(self, now_ms: int) -> None:
        """Begin to count epochs; all tasks run."""
        assert self._deployment is not None
        self._epochs = EpochCoordinator(
            region=self.number,
            attempt=self._deployment.attempt,
            epoch=self._next_epoch,
            executors=self.executors,
            interval_ms=self._interval_ms,
            now_ms=now_ms,
        )

    def stop(self, *, completed: bool, now_ms: int) -> list[Command]:
        """End the present attempt; nothing happens unless it is deployed."""
        if self._deployment is None or self.state != "deployed":
            return []
        self.state, self.is_completed = "stopping", completed
        if self._epochs is not None:  # What was announced must not be announced again.
            self._abandon(self._epochs.stored)
            self._next_epoch = self._epochs.epoch + 1
            self._epochs = None
        return self._deployment.stop(completed=completed, now_ms=now_ms)

    def restart(self, resume_at_ms: int, now_ms: int) -> list[Command]:
        """Let a failure end the present attempt, or spoil its good end; begin again later."""
        self.resume_at_ms, self._is_hurt = resume_at_ms, True
        self.is_completed = False
        return self.stop(completed=False, now_ms=now_ms)

    def on_executor_lost(self, executor_id: ExecutorId, now_ms: int) -> list[Command]:
        """Tell the present attempt that one of its executors is gone."""
        if self._deployment is None:
            return []
        return self._deployment.on_executor_lost(executor_id, now_ms)

    def on_answer(self, answer: StepAnswer, now_ms: int) -> list[Command]:
        """Take the answer of an executor to a step."""
        assert self._deployment is not None
        match answer:
            case TasksLaunched():
                return self._deployment.on_tasks_launched(answer, now_ms)
            case TaskLocationsReceived():
                return self._deployment.on_task_locations_received(answer, now_ms)
            case TasksStarted():
                return self._deployment.on_tasks_started(answer, now_ms)
            case TasksStopped():
                return self._deployment.on_tasks_stopped(answer, now_ms)

    def on_tick(self, now_ms: int) -> list[Command]:
        """Let steps that take too long be repeated, or fail."""
        return self._deployment.on_tick(now_ms) if self._deployment else []

    def on_clock(self, clock: TaskClock) -> None:
        """Note how far a task is; its session is that of the present attempt."""
        self._clocks[clock.task_id] = clock.clock_ms
        if clock.idle:
            self._idle.add(clock.task_id)
        else:
            self._idle.discard(clock.task_id)
        if clock.clock_ms == MAX_MS:
            self._finished.add(clock.task_id)

    # -- epochs ----------------------------------------------------------------------------

    def epoch_due(self, now_ms: int) -> BeginEpoch | None:
        """Return what to tell every executor of the attempt, if an epoch is to end now."""
        if self._epochs is None or self._deployment is None or not self._epochs.is_due(now_ms):
            return None
        epoch = self._epochs.begin(now_ms, clock_ms=self._clock_ms())
        return BeginEpoch(version=self._version, attempt=self._deployment.attempt, epoch=epoch)

    def on_epoch_stored(self, message: EpochStored, now_ms: int) -> Manifest | None:
        """Take what an executor has stored; return the manifest of a complete epoch."""
        if self._epochs is None or not self._epochs.awaits(message):
            self._abandon([message.snapshot])
            return None
        manifest = self._epochs.on_stored(message, now_ms)
        if manifest is not None:
            self.history.on_complete(manifest)
        return manifest

    def on_manifest_stored(self, epoch: int) -> None:
        """Note that a relaunched app master would go back to this epoch, or a later one."""
        self._abandon(self.history.on_stored(epoch))

    def take_garbage(self) -> tuple[SnapshotFile, ...]:
        """Take the files that nobody needs any more."""
        garbage, self._garbage = tuple(self._garbage), []
        return garbage

    def _abandon(self, files: Iterable[SnapshotFile]) -> None:
        self._garbage += [file for file in files if not self.history.needs(file)]

    def _clock_ms(self) -> int:
        """Return how far the tasks are that are neither idle nor finished, by their last reports.

        Not the application clock: that one does not go back when tasks do.
        """
        start_ms = self.history.clock_ms
        busy = [task for task in self.placement if task not in self._finished | self._idle]
        return max(
            start_ms, min((self._clocks.get(task, start_ms) for task in busy), default=start_ms)
        )
