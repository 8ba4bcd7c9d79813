"""AppMasterActor: one application from its slots to its end."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, TypeAlias, assert_never

from gearpy.actor.api import Actor, Exited, Failed
from gearpy.cluster.describe import detail_of
from gearpy.cluster.post import Post
from gearpy.core.epochs import decode_manifest, encode_manifest
from gearpy.core.progress import progress_of
from gearpy.core.task_manager import (
    Activated,
    Command,
    DropSnapshots,
    Ended,
    Launch,
    RecoveryLimits,
    Release,
    RequestSlots,
    Send,
    Stop,
    StoreManifest,
    Survived,
    TaskManager,
)
from gearpy.errors import GearpyError
from gearpy.ids import ActorPath, ExecutorId, TaskId
from gearpy.messages.app import (
    EpochStored,
    ExecutorToAppMaster,
    InjectRecord,
    LinkBroken,
    RecordQuarantined,
    RegisterExecutor,
    ReportClocks,
    TaskFailed,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.client import (
    DescribeApplication,
    QuarantinedList,
    ReplayAccepted,
    ReplayNow,
    ReplayQuarantined,
)
from gearpy.messages.cluster import (
    ApplicationDetail,
    ApplicationProgress,
    ApplicationStatus,
    ApplicationStatusChanged,
    AppMasterRegistered,
    ErrorCard,
    ExecutorExited,
    ExecutorLaunchRejected,
    Failure,
    LaunchExecutor,
    PutValue,
    Quarantine,
    QuarantineStored,
    Refused,
    RegisterAppMaster,
    RequestResource,
    ResourceAllocated,
    ResourceUpdate,
    ShutdownExecutor,
    ValueStored,
)
from gearpy.storage.checkpoints import Checkpoints
from gearpy.task.application import StreamApplication
from gearpy.task.failure import card_of

__all__ = ["AppMasterActor", "AppMasterSettings"]

_log = logging.getLogger(__name__)
_REGISTER_AGAIN_MS: Final = 1000
_REGION_KEY: Final = "region-"
#: Stored before the snapshots are deleted: a relaunched app master must not look for them.
_OUTCOME_KEY: Final = "outcome"
_FAILURES_KEPT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AppMasterSettings:
    """What an app master works with; all of it is in the configuration."""

    limits: RecoveryLimits
    tick_ms: int
    reconnect_timeout_ms: int
    quarantine_max: int


@dataclass(frozen=True, slots=True)
class _Tick:
    pass


_Question: TypeAlias = DescribeApplication | ReplayNow | ReplayQuarantined
_Message: TypeAlias = (
    ExecutorToAppMaster
    | AppMasterRegistered
    | ResourceAllocated
    | ExecutorLaunchRejected
    | ExecutorExited
    | ValueStored
    | QuarantineStored
    | _Question
    | _Tick
)


class AppMasterActor(Actor[_Message]):
    """Does what its `TaskManager` decides, and tells it what happens.

    Runs on: its own thread, in the application's executor -1. Restart: the master has another
    one launched, which goes on from the epochs that are stored; executors end with the old one.
    While the master is away everything goes on but what needs new slots.
    Gearpump: `AppMaster`.
    """

    def __init__(
        self,
        launch: LaunchExecutor,
        settings: AppMasterSettings,
        *,
        load: Callable[[], StreamApplication],
        post: Post,
        checkpoints: Checkpoints,
        rng: Random,
        release: Callable[[], None],
    ) -> None:
        self._launch = launch
        self._settings = settings
        self._load = load
        self._post = post
        self._checkpoints = checkpoints
        self._rng = rng
        self._release = release
        self._app_id = launch.app_id
        self._master = launch.reply_to
        self._manager: TaskManager | None = None
        self._executors: dict[ExecutorId, ActorPath] = {}
        self._launched: dict[ActorPath, tuple[ExecutorId, int]] = {}
        self._failures: list[Failure] = []
        self._status: ApplicationStatus = "pending"
        self._cause: ErrorCard | None = None
        self._has_succeeded = False
        self._quarantined = 0
        self._unstored: dict[int, Quarantine] = {}
        self._is_registered = False
        self._asked_master_ms = 0
        self._lost_master_ms = 0

    # -- the master ------------------------------------------------------------------------

    def on_start(self) -> None:
        """Register with the master; the rest follows its answer."""
        self._lost_master_ms = self.context.now_ms()
        self._register()
        self.context.schedule(self._settings.tick_ms, _Tick())

    def _register(self) -> None:
        self._asked_master_ms = self.context.now_ms()
        self._post.tell(
            self._master,
            RegisterAppMaster(
                app_id=self._app_id,
                app_master=self.context.self_ref.path,
                launch=self._launch.launch,
                status=self._status,
            ),
        )

    def _on_registered(self, message: AppMasterRegistered) -> None:
        if message.launch != self._launch.launch:
            return
        if not self._is_registered:
            self._is_registered = True
            if (ref := self._post.find(self._master)) is not None:
                self.context.watch(ref)
        if self._manager is None and self._status == "pending":
            self._begin(message)
        elif self._manager is not None:
            self._repeat(self._manager)
        self._tell_status()

    def _repeat(self, manager: TaskManager) -> None:
        """Tell a master that is back what it may not have heard, or not stored."""
        self._do(manager.on_master(is_there=True, now_ms=self.context.now_ms()))
        for manifest in manager.newest_manifests():
            self._do([StoreManifest(manifest=manifest)])
        if self._has_succeeded and self._status != "succeeded":
            self._store_outcome()
        for quarantined in self._unstored.values():
            self._tell_master(quarantined)

    def _begin(self, message: AppMasterRegistered) -> None:
        if _OUTCOME_KEY in message.values:
            self._on_outcome_stored()
            return
        try:
            application = self._load()
            manifests = [
                decode_manifest(value)
                for key, value in sorted(message.values.items())
                if key.startswith(_REGION_KEY)
            ]
        except GearpyError as error:
            self._end("failed", card_of(error))
            return
        self._dag = application.dag
        now_ms = self.context.now_ms()
        self._manager = TaskManager(
            application.dag,
            executors=self._launch.executors,
            limits=self._settings.limits,
            launch=self._launch.launch,
            rng=self._rng,
            now_ms=now_ms,
            manifests=manifests,
        )
        self._do(self._manager.on_start(now_ms))

    def _on_master_lost(self) -> None:
        _log.warning("application %s: the master is away", self._app_id)
        self._is_registered = False
        self._lost_master_ms = self.context.now_ms()
        if self._manager is not None:
            self._manager.on_master(is_there=False, now_ms=self._lost_master_ms)

    def _look_for_master(self, now_ms: int) -> None:
        if self._is_registered:
            return
        if now_ms - self._lost_master_ms >= self._settings.reconnect_timeout_ms:
            _log.error("application %s: no master for too long, stopping", self._app_id)
            self.context.stop_self()
        elif now_ms - self._asked_master_ms >= _REGISTER_AGAIN_MS:
            self._register()

    # -- messages --------------------------------------------------------------------------

    def receive(self, message: _Message) -> object:
        """Feed one message to the task manager, and do what it says; or answer a question."""
        if isinstance(message, AppMasterRegistered):
            self._on_registered(message)
        elif isinstance(message, _Tick):
            self._on_tick()
        elif isinstance(message, DescribeApplication):
            return self._detail()
        elif self._manager is None:
            return self._before_begin(message)
        elif isinstance(message, ReplayNow | ReplayQuarantined):
            return self._replay(self._manager, message)
        elif isinstance(message, QuarantineStored):
            self._unstored.pop(message.number, None)
        elif isinstance(message, RecordQuarantined):
            self._on_quarantined(self._manager, message)
        else:
            self._do(self._decide(self._manager, message))
        return None

    def _before_begin(self, message: _Message) -> object:
        if isinstance(message, ResourceAllocated):
            for each in message.allocations:
                self._do([Release(worker_id=each.worker_id, slots=each.slots)])
        if isinstance(message, ReplayNow | ReplayQuarantined):
            return Refused(reason=f"application {self._app_id} has not begun yet")
        return None

    def _decide(  # noqa: C901, PLR0911 - an arm for each message
        self,
        manager: TaskManager,
        message: RegisterExecutor
        | TasksLaunched
        | TaskLocationsReceived
        | TasksStarted
        | TasksStopped
        | ReportClocks
        | TaskFailed
        | EpochStored
        | LinkBroken
        | ResourceAllocated
        | ExecutorLaunchRejected
        | ExecutorExited
        | ValueStored,
    ) -> Iterable[Command]:
        now_ms = self.context.now_ms()
        match message:
            case RegisterExecutor():
                return self._on_executor_registered(manager, message, now_ms)
            case TasksLaunched() | TaskLocationsReceived() | TasksStarted() | TasksStopped():
                return manager.on_answer(message, now_ms)
            case ReportClocks():
                return manager.on_clocks(message.clocks, now_ms)
            case TaskFailed():
                return manager.on_task_failed(message, now_ms)
            case EpochStored():
                return manager.on_epoch_stored(message, now_ms)
            case LinkBroken():
                return manager.on_link_broken(message, now_ms)
            case ResourceAllocated():
                return manager.on_allocated(message.allocations, now_ms)
            case ExecutorLaunchRejected():
                cause = f"it was not started: {message.reason}"
                return manager.on_executor_gone(message.executor_id, message.launch, cause, now_ms)
            case ExecutorExited():
                return manager.on_executor_gone(
                    message.executor_id, message.launch, message.cause, now_ms
                )
            case ValueStored() if message.key == _OUTCOME_KEY:
                self._on_outcome_stored()
                return []
            case ValueStored():
                region = int(message.key.removeprefix(_REGION_KEY))
                return manager.on_manifest_stored(region, message.version)
            case _:
                assert_never(message)

    def _on_executor_registered(
        self, manager: TaskManager, message: RegisterExecutor, now_ms: int
    ) -> Iterable[Command]:
        if manager.executors.is_current(message.executor_id, message.launch):
            self._executors[message.executor_id] = message.executor
            self._launched[message.executor] = (message.executor_id, message.launch)
            if (ref := self._post.find(message.executor)) is not None:
                self.context.watch(ref)
        else:  # A launch that was given up; it would wait for tasks, and keep its slots, for ever.
            self._post.give_up(message.executor)
        return manager.on_executor_registered(message, now_ms)

    def on_exited(self, exited: Exited) -> None:
        """Hear that the master, a worker or an executor is gone."""
        path, manager = exited.ref.path, self._manager
        if path == self._master:
            self._on_master_lost()
        elif manager is None:
            return
        elif (found := self._launched.pop(path, None)) is None:
            self._do(self._lost_worker(path))
        elif isinstance(exited.reason, Failed):
            now_ms = self.context.now_ms()
            self._do(manager.on_executor_gone(*found, str(exited.reason), now_ms))
        else:
            manager.on_executor_silent(*found, self.context.now_ms())

    def on_stop(self) -> None:
        """Leave nothing behind, however it ends."""
        if self._manager is not None:
            self._do(self._manager.executors.stop_all("the application was stopped"))
        self._release()

    def _on_tick(self) -> None:
        now_ms = self.context.now_ms()
        self._look_for_master(now_ms)
        if self._manager is not None:
            self._do(self._manager.on_tick(now_ms))
        self._tell_status()

    # -- what was decided ------------------------------------------------------------------

    def _do(self, commands: Iterable[Command]) -> None:  # noqa: C901 - an arm for each command
        for command in commands:
            match command:
                case Send():
                    self._post.tell(self._executors[command.executor_id], command.message)
                case RequestSlots():
                    self._tell_master(
                        RequestResource(
                            app_id=self._app_id,
                            slots=command.slots,
                            executors=command.executors,
                        )
                    )
                case Release():
                    self._tell_master(
                        ResourceUpdate(worker_id=command.worker_id, released_slots=command.slots)
                    )
                case Launch():
                    self._launch_executor(command)
                case Stop():
                    self._stop_executor(command)
                case Activated():
                    self._status = "active"
                    self._tell_status()
                case StoreManifest():
                    self._store(command)
                case DropSnapshots():
                    self._drop(command)
                case Survived():
                    self._on_survived(command)
                case Ended():
                    self._end(command.status, command.cause)
                case _:
                    assert_never(command)

    def _launch_executor(self, command: Launch) -> None:
        worker = self._post.find(command.allocation.worker)
        if worker is None:
            self._do(self._lost_worker(command.allocation.worker))
            return
        self.context.watch(worker)
        self._post.tell(
            command.allocation.worker,
            replace(
                self._launch,
                executor_id=command.executor_id,
                launch=command.launch,
                slots=command.allocation.slots,
                reply_to=self.context.self_ref.path,
            ),
        )

    def _lost_worker(self, worker: ActorPath) -> Iterable[Command]:
        """Count what it has started as gone. If only the worker is frozen, that still runs."""
        assert self._manager is not None
        for executor_id, _ in self._manager.executors.on_worker(worker):
            self._give_up(executor_id)
        return self._manager.on_worker_lost(worker, self.context.now_ms())

    def _give_up(self, executor_id: ExecutorId) -> None:
        """Make sure that nothing of an executor that does not count is heard any more."""
        if executor_id in self._executors:
            self._post.give_up(self._executors[executor_id])

    def _stop_executor(self, command: Stop) -> None:
        if command.kill:
            self._give_up(command.executor_id)
        self._post.tell(
            command.worker,
            ShutdownExecutor(
                app_id=self._app_id,
                executor_id=command.executor_id,
                launch=command.launch,
                reason=command.reason,
                kill=command.kill,
            ),
        )

    def _store(self, command: StoreManifest) -> None:
        manifest = command.manifest
        self._tell_master(
            PutValue(
                app_id=self._app_id,
                launch=self._launch.launch,
                key=f"{_REGION_KEY}{manifest.region}",
                value=encode_manifest(manifest),
                version=manifest.epoch,
            )
        )

    def _drop(self, command: DropSnapshots) -> None:
        for file in command.files:
            try:
                self._checkpoints.drop(file.location)
            except OSError as error:
                _log.warning("snapshot %s stays: %s", file.location, error)

    def _on_survived(self, command: Survived) -> None:
        _log.warning(
            "application %s: %s failed, starts again in %d ms: %s",
            self._app_id,
            command.what,
            command.delay_ms,
            command.error.cause,
        )
        self._note(command.what, command.error)

    def _note(self, what: str, error: ErrorCard) -> None:
        self._failures.append(Failure(at_ms=self.context.wall_ms(), what=what, error=error))
        del self._failures[:-_FAILURES_KEPT]

    def _end(self, status: ApplicationStatus, cause: ErrorCard | None) -> None:
        if status == "succeeded":
            self._store_outcome()
            return
        if cause is not None:
            _log.warning("application %s failed: %s", self._app_id, cause.cause)
            self._note("the application", cause)
        self._status, self._cause = status, cause
        self._tell_status()

    def _store_outcome(self) -> None:
        self._has_succeeded = True
        self._tell_master(
            PutValue(
                app_id=self._app_id,
                launch=self._launch.launch,
                key=_OUTCOME_KEY,
                value=b"succeeded",
            )
        )

    def _on_outcome_stored(self) -> None:
        try:
            self._checkpoints.drop_all(f"app{self._app_id}")
        except OSError as error:
            _log.warning("snapshots of application %s stay: %s", self._app_id, error)
        self._status = "succeeded"
        self._tell_status()

    # -- quarantine ------------------------------------------------------------------------

    def _on_quarantined(self, manager: TaskManager, message: RecordQuarantined) -> None:
        self._quarantined += 1
        if self._quarantined > self._settings.quarantine_max:
            cause = (
                f"more than {self._settings.quarantine_max} records were put into quarantine, the "
                f"last one because of: {message.error.cause}"
            )
            self._do(manager.fail(replace(message.error, cause=cause), self.context.now_ms()))
            return
        self._unstored[self._quarantined] = Quarantine(
            app_id=self._app_id,
            launch=self._launch.launch,
            number=self._quarantined,
            processor_id=message.processor_id,
            value=message.value,
            event_time_ms=message.event_time_ms,
            error=message.error,
        )
        self._tell_master(self._unstored[self._quarantined])

    def _replay(self, manager: TaskManager, message: ReplayNow | ReplayQuarantined) -> object:
        if isinstance(message, ReplayNow):
            epoch = manager.epoch
            self._do(manager.replay(self.context.now_ms()))
            return ReplayAccepted(app_id=self._app_id, epoch=epoch)
        given = []
        for record in message.records:
            task = _task_of(record.error.task)
            executor_id = manager.executor_of(task)
            if executor_id is None:
                continue
            inject = InjectRecord(
                task_id=task, value=record.value, event_time_ms=record.event_time_ms
            )
            self._post.tell(self._executors[executor_id], inject)
            given.append(record)
        return QuarantinedList(app_id=self._app_id, records=tuple(given))

    # -- what others are told --------------------------------------------------------------

    def _detail(self) -> ApplicationDetail:
        return detail_of(self._app_id, self._manager, self._failures)

    def _stall(self, manager: TaskManager) -> str:
        """Return what has held the application clock for too long, as a chain; usually nothing."""
        stall = manager.clock.check_stall(self.context.now_ms())
        if stall is None:
            return ""
        chain = " <- ".join(
            f"{link.name} (task {link.task_id}): {link.waits_for}"
            for link in reversed(manager.clock.why())
        )
        return f"clock at rest for {stall.stalled_for_ms // 1000} s: {chain}"

    def _tell_status(self) -> None:
        if not self._is_registered:
            return  # It is told when the master is back.
        manager, progress = self._manager, ApplicationProgress()
        if manager is not None:  # Also without reports: a stall is told then, too.
            progress = replace(
                progress_of(self._dag, manager.reports, stall=self._stall(manager)),
                restarts=manager.restarts,
                epoch=manager.epoch,
            )
        self._tell_master(
            ApplicationStatusChanged(
                app_id=self._app_id,
                launch=self._launch.launch,
                status=self._status,
                progress=progress,
                cause=self._cause,
            )
        )

    def _tell_master(self, message: Any) -> None:
        """Tell the master, if it is there; what it needs to know it is told when it is back."""
        if self._is_registered:
            self._post.tell(self._master, message)


def _task_of(text: str) -> TaskId:
    """Return the task that `str` made this text of; one that is none if it did not."""
    processor, _, index = text.partition(".")
    if processor.isdecimal() and index.isdecimal():
        return TaskId(int(processor), int(index))
    return TaskId(-1, -1)
