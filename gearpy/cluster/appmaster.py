"""AppMasterActor: one application from its slots to its end."""

import logging
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from gearpy.actor.api import Actor, Exited
from gearpy.cluster.artifacts import ApplicationLoader
from gearpy.cluster.post import Post
from gearpy.config.schema import Config
from gearpy.core.clock import ClockService
from gearpy.core.deployment import Command, Deployment, Failed, Ready, Send, Stopped
from gearpy.core.progress import progress_of
from gearpy.errors import GearpyError
from gearpy.ids import MASTER_EXECUTOR, ActorPath, AppId, ExecutorId, TaskId
from gearpy.messages.app import (
    ExecutorToAppMaster,
    RegisterExecutor,
    ReportClocks,
    TaskClock,
    TaskFailed,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.cluster import (
    Allocation,
    ApplicationProgress,
    ApplicationStatus,
    ApplicationStatusChanged,
    AppMasterRegistered,
    ErrorCard,
    ExecutorExited,
    ExecutorLaunchRejected,
    LaunchExecutor,
    RegisterAppMaster,
    RequestResource,
    ResourceAllocated,
    ResourceUpdate,
    ShutdownExecutor,
)
from gearpy.task.failure import card_of

__all__ = ["AppMasterActor"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Tick:
    pass


_Message: TypeAlias = (
    ExecutorToAppMaster
    | AppMasterRegistered
    | ResourceAllocated
    | ExecutorLaunchRejected
    | ExecutorExited
    | _Tick
)


class AppMasterActor(Actor[_Message]):
    """Gets slots, has executors started, starts the tasks, follows their clocks, ends it all.

    Runs on: its own thread, in the application's executor -1. Restart: none yet; its
    executors end with it. Gearpump: `AppMaster`, `TaskManager`, `ExecutorManager`.
    """

    def __init__(
        self, launch: LaunchExecutor, loader: ApplicationLoader, post: Post, config: Config
    ) -> None:
        self._launch = launch
        self._loader = loader
        self._post = post
        self._config = config
        self._master = launch.reply_to
        self._app_id: AppId = launch.app_id
        self._allocations: list[Allocation] = []  # Without an executor.
        self._executors: dict[ExecutorId, ActorPath] = {}
        self._workers: dict[ExecutorId, ActorPath] = {}
        self._deployment: Deployment | None = None
        self._clock: ClockService | None = None
        self._reports: dict[TaskId, TaskClock] = {}
        self._cause: ErrorCard | None = None
        self._status: ApplicationStatus = "pending"
        self._ended = False
        self._asked_ms = 0

    def on_start(self) -> None:
        """Register with the master, build the graph, ask for slots."""
        self._tell_master(
            RegisterAppMaster(app_id=self._app_id, app_master=self.context.self_ref.path)
        )
        try:
            application = self._loader.load(self._app_id, self._launch.artifact, MASTER_EXECUTOR)
        except GearpyError as error:
            self._end("failed", card_of(error))
            return
        self._dag = application.dag
        self._asked_ms = self.context.now_ms()
        self._tell_master(
            RequestResource(
                app_id=self._app_id,
                slots=self._dag.task_count,
                executors=min(self._launch.executors, self._dag.task_count),
            )
        )
        self.context.schedule(self._config.streaming.clock_report_interval_ms, _Tick())

    def receive(self, message: _Message) -> None:  # noqa: C901 - an arm for each message
        """Feed one message to the deployment or the clock; do what they say."""
        if self._ended:
            self._after_end(message)
            return
        match message:
            case AppMasterRegistered():
                pass
            case ResourceAllocated():
                self._on_allocated(message)
            case ExecutorLaunchRejected():
                self._fail(ErrorCard(cause=f"executor {message.executor_id}: {message.reason}"))
            case ExecutorExited():
                self._on_executor_exited(message)
            case TaskFailed():
                self._on_task_failed(message)
            case ReportClocks():
                self._on_clocks(message)
            case _Tick():
                self._on_tick()
            case _:
                self._on_step(message)

    def on_exited(self, exited: Exited) -> None:
        """Treat the executors of a lost worker as lost; it cannot say so itself."""
        lost = [each for each, worker in self._workers.items() if worker == exited.ref.path]
        for executor_id in lost:
            self.receive(
                ExecutorExited(app_id=self._app_id, executor_id=executor_id, cause="worker lost")
            )

    def on_stop(self) -> None:
        """Leave nothing behind, however it ends."""
        self._let_go("stopped")
        self._loader.release(self._app_id, MASTER_EXECUTOR)

    # -- slots and executors ---------------------------------------------------------------

    def _on_allocated(self, message: ResourceAllocated) -> None:
        self._allocations += message.allocations
        if sum(each.slots for each in self._allocations) < self._dag.task_count:
            return
        allocations, self._allocations = self._allocations, []
        self._deployment = Deployment(
            self._dag,
            executors_wanted=len(allocations),
            step_timeout_ms=self._config.streaming.register_task_timeout_ms,
        )
        self._clock = ClockService(
            self._dag,
            self._deployment.sessions,
            stall_after_ms=self._config.streaming.stall_threshold_ms,
            now_ms=self.context.now_ms(),
        )
        self._do(self._deployment.on_start(self.context.now_ms()))
        for number, allocation in enumerate(allocations):
            self._launch_executor(ExecutorId(number), allocation)

    def _launch_executor(self, executor_id: ExecutorId, allocation: Allocation) -> None:
        self._workers[executor_id] = allocation.worker
        worker = self._post.find(allocation.worker)
        if worker is None:
            self._fail(ErrorCard(cause=f"executor {executor_id}: its worker is lost"))
            return
        self.context.watch(worker)
        self._post.tell(
            allocation.worker,
            LaunchExecutor(
                app_id=self._app_id,
                executor_id=executor_id,
                slots=allocation.slots,
                name=self._launch.name,
                artifact=self._launch.artifact,
                executors=self._launch.executors,
                config=self._launch.config,
                reply_to=self.context.self_ref.path,
            ),
        )

    def _on_executor_exited(self, message: ExecutorExited) -> None:
        executor_id, deployment = message.executor_id, self._deployment
        if self._workers.pop(executor_id, None) is None or deployment is None:
            return
        commands = deployment.on_executor_lost(executor_id, self.context.now_ms())
        self._do(commands, because=message.cause)
        if deployment.state == "waiting-for-executors":  # No other one will take its place.
            cause = message.cause or "it was stopped"
            self._fail(ErrorCard(cause=f"executor {executor_id} did not start: {cause}"))

    # -- the deployment's steps ------------------------------------------------------------

    def _on_step(
        self,
        message: RegisterExecutor
        | TasksLaunched
        | TaskLocationsReceived
        | TasksStarted
        | TasksStopped,
    ) -> None:
        deployment, now_ms = self._deployment, self.context.now_ms()
        assert deployment is not None, "executors are launched after the deployment was made"
        match message:
            case RegisterExecutor():
                self._executors[message.executor_id] = message.executor
                self._do(deployment.on_executor_registered(message, now_ms))
            case TasksLaunched():
                self._do(deployment.on_tasks_launched(message, now_ms))
            case TaskLocationsReceived():
                self._do(deployment.on_task_locations_received(message, now_ms))
            case TasksStarted():
                self._do(deployment.on_tasks_started(message, now_ms))
            case TasksStopped():
                self._do(deployment.on_tasks_stopped(message, now_ms))
            case _:
                assert_never(message)

    def _do(self, commands: list[Command], *, because: str = "") -> None:
        for command in commands:
            match command:
                case Send():
                    self._post.tell(self._executors[command.executor_id], command.message)
                case Ready():
                    self._set_status("active")
                    self._stop_if_finished()  # A short stream may be over by now.
                case Failed():
                    cause = f"{command.cause}: {because}" if because else command.cause
                    self._fail(ErrorCard(cause=cause))
                case Stopped():
                    self._on_stopped(command)
                case _:
                    assert_never(command)

    def _on_stopped(self, stopped: Stopped) -> None:
        cause = self._cause or (stopped.errors[0] if stopped.errors else None)
        self._end("failed" if cause else "succeeded", cause)

    # -- clocks, failure, end --------------------------------------------------------------

    def _on_clocks(self, message: ReportClocks) -> None:
        now_ms = self.context.now_ms()
        assert self._clock is not None, "clocks are reported by tasks, made after the clock was"
        for clock in message.clocks:
            self._reports[clock.task_id] = clock
            self._clock.on_report(
                clock.task_id,
                clock.session,
                clock_ms=clock.clock_ms,
                watermark_ms=clock.watermark_ms,
                idle=clock.idle,
                now_ms=now_ms,
            )
        self._stop_if_finished()

    def _stop_if_finished(self) -> None:
        if self._status != "active" or self._clock is None or not self._clock.finished:
            return
        assert self._deployment is not None
        self._do(self._deployment.stop(completed=True, now_ms=self.context.now_ms()))

    def _on_task_failed(self, message: TaskFailed) -> None:
        self._fail(message.error)

    def _fail(self, cause: ErrorCard) -> None:
        if self._cause is not None:
            return
        self._cause = cause
        _log.warning("application %s failed: %s", self._app_id, cause.cause)
        if self._deployment is None:
            self._end("failed", cause)
        elif self._deployment.state != "stopping":  # Else the end is near, with this cause.
            self._do(self._deployment.stop(completed=False, now_ms=self.context.now_ms()))

    def _on_tick(self) -> None:
        now_ms = self.context.now_ms()
        if self._deployment is not None:
            self._do(self._deployment.on_tick(now_ms))
        elif now_ms - self._asked_ms >= self._config.resource_allocation_timeout_s * 1000:
            self._fail(ErrorCard(cause=self._no_slots()))
        if not self._ended:
            self._set_status(self._status)

    def _stall(self) -> str:
        """Return what has held the application clock for too long, as a chain; usually nothing."""
        stall = self._clock.check_stall(self.context.now_ms()) if self._clock else None
        if stall is None or self._clock is None:
            return ""
        chain = " <- ".join(
            f"{link.name} (task {link.task_id}): {link.waits_for}"
            for link in reversed(self._clock.why())
        )
        return f"clock at rest for {stall.stalled_for_ms // 1000} s: {chain}"

    def _no_slots(self) -> str:
        got = sum(each.slots for each in self._allocations)
        return (
            f"got {got} of {self._dag.task_count} slots within "
            f"{self._config.resource_allocation_timeout_s} s: add workers, raise worker.slots, "
            "lower the parallelism, or stop other applications"
        )

    def _end(self, status: ApplicationStatus, cause: ErrorCard | None) -> None:
        self._ended = True
        self._let_go(status)
        self._set_status(status, cause)

    def _let_go(self, reason: str) -> None:
        """Have the executors stopped; give back slots that have none."""
        for executor_id, worker in self._workers.items():
            self._post.tell(
                worker,
                ShutdownExecutor(app_id=self._app_id, executor_id=executor_id, reason=reason),
            )
        self._workers.clear()
        for each in self._allocations:
            self._tell_master(ResourceUpdate(worker_id=each.worker_id, released_slots=each.slots))
        self._allocations.clear()

    def _after_end(self, message: _Message) -> None:
        if isinstance(message, ResourceAllocated):
            self._allocations += message.allocations
            self._let_go("ended")

    def _set_status(self, status: ApplicationStatus, cause: ErrorCard | None = None) -> None:
        self._status = status
        progress = ApplicationProgress()
        if self._clock is not None:  # Also without reports: a stall is told then, too.
            progress = progress_of(self._dag, self._reports, stall=self._stall())
        self._tell_master(
            ApplicationStatusChanged(
                app_id=self._app_id,
                status=status,
                progress=progress,
                cause=cause,
            )
        )

    def _tell_master(self, message: Any) -> None:
        self._post.tell(self._master, message)
