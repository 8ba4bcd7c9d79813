"""ExecutorActor: hosts tasks of one application, their transport and their thread."""

import logging
import os
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, TypeAlias

from msgspec import Struct

from gearpy.actor.api import Actor, Exited, Failed, Ref
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.cluster.executor.epochs import GroupEpochs, new_group_epochs
from gearpy.cluster.executor.measuring import MeasureExecutor, executor_data
from gearpy.cluster.executor.snapshot_writer import (
    DoneAhead,
    EpochFailed,
    EpochSaved,
    NamedRecording,
    SnapshotWriter,
    StoreRecording,
    TasksLoaded,
    TasksUnloadable,
    WriterAnswer,
    WriterMessage,
)
from gearpy.cluster.executor.task_group import TaskGroup
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.net.post import Post
from gearpy.core.epoch.recorded import RECORDED
from gearpy.errors import GearpyError
from gearpy.ids import ActorPath, AppId, ExecutorId, ProcessorId, SessionId, TaskId
from gearpy.messages.app import (
    AbortEpoch,
    BeginEpoch,
    CommitEpoch,
    ExecutorFailed,
    ExecutorMessage,
    FailureKind,
    HaltSources,
    InjectRecord,
    LaunchTasks,
    LinkBroken,
    LongTurn,
    ReadAhead,
    RecordInjected,
    RecordQuarantined,
    RegisterExecutor,
    ReportClocks,
    SettleTasks,
    SnapshotsDamaged,
    StartAllTasks,
    StartStep,
    StateReadAhead,
    StepDone,
    StopAllTasks,
    TaskClock,
    TaskFailed,
    TaskLocationsReady,
    TasksStopped,
)
from gearpy.messages.metrics import MetricsData, ReportMetrics, TaskLoad
from gearpy.messages.summaries import ErrorCard
from gearpy.metrics.process import process_meter
from gearpy.metrics.samples import page_of
from gearpy.storage.checkpoints import Checkpoints
from gearpy.task.api.failure import card_of, kind_of
from gearpy.task.api.snapshots import TaskResume, TaskSnapshot
from gearpy.task.runtime.actor import (
    ClockBoard,
    HaltTask,
    InjectMessage,
    StartTask,
    StopTask,
    TaskActor,
    TaskMessage,
)
from gearpy.task.runtime.recording import Recording
from gearpy.task.runtime.turns import TurnWatch
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.transport.api import LinkLost, Transport

_log = logging.getLogger(__name__)


class ExecutorSettings(Struct, frozen=True, kw_only=True):
    """Settings of an executor: its identity, its app master, and its limits."""

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    slots: int
    app_master: ActorPath
    dispatcher: SharedDispatcher  #: Of tasks that do not ask for a thread of their own.
    pin_tasks: bool
    mailbox_max: int
    report_interval_ms: int
    checkpoints_prefix: str  #: Of the names of what it stores.
    chain_files_max: int
    clock_ms: Callable[[], int]
    metrics_interval_ms: int = 0  #: Between reports of measurements; 0: none are told.
    turn_timeout_ms: int = 0  #: A turn that lasts so long is a failure of all this; 0: none is.
    is_process: bool = True  #: It has a process of its own, which can be killed.
    metrics_address: str = ""  #: Of its page of metrics, if it has one.


class _Started(Struct, frozen=True):
    attempt: int
    task_id: TaskId


class _Failed(Struct, frozen=True):
    attempt: int
    task_id: TaskId
    error: ErrorCard
    kind: FailureKind = "raised"


class _Stopped(Struct, frozen=True):
    attempt: int
    task_id: TaskId
    error: ErrorCard | None


class _Snapshot(Struct, frozen=True):
    attempt: int
    task_id: TaskId
    snapshot: TaskSnapshot


class _Committed(Struct, frozen=True):
    attempt: int
    task_id: TaskId
    epoch: int


class _Quarantined(Struct, frozen=True):
    task_id: TaskId
    value: bytes
    event_time_ms: int
    error: ErrorCard


class _Injected(Struct, frozen=True):
    attempt: int
    number: int
    epoch: int


class _LinkLost(Struct, frozen=True):
    address: str
    reason: str


class _ReportTick(Struct, frozen=True):
    pass


class _MetricsTick(Struct, frozen=True):
    pass


class _Recorded(Struct, frozen=True):
    attempt: int
    task_id: TaskId
    recording: Recording


_TaskNews: TypeAlias = (
    _Started | _Failed | _Stopped | _Snapshot | _Committed | _Quarantined | _Injected | _Recorded
)
_Tick: TypeAlias = _ReportTick | _MetricsTick
_Message: TypeAlias = (
    ExecutorMessage | WriterAnswer | _TaskNews | _LinkLost | _Tick | MeasureExecutor
)


class ExecutorActor(Actor[_Message]):
    """Makes tasks, tells them where the others are, starts and stops them, reports clocks.

    The tasks of one attempt of one region are a `TaskGroup`; a newer attempt takes the place of
    an older one when all tasks of that have stopped.

    Runs on: its own thread. Restart: none; when it ends, or the app master does, its tasks end.
    Gearpump: `Executor`.
    """

    takes = _Message

    def __init__(
        self,
        settings: ExecutorSettings,
        *,
        runners: Callable[[], RunnerFactory],
        make_transport: Callable[[LinkLost], Transport],
        post: Post,
        checkpoints: Checkpoints,
        tuning: ProcessTuning,
        release: Callable[[], None],
    ) -> None:
        self._tuning = tuning
        self._has_dropped = False  # Tasks, since the last collection.
        self._settings = settings
        self._make_runners = runners
        self._make_transport = make_transport
        self._release = release
        self._post = post
        self._checkpoints = checkpoints
        self._board = ClockBoard()
        self._clocks: dict[TaskId, TaskClock] = {}  # For the page of metrics.
        self._long_turns: tuple[LongTurn, ...] = ()
        self._unstored = ""  # Why the last epoch could not be stored.
        self._turns = TurnWatch(self._board.turns, settings.turn_timeout_ms, self._name_of)
        self._writer: Ref[WriterMessage]
        self._recordings = deque[NamedRecording]()  # The writer is to store them.
        self._transport: Transport | None = None
        self._groups: dict[int, TaskGroup] = {}  # By region.
        self._epochs: dict[int, GroupEpochs] = {}  # By attempt.
        self._loading: dict[int, int] = {}  # The newest attempt of a region that is being loaded.

    def on_start(self) -> None:
        app_master = self._post.find(self._settings.app_master)
        if app_master is None:
            self.context.stop_self()
            return
        self.context.watch(app_master)
        try:
            self._begin()
        except BaseException:
            self.on_stop()  # An actor that has not started is not asked to clean up.
            raise

    def _begin(self) -> None:
        settings, me = self._settings, self.context.self_ref
        self._runners = self._make_runners()
        self._transport = self._make_transport(
            lambda address, reason: me.tell(_LinkLost(address, reason))
        )
        self._writer = self.context.spawn(
            lambda: SnapshotWriter(
                me,
                self._checkpoints,
                self._runners.open_ahead,
                prefix=settings.checkpoints_prefix,
                recordings=self._recordings,
                now_ms=self.context.now_ms,
            ),
            f"app{settings.app_id}-executor{settings.executor_id}-{settings.launch}-snapshots",
        )
        dag = self._runners.application.dag
        # The program stays for long; now nobody waits for its tasks yet.
        self._tuning.freeze(all_of_it=not settings.is_process)
        self._tell(
            RegisterExecutor(
                executor_id=settings.executor_id,
                launch=settings.launch,
                executor=me.path,
                data_address=self._transport.start(),
                slots=settings.slots,
                graph_hash=dag.structural_hash(),
                graph=dag.description,
                pid=os.getpid(),
                metrics_address=settings.metrics_address,
            )
        )
        self.context.schedule(settings.report_interval_ms, _ReportTick())
        if settings.metrics_interval_ms:
            process_meter()  # Counts pauses from here on.
            self.context.schedule(settings.metrics_interval_ms, _MetricsTick())

    def receive(self, message: _Message) -> object:  # noqa: C901, PLR0912 - an arm for each message
        match message:
            case LaunchTasks():
                group = self._groups.get(message.region)
                if group is None or (group.attempt < message.attempt and group.is_stopped):
                    self._load(message)
                elif group.attempt < message.attempt:
                    group.successor = message  # Made when the last task of this one has stopped.
                    self._stop_tasks(group, completed=False)
                elif group.attempt == message.attempt:
                    self._tell_done("launching", group)
            case ReadAhead():
                self._writer.tell(message)
            case TaskLocationsReady():
                group = self._group_of(message.attempt)
                if group is not None and self._transport is not None:
                    self._transport.locate(
                        {task: at.data_address for at in message.locations for task in at.tasks}
                    )
                    self._tell_done("locating", group)
            case StartAllTasks():
                self._start_all(message)
            case StopAllTasks():
                self._stop_all(message)
            case BeginEpoch() | CommitEpoch() | AbortEpoch():
                self._on_epoch(message)
            case HaltSources():
                group = self._group_of(message.attempt)
                for ref in group.source_refs() if group is not None else ():
                    ref.tell(HaltTask(message.time_ms))
            case TasksLoaded() | TasksUnloadable() | DoneAhead() | EpochSaved() | EpochFailed():
                self._on_writer(message)
            case InjectRecord():
                self._inject(message)
            case SettleTasks():
                for task_id in message.tasks:
                    Thread(
                        target=self._runners.settle,
                        args=(task_id,),
                        name=f"settle-{task_id}",
                        daemon=True,
                    ).start()
            case _ReportTick() | _MetricsTick():
                if isinstance(message, _MetricsTick):
                    self._report_metrics()
                else:
                    self._report_clocks()
                    self._check_turns()
            case _LinkLost():
                self._on_link_lost(message)
            case _Quarantined() | _Injected():
                self._on_record(message)
            case _Snapshot() | _Committed():
                self._on_epoch_of_task(message)
            case _Recorded():
                self._on_recorded(message)
            case MeasureExecutor():
                return self._measured()
            case _:
                self._on_task(message)
        return None

    def on_exited(self, exited: Exited) -> None:
        for group in self._groups.values():
            task_id = group.task_of(exited.ref)
            if task_id is None:
                continue
            if isinstance(exited.reason, Failed):
                error = card_of(
                    exited.reason.cause, operator=self._name_of(task_id), task=str(task_id)
                )
                self._on_task(_Failed(group.attempt, task_id, error))
            self._on_task(_Stopped(group.attempt, task_id, None))
            return
        if exited.ref is self._writer:
            if isinstance(exited.reason, Failed):
                raise GearpyError(f"the snapshot writer failed: {exited.reason}")
            return
        if exited.ref.path == self._settings.app_master:
            _log.info("the app master is gone, stopping")
            self.context.stop_self()

    def on_stop(self) -> None:
        if self._transport is not None:
            self._transport.stop()
        self._settings.dispatcher.close()
        self._release()

    # -- the start -------------------------------------------------------------------------

    def _load(self, message: LaunchTasks) -> None:
        if self._loading.get(message.region, -1) < message.attempt:
            self._loading[message.region] = message.attempt
            self._writer.tell(message)

    def _make_group(self, loaded: TasksLoaded) -> None:
        message, resume = loaded.launch, loaded.resume
        del self._loading[message.region]
        old = self._groups.get(message.region)
        if old is not None:
            self._has_dropped = True
            self._epochs.pop(old.attempt, None)
            for task_id, ref in old.tasks.items():
                if self._transport is not None:
                    self._transport.unregister(task_id)
                self.context.unwatch(ref)
                self.context.stop(ref)
            old.tasks.clear()
            old.runners.clear()
        group = TaskGroup(message, sources=frozenset(self._runners.application.dag.sources()))
        self._groups[message.region] = group
        self._epochs[group.attempt] = new_group_epochs(
            group,
            loaded,
            prefix=self._settings.checkpoints_prefix,
            executor_id=self._settings.executor_id,
            chain_files_max=self._settings.chain_files_max,
            tell=self._tell,
            writer=self._writer,
        )
        for launch in message.tasks:
            task = launch.task_id
            group.tasks[task] = self._spawn(group, task, launch.session, message, resume.get(task))
        self._tell_done("launching", group)

    def _spawn(
        self,
        group: TaskGroup,
        task_id: TaskId,
        session: SessionId,
        launch: LaunchTasks,
        resume: TaskResume | None,
    ) -> Ref[TaskMessage]:
        settings, transport = self._settings, self._transport
        assert transport is not None, "made before the executor registered"
        runner = self._runners.make(
            task_id,
            session,
            epoch=launch.epoch,
            resume=resume,
            first_session=launch.first_session,
            probe=next((each for each in launch.probes if each.task_id == task_id), None),
        )
        group.runners[task_id] = runner
        processor = self._runners.application.processors[ProcessorId(task_id.processor)]
        may_block = processor.source is not None and processor.source.calls_program
        pinned = processor.dispatcher == "pinned" or (
            (settings.pin_tasks or may_block) and processor.dispatcher == "default"
        )
        news = _News(self.context.self_ref, group.attempt)
        ref = self.context.spawn(
            lambda: TaskActor(
                runner,
                transport,
                news,
                self._board,
                clock_ms=settings.clock_ms,
                report_interval_ms=settings.report_interval_ms,
            ),
            f"app{settings.app_id}-executor{settings.executor_id}-task{task_id}-{session}",
            dispatcher="pinned" if pinned else settings.dispatcher,
            mailbox_max=settings.mailbox_max,
        )
        transport.register(task_id, partial(_tell_all, ref))
        return ref

    def _start_all(self, message: StartAllTasks) -> None:
        group = self._group_of(message.attempt)
        if group is None:
            return
        if group.waiting_start is None:
            if self._has_dropped:
                self._tuning.freeze()
            else:
                self._tuning.keep()
            self._has_dropped = False
            group.waiting_start = set(group.tasks)
            for ref in group.tasks.values():
                ref.tell(StartTask(message.start_time_ms, message.halt_ms))
        self._tell_if_started(group)

    # -- the end ---------------------------------------------------------------------------

    def _stop_all(self, message: StopAllTasks) -> None:
        group = self._group_of(message.attempt)
        if group is not None:
            group.is_asked_to_stop = True
            self._stop_tasks(group, completed=message.completed)
            self._on_maybe_stopped(group)
            return
        self._loading = {r: each for r, each in self._loading.items() if each != message.attempt}
        self._tell(  # It was never launched here, or is over.
            TasksStopped(
                executor_id=self._settings.executor_id,
                version=message.version,
                attempt=message.attempt,
            )
        )

    def _stop_tasks(self, group: TaskGroup, *, completed: bool) -> None:
        for ref in group.begin_stop():
            ref.tell(StopTask(completed))

    def _on_maybe_stopped(self, group: TaskGroup) -> None:
        if not group.is_stopped:
            return
        if group.is_asked_to_stop:
            self._report_clocks()
            self._report_metrics()
            self._tell(
                TasksStopped(
                    executor_id=self._settings.executor_id,
                    version=group.version,
                    attempt=group.attempt,
                    errors=tuple(group.stop_errors),
                )
            )
        if group.successor is not None:
            self._load(group.successor)

    # -- what tasks say --------------------------------------------------------------------

    def _on_task(self, message: _Started | _Failed | _Stopped) -> None:
        group, task = self._group_of(message.attempt), message.task_id
        if group is None:
            return
        match message:
            case _Started():
                if group.waiting_start is not None:
                    group.waiting_start.discard(task)
                    self._tell_if_started(group)
            case _Failed():
                self._report_clocks()
                self._tell(
                    TaskFailed(
                        executor_id=self._settings.executor_id,
                        task_id=task,
                        session=group.sessions[task],
                        error=message.error,
                        kind=message.kind,
                    )
                )
            case _Stopped():
                if group.on_stopped(task, message.error):
                    self._on_maybe_stopped(group)

    def _tell_if_started(self, group: TaskGroup) -> None:
        if group.waiting_start is not None and not group.waiting_start:
            self._tell_done("starting", group)

    def _report_clocks(self) -> None:
        clocks = self._board.collect()
        if self._settings.metrics_address:
            self._clocks.update((each.task_id, each) for each in clocks)
        had_long = bool(self._long_turns)
        self._long_turns = self._turns.long_turns(self._settings.clock_ms())
        if clocks or had_long or self._long_turns:
            self._tell(
                ReportClocks(
                    executor_id=self._settings.executor_id,
                    clocks=clocks,
                    long_turns=self._long_turns,
                )
            )

    def _report_metrics(self) -> None:
        if not self._settings.metrics_interval_ms:
            return
        loads, first = self._loads(), 0
        process, at_ms = process_meter().sample(), self.context.wall_ms()
        while True:
            tasks, more_from = page_of(loads, first)
            self._tell(
                ReportMetrics(
                    executor_id=self._settings.executor_id,
                    launch=self._settings.launch,
                    at_ms=at_ms,
                    process=process,
                    tasks=tasks,
                )
            )
            if not (first := more_from):
                return

    def _loads(self) -> list[TaskLoad]:
        runners = [each for group in self._groups.values() for each in group.runners.values()]
        return [load for runner in runners if (load := runner.load()) is not None]

    def _measured(self) -> MetricsData:
        settings = self._settings
        return executor_data(
            settings.app_id,
            settings.executor_id,
            settings.launch,
            clocks=self._clocks,
            loads=self._loads(),
        )

    def _check_turns(self) -> None:
        """Give this executor up if a task does not come back: its thread cannot be stopped."""
        error = self._turns.overdue(self._settings.clock_ms())
        if error is not None:
            settings = self._settings
            self._tell(
                ExecutorFailed(
                    executor_id=settings.executor_id,
                    launch=settings.launch,
                    error=error,
                    is_replaceable=settings.is_process,
                )
            )

    def _on_record(self, message: _Quarantined | _Injected) -> None:
        executor_id = self._settings.executor_id
        if isinstance(message, _Injected):
            self._tell(
                RecordInjected(
                    executor_id=executor_id,
                    attempt=message.attempt,
                    number=message.number,
                    epoch=message.epoch,
                )
            )
            return
        self._tell(
            RecordQuarantined(
                executor_id=executor_id,
                processor_id=message.task_id.processor,
                value=message.value,
                event_time_ms=message.event_time_ms,
                error=message.error,
            )
        )

    def _inject(self, message: InjectRecord) -> None:
        group = self._group_of(message.attempt)
        ref = group.tasks.get(message.task_id) if group is not None else None
        if ref is not None:
            ref.tell(InjectMessage(message.value, message.event_time_ms, message.number))

    # -- epochs ----------------------------------------------------------------------------

    def _on_epoch(self, message: BeginEpoch | CommitEpoch | AbortEpoch) -> None:
        epochs = self._epochs.get(message.attempt)
        if isinstance(message, AbortEpoch) or epochs is None:
            return  # Snapshots of an epoch that is given up are stored with the next.
        if isinstance(message, BeginEpoch):
            epochs.begin(message)
        else:
            epochs.commit(message)

    def _on_epoch_of_task(self, message: _Snapshot | _Committed) -> None:
        epochs = self._epochs.get(message.attempt)
        if epochs is None:
            return
        if isinstance(message, _Snapshot):
            epochs.on_snapshot(message.task_id, message.snapshot)
        else:
            epochs.on_committed(message.task_id, message.epoch)

    def _on_recorded(self, message: _Recorded) -> None:
        group = self._group_of(message.attempt)
        if group is not None:
            prefix = f"{self._settings.checkpoints_prefix}/{RECORDED}/region{group.region}"
            task, recording = message.task_id, message.recording
            name = f"{prefix}/{recording.name(task, message.attempt)}"
            self._recordings.append(NamedRecording(task, name, recording))
            self._writer.tell(StoreRecording())

    def _on_writer(self, message: WriterAnswer) -> None:
        match message:
            case TasksLoaded():
                if self._loading.get(message.launch.region) == message.launch.attempt:
                    self._make_group(message)
            case TasksUnloadable():
                launch = message.launch
                # A later attempt may be being read.
                if self._loading.get(launch.region) == launch.attempt:
                    del self._loading[launch.region]
                self._tell(
                    SnapshotsDamaged(
                        executor_id=self._settings.executor_id,
                        version=launch.version,
                        attempt=launch.attempt,
                        location=message.location,
                        reason=message.reason,
                        is_away=message.is_away,
                    )
                )
            case DoneAhead(request=request):
                self._tell(
                    StateReadAhead(
                        executor_id=self._settings.executor_id,
                        version=request.version,
                        region=request.region,
                        epoch=request.epoch,
                        damaged=message.damaged,
                        reason=message.reason,
                    )
                )
            case EpochSaved():
                self._unstored = ""
                if (epochs := self._epochs.get(message.job.attempt)) is not None:
                    epochs.on_saved(message)
            case EpochFailed():
                job = message.job
                if message.reason != self._unstored:
                    _log.error("epoch %d not stored: %s", job.epoch, message.reason)
                self._unstored = message.reason
                epochs = self._epochs.get(job.attempt)
                if epochs is None:
                    return
                epochs.on_failed(message)
                if (error := message.operator_error) is not None:  # It would, whenever it is tried.
                    task = min(job.snapshots)
                    self._on_task(_Failed(job.attempt, task, card_of(error), kind_of(error)))

    # --------------------------------------------------------------------------------------

    def _on_link_lost(self, message: _LinkLost) -> None:
        self._tell(
            LinkBroken(
                executor_id=self._settings.executor_id,
                address=message.address,
                reason=message.reason,
            )
        )

    def _group_of(self, attempt: int) -> TaskGroup | None:
        return next((each for each in self._groups.values() if each.attempt == attempt), None)

    def _name_of(self, task_id: TaskId) -> str:
        return self._runners.application.processors[ProcessorId(task_id.processor)].name

    def _tell_done(self, step: StartStep, group: TaskGroup) -> None:
        self._tell(
            StepDone(
                executor_id=self._settings.executor_id,
                version=group.version,
                attempt=group.attempt,
                step=step,
            )
        )

    def _tell(self, message: Any) -> None:
        self._post.tell(self._settings.app_master, message)


class _News:
    """Passes the reports of one attempt's tasks from their threads to the executor's mailbox."""

    def __init__(self, executor: Ref[_Message], attempt: int) -> None:
        self._executor = executor
        self._attempt = attempt

    def on_task_started(self, task_id: TaskId) -> None:
        self._executor.tell(_Started(self._attempt, task_id))

    def on_task_failed(self, task_id: TaskId, error: ErrorCard, kind: FailureKind) -> None:
        self._executor.tell(_Failed(self._attempt, task_id, error, kind))

    def on_task_stopped(self, task_id: TaskId, error: ErrorCard | None) -> None:
        self._executor.tell(_Stopped(self._attempt, task_id, error))

    def on_task_snapshot(self, task_id: TaskId, snapshot: TaskSnapshot) -> None:
        self._executor.tell(_Snapshot(self._attempt, task_id, snapshot))

    def on_task_committed(self, task_id: TaskId, epoch: int) -> None:
        self._executor.tell(_Committed(self._attempt, task_id, epoch))

    def on_record_quarantined(
        self, task_id: TaskId, value: bytes, event_time_ms: int, card: ErrorCard
    ) -> None:
        self._executor.tell(_Quarantined(task_id, value, event_time_ms, card))

    def on_record_injected(self, task_id: TaskId, number: int, epoch: int) -> None:
        self._executor.tell(_Injected(self._attempt, number, epoch))

    def on_task_recorded(self, task_id: TaskId, recording: Recording) -> None:
        self._executor.tell(_Recorded(self._attempt, task_id, recording))


def _tell_all(ref: Ref[TaskMessage], messages: list[Any]) -> None:
    for message in messages:
        ref.tell(message)
