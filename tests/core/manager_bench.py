"""An `ApplicationCore` on a bench: its surroundings do at once what it says, until told not to."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.decisions import Command, RecoveryLimits, StoreManifest
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch, RequestSlots
from gearpy.core.app.regions.region import Region
from gearpy.core.base.restart import RestartPolicy
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.pace import EpochCut
from gearpy.core.master.slots import equal_parts
from gearpy.ids import (
    MAX_MS,
    MIN_MS,
    ActorPath,
    ExecutorId,
    ProcessorId,
    SessionId,
    TaskId,
    WorkerId,
)
from gearpy.messages.app import (
    BeginEpoch,
    CommitEpoch,
    EpochCommitted,
    EpochStored,
    ExecutorMessage,
    FailureKind,
    LaunchTasks,
    LinkBroken,
    RegisterExecutor,
    SnapshotFile,
    SnapshotsDamaged,
    StartAllTasks,
    StepDone,
    StopAllTasks,
    TaskClock,
    TaskFailed,
    TaskLocationsReady,
    TaskOffsets,
    TasksStopped,
)
from gearpy.messages.cluster import Allocation
from gearpy.messages.summaries import ErrorCard

A, B = ExecutorId(0), ExecutorId(1)
LOST = "messages of task 0.0 are lost"

C = TypeVar("C", bound=Command)
M = TypeVar("M", bound=ExecutorMessage)
_ANSWERS: Final[dict[type, Any]] = {
    LaunchTasks: partial(StepDone, step="launching"),
    TaskLocationsReady: partial(StepDone, step="locating"),
    StartAllTasks: partial(StepDone, step="starting"),
    StopAllTasks: TasksStopped,
}


def a_dag(*regions: tuple[int, int]) -> Dag:
    processors, edges = [], []
    for number, parallelisms in enumerate(regions):
        source, sink = ProcessorId(2 * number), ProcessorId(2 * number + 1)
        for pid, parallelism in zip((source, sink), parallelisms, strict=True):
            processors.append(ProcessorSpec(id=pid, name=f"p{pid}", parallelism=parallelism))
        edges.append(EdgeSpec(source=source, target=sink))
    return Dag.build(processors, edges)


def some_limits(
    *,
    restarts: int = 5,
    backoff_ms: int = 100,
    cut: EpochCut = "position",
    epoch_timeout_ms: int = 60_000,
    retained: int = 2,
    interval_ms: int = 300,
    trial_ms: int = 0,
    steps_over: bool = False,
    retries_errors: bool = True,
) -> RecoveryLimits:
    return RecoveryLimits(
        restarts=RestartPolicy(
            max_restarts=restarts, window_ms=600_000, backoff_ms=backoff_ms, backoff_max_ms=1000
        ),
        poison_attempts=3,
        step_timeout_ms=2000,
        start_timeout_ms=3000,
        allocation_timeout_ms=60_000,
        epoch_cut=cut,
        epoch_interval_ms=interval_ms,
        max_overhead_percent=100,
        epoch_timeout_ms=epoch_timeout_ms,
        epochs_retained=retained,
        stall_after_ms=60_000,
        trial_ms=trial_ms,
        steps_over=steps_over,
        retries_errors=retries_errors,
    )


class Bench:
    """An application core whose surroundings do at once what it says, until told not to."""

    def __init__(
        self,
        *regions: tuple[int, int],
        executors: int = 2,
        restarts: int = 5,
        backoff_ms: int = 100,
        epoch_timeout_ms: int = 60_000,
        interval_ms: int = 300,
        trial_ms: int = 0,
        is_begun: bool = True,
        dag: Dag | None = None,
        steps_over: bool = False,
        retries_errors: bool = True,
    ) -> None:
        self.now_ms = 1000
        self._limits = some_limits(
            restarts=restarts,
            backoff_ms=backoff_ms,
            epoch_timeout_ms=epoch_timeout_ms,
            interval_ms=interval_ms,
            trial_ms=trial_ms,
            steps_over=steps_over,
            retries_errors=retries_errors,
        )
        self.dag = dag or a_dag(*regions or [(2, 2)])
        self._wanted = executors
        self.manager = self.another(launch=1)
        self.launches: dict[ExecutorId, int] = {}
        self.silent: set[ExecutorId] = set()  #: They answer nothing.
        self.unanswered: set[tuple[ExecutorId, type]] = set()  #: Who does not answer what.
        self.frozen: set[ExecutorId] = set()  #: Their tasks report nothing when they are started.
        self.stores = True  #: Manifests are.
        self.grants = True  #: Slots are.
        self.done: list[Command] = []  #: All that was decided.
        if is_begun:
            self.begin()

    def another(
        self,
        *,
        launch: int = 1,
        has_run: bool = False,
        manifests: Sequence[Manifest] = (),
        overrides: Sequence[TaskOffsets] = (),
        owns: Callable[[str], bool] = lambda _: True,
        after: ApplicationCore | None = None,
        is_trial: bool = False,
        untried: Iterable[int] = (),
    ) -> ApplicationCore:
        return ApplicationCore(
            self.dag,
            executors=self._wanted,
            limits=self._limits,
            launch=launch,
            rng=Random(1),
            now_ms=self.now_ms,
            has_run=has_run,
            manifests=manifests,
            overrides=overrides,
            owns=owns,
            after=after,
            is_trial=is_trial,
            untried=untried,
        )

    def begin(self) -> None:
        self.obey(self.manager.on_start(self.now_ms))

    @property
    def last_launch(self) -> Launch:
        return only(self.done, Launch)[-1]

    # -- what the surroundings do ----------------------------------------------------------

    def obey(self, commands: Sequence[Command]) -> list[Command]:
        first = len(self.done)
        waiting = list(commands)
        while waiting:
            command = waiting.pop(0)
            self.done.append(command)
            waiting += self._follow(command)
        return self.done[first:]

    def _follow(self, command: Command) -> list[Command]:
        match command:
            case RequestSlots() if self.grants and command.slots:
                sizes = command.sizes or equal_parts(command.slots, command.executors)
                return self.manager.on_allocated(map(allocation, sizes), self.now_ms)
            case Launch():
                self.launches[command.executor_id] = command.launch
                return [] if command.executor_id in self.silent else self.register(command)
            case StoreManifest() if self.stores:
                return [
                    each
                    for manifest in (command.manifest, *command.also)
                    for each in self.manager.on_manifest_stored(
                        manifest.region, manifest.epoch, self.now_ms
                    )
                ]
            case Send() if command.executor_id not in self.silent:
                return self._answer(command)
            case _:
                return []

    def register(self, command: Launch, *, graph_hash: str | None = None) -> list[Command]:
        executor_id, launch = command.executor_id, command.launch
        message = RegisterExecutor(
            executor_id=executor_id,
            launch=launch,
            executor=ActorPath(f"host:{launch}", "executor"),
            data_address=address(executor_id, launch),
            slots=command.allocation.slots,
            graph_hash=graph_hash or self.dag.structural_hash(),
            graph=(),
        )
        return self.manager.on_executor_registered(message, self.now_ms)

    def _answer(self, command: Send) -> list[Command]:
        executor_id, message = command.executor_id, command.message
        if (executor_id, type(message)) in self.unanswered:
            return []
        match message:
            case BeginEpoch():
                region = self._region_in(message.attempt)
                is_last = region.epochs.is_finished or message.is_last
                return self.store(region, executor_id) if is_last else []
            case CommitEpoch():
                committed = EpochCommitted(
                    executor_id=executor_id, attempt=message.attempt, epoch=message.epoch
                )
                return self.manager.on_epoch_committed(committed, self.now_ms)
            case LaunchTasks() | TaskLocationsReady() | StartAllTasks() | StopAllTasks():
                kind = _ANSWERS[type(message)]
                answer = kind(
                    executor_id=executor_id, version=message.version, attempt=message.attempt
                )
                commands = self.manager.on_answer(answer, self.now_ms)
                if isinstance(message, StartAllTasks) and executor_id not in self.frozen:
                    return [*commands, *self.report(message.attempt, executor_id)]
                return [*commands]
            case _:
                return []

    def report(self, attempt: int, executor_id: ExecutorId) -> list[Command]:
        """Let the tasks of an attempt in one executor report that they have read nothing so far."""
        region = self._region_in(attempt)
        clocks = [
            TaskClock(task_id=task, session=session, clock_ms=MIN_MS, watermark_ms=MIN_MS)
            for task, session in region.sessions.items()
            if region.placement[task] == executor_id
        ]
        return self.manager.on_clocks(clocks, self.now_ms)

    def _region_in(self, attempt: int) -> Region:
        return next(each for each in self.manager.regions if each.attempt == attempt)

    def store(
        self, region: Region, executor_id: ExecutorId, *more: SnapshotFile, has_more: bool = False
    ) -> list[Command]:
        """Let an executor store the epoch that was announced last; with files from before."""
        begin = self.announced(region)
        tasks = tuple(t for t, at in region.placement.items() if at == executor_id)
        name = f"{region.number}/{begin.epoch}-{begin.attempt}-{executor_id}"
        message = EpochStored(
            executor_id=executor_id,
            attempt=begin.attempt,
            epoch=begin.epoch,
            snapshots=(*more, SnapshotFile(location=name, sha256="", tasks=tasks)),
            has_more=has_more,
        )
        return self.manager.on_epoch_stored(message, self.now_ms)

    def announced(self, region: Region) -> BeginEpoch:
        return [each for each in self._begun if each.attempt == region.attempt][-1]

    @property
    def _begun(self) -> list[BeginEpoch]:
        sent = [each.message for each in self.done if isinstance(each, Send)]
        return [each for each in sent if isinstance(each, BeginEpoch)]

    # -- what happens ----------------------------------------------------------------------

    def tick(self, after_ms: int) -> list[Command]:
        """Let time pass in steps of 100 ms; return all that is decided."""
        first = len(self.done)
        for _ in range(0, after_ms, 100):
            self.now_ms += 100
            self.obey(self.manager.on_tick(self.now_ms))
        return self.done[first:]

    def lose(self, executor_id: ExecutorId, cause: str = "signal 9") -> list[Command]:
        launch = self.launches[executor_id]
        return self.obey(self.manager.on_executor_gone(executor_id, launch, cause, self.now_ms))

    def fail_task(
        self,
        task: TaskId,
        cause: str = LOST,
        *,
        record: str = "",
        session: int | None = None,
        kind: FailureKind = "raised",
        is_away: bool = False,
    ) -> list[Command]:
        region = next(each for each in self.manager.regions if task in each.placement)
        message = TaskFailed(
            executor_id=region.placement[task],
            task_id=task,
            session=SessionId(session) if session is not None else region.sessions[task],
            error=ErrorCard(cause=cause, operator="map", record=record, is_away=is_away),
            kind=kind,
        )
        return self.obey(self.manager.on_task_failed(message, self.now_ms))

    def damage(
        self, executor_id: ExecutorId, location: str, *, attempt: int | None = None
    ) -> list[Command]:
        """Let an executor say that the attempt of region 0, or another, cannot begin."""
        damaged = SnapshotsDamaged(
            executor_id=executor_id,
            version=0,
            attempt=self.manager.regions[0].attempt or 0 if attempt is None else attempt,
            location=location,
            reason="bad",
        )
        self.unanswered = set()
        return self.obey(self.manager.on_answer(damaged, self.now_ms))

    def break_link(
        self, executor_id: ExecutorId, other: ExecutorId, launch: int = 0
    ) -> list[Command]:
        to = address(other, launch or self.launches[other])
        message = LinkBroken(executor_id=executor_id, address=to, reason="reset")
        return self.obey(self.manager.on_link_broken(message, self.now_ms))

    def finish(self, region: int) -> list[Command]:
        """Let all tasks of a region come to their end, and the epoch under way, too."""
        first = len(self.done)
        is_under_way = self.is_ending(region)
        clocks = [
            TaskClock(task_id=task, session=session, clock_ms=MAX_MS, watermark_ms=MAX_MS)
            for task, session in self.manager.regions[region].sessions.items()
        ]
        self.obey(self.manager.on_clocks(clocks, self.now_ms))
        if is_under_way:
            self.end_epoch(region)
        return self.done[first:]

    def is_ending(self, region: int) -> bool:
        """Tell whether an epoch of a region was announced and is not complete."""
        of_region = self.manager.regions[region]
        begun = [each.epoch for each in self._begun if each.attempt == of_region.attempt]
        newest = of_region.history.newest
        return bool(begun) and (newest is None or newest.epoch < begun[-1])

    def end_epoch(self, region: int = 0) -> list[Command]:
        of_region, first = self.manager.regions[region], len(self.done)
        for executor_id in sorted(of_region.executors):
            self.obey(self.store(of_region, executor_id))
        return self.done[first:]

    @property
    def states(self) -> list[str]:
        return ["running" if each.is_running else each.state for each in self.manager.regions]


def allocation(slots: int, worker: int = 7) -> Allocation:
    return Allocation(worker_id=WorkerId(worker), worker=a_worker(worker), slots=slots)


def a_worker(number: int = 7) -> ActorPath:
    return ActorPath(f"host:{number}", "worker")


def address(executor_id: ExecutorId, launch: int) -> str:
    return f"data:{executor_id}-{launch}"


def stopped(region: Region, executor_id: ExecutorId, *errors: ErrorCard) -> TasksStopped:
    attempt = region.attempt or 0
    return TasksStopped(executor_id=executor_id, version=0, attempt=attempt, errors=errors)


def kinds(commands: Sequence[Command]) -> list[str]:
    return [
        type(each.message).__name__ if isinstance(each, Send) else type(each).__name__
        for each in commands
    ]


def only(commands: Sequence[Command], kind: type[C]) -> list[C]:
    return [each for each in commands if isinstance(each, kind)]


def sent(commands: Sequence[Command], kind: type[M]) -> list[M]:
    return [each.message for each in only(commands, Send) if isinstance(each.message, kind)]
