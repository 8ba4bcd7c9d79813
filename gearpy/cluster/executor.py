"""ExecutorActor: hosts tasks of one application, their transport and their thread."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from gearpy.actor.api import Actor, Exited, Failed, Ref
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.cluster.post import Post
from gearpy.cluster.tuning import ProcessTuning
from gearpy.ids import ActorPath, AppId, ExecutorId, ProcessorId, SessionId, TaskId
from gearpy.messages.app import (
    ExecutorMessage,
    LaunchTasks,
    RegisterExecutor,
    ReportClocks,
    StartAllTasks,
    StopAllTasks,
    TaskFailed,
    TaskLocationsReady,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.cluster import ErrorCard
from gearpy.task.actor import ClockBoard, StartTask, StopTask, TaskActor, TaskMessage
from gearpy.task.failure import card_of
from gearpy.task.wiring import RunnerFactory
from gearpy.transport.api import Transport

__all__ = ["ExecutorActor", "ExecutorSettings"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """Who the executor is and what it works with."""

    app_id: AppId
    executor_id: ExecutorId
    slots: int
    app_master: ActorPath
    dispatcher: SharedDispatcher  #: Of tasks that do not ask for a thread of their own.
    pin_tasks: bool
    mailbox_max: int
    report_interval_ms: int
    clock_ms: Callable[[], int]


@dataclass(frozen=True, slots=True)
class _Started:
    task_id: TaskId


@dataclass(frozen=True, slots=True)
class _Failed:
    task_id: TaskId
    error: ErrorCard


@dataclass(frozen=True, slots=True)
class _Stopped:
    task_id: TaskId
    error: ErrorCard | None


@dataclass(frozen=True, slots=True)
class _ReportTick:
    pass


_Message: TypeAlias = ExecutorMessage | _Started | _Failed | _Stopped | _ReportTick


class ExecutorActor(Actor[_Message]):
    """Makes tasks, tells them where the others are, starts and stops them, reports clocks.

    Runs on: its own thread. Restart: none; when it ends, or the app master does, its tasks end.
    Gearpump: `Executor`.
    """

    def __init__(
        self,
        settings: ExecutorSettings,
        runners: Callable[[], RunnerFactory],
        transport: Transport,
        post: Post,
        tuning: ProcessTuning,
        *,
        release: Callable[[], None],
    ) -> None:
        self._tuning = tuning
        self._settings = settings
        self._make_runners = runners
        self._release = release
        self._transport = transport
        self._post = post
        self._board = ClockBoard()
        self._tasks: dict[TaskId, Ref[TaskMessage]] = {}
        self._sessions: dict[TaskId, SessionId] = {}
        self._attempt = (-1, -1)
        self._waiting_start: set[TaskId] | None = None  # None: not asked to start.
        self._waiting_stop: set[TaskId] = set()
        self._stop_errors: list[ErrorCard] = []

    def on_start(self) -> None:
        """Build the graph, open the data listener, register."""
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
        settings = self._settings
        self._runners = self._make_runners()
        self._tell(
            RegisterExecutor(
                executor_id=settings.executor_id,
                executor=self.context.self_ref.path,
                data_address=self._transport.start(),
                slots=settings.slots,
                graph_hash=self._runners.application.dag.structural_hash(),
            )
        )
        self.context.schedule(settings.report_interval_ms, _ReportTick())

    def receive(self, message: _Message) -> None:
        """Do one step of the start-up or the end, or pass on what a task says."""
        match message:
            case LaunchTasks():
                self._launch(message)
            case TaskLocationsReady():
                self._locate(message)
            case StartAllTasks():
                self._start_all(message)
            case StopAllTasks():
                self._stop_all(message)
            case _ReportTick():
                self._report_clocks()
            case _:
                self._on_task(message)

    def on_exited(self, exited: Exited) -> None:
        """End with the app master; report a task whose actor died."""
        task_id = next((t for t, ref in self._tasks.items() if ref is exited.ref), None)
        if task_id is None:
            self.context.stop_self()
        elif isinstance(exited.reason, Failed):
            name = self._runners.application.processors[ProcessorId(task_id.processor)].name
            error = card_of(exited.reason.cause, operator=name, task=str(task_id))
            self._on_task(_Failed(task_id, error))
            self._on_task(_Stopped(task_id, None))

    def on_stop(self) -> None:
        """Close the data listener and the tasks' thread; the tasks have stopped by now."""
        self._transport.stop()
        self._settings.dispatcher.close()
        self._release()

    # -- what tasks say, on their threads --------------------------------------------------

    def on_task_started(self, task_id: TaskId) -> None:
        """Take the news into the mailbox."""
        self.context.self_ref.tell(_Started(task_id))

    def on_task_failed(self, task_id: TaskId, error: ErrorCard) -> None:
        """Take the news into the mailbox."""
        self.context.self_ref.tell(_Failed(task_id, error))

    def on_task_stopped(self, task_id: TaskId, error: ErrorCard | None) -> None:
        """Take the news into the mailbox."""
        self.context.self_ref.tell(_Stopped(task_id, error))

    # -- steps -----------------------------------------------------------------------------

    def _launch(self, message: LaunchTasks) -> None:
        if self._attempt != (message.version, message.attempt):
            self._attempt = (message.version, message.attempt)
            self._waiting_start = None
            for launch in message.tasks:
                self._spawn(launch.task_id, launch.session)
        self._tell(self._step(TasksLaunched))

    def _spawn(self, task_id: TaskId, session: SessionId) -> None:
        settings = self._settings
        runner = self._runners.make(task_id, session)
        processor = self._runners.application.processors[ProcessorId(task_id.processor)]
        pinned = processor.dispatcher == "pinned" or (
            settings.pin_tasks and processor.dispatcher == "default"
        )
        ref = self.context.spawn(
            lambda: TaskActor(
                runner,
                self._transport,
                self,
                self._board,
                clock_ms=settings.clock_ms,
                report_interval_ms=settings.report_interval_ms,
            ),
            f"app{settings.app_id}-executor{settings.executor_id}-task{task_id}",
            dispatcher="pinned" if pinned else settings.dispatcher,
            mailbox_max=settings.mailbox_max,
        )
        self._tasks[task_id] = ref
        self._sessions[task_id] = session
        self._transport.register(task_id, partial(_tell_all, ref))

    def _locate(self, message: TaskLocationsReady) -> None:
        if self._attempt == (message.version, message.attempt):
            self._transport.locate(
                {task: at.data_address for at in message.locations for task in at.tasks}
            )
            self._tell(self._step(TaskLocationsReceived))

    def _start_all(self, message: StartAllTasks) -> None:
        if self._attempt != (message.version, message.attempt):
            return
        if self._waiting_start is None:
            self._tuning.freeze()  # The program, the graph and the tasks stay for long.
            self._waiting_start = set(self._tasks)
            for ref in self._tasks.values():
                ref.tell(StartTask(message.start_time_ms))
        self._tell_if_started()

    def _stop_all(self, message: StopAllTasks) -> None:
        if self._attempt != (message.version, message.attempt):
            self._attempt = (message.version, message.attempt)
        self._waiting_stop = {task for task, ref in self._tasks.items() if ref.is_alive}
        for task in self._waiting_stop:
            self._tasks[task].tell(StopTask(message.completed))
        self._tell_if_stopped()

    def _on_task(self, message: _Started | _Failed | _Stopped) -> None:
        task = message.task_id
        match message:
            case _Started():
                if self._waiting_start is not None:
                    self._waiting_start.discard(task)
                    self._tell_if_started()
            case _Failed():
                self._report_clocks()
                self._tell(
                    TaskFailed(
                        executor_id=self._settings.executor_id,
                        task_id=task,
                        session=self._sessions[task],
                        error=message.error,
                    )
                )
            case _Stopped():
                if message.error is not None:
                    self._stop_errors.append(message.error)
                if task in self._waiting_stop:
                    self._waiting_stop.discard(task)
                    self._tell_if_stopped()

    def _tell_if_started(self) -> None:
        if self._waiting_start is not None and not self._waiting_start:
            self._tell(self._step(TasksStarted))

    def _tell_if_stopped(self) -> None:
        if not self._waiting_stop:
            self._report_clocks()
            version, attempt = self._attempt
            self._tell(
                TasksStopped(
                    executor_id=self._settings.executor_id,
                    version=version,
                    attempt=attempt,
                    errors=tuple(self._stop_errors),
                )
            )

    def _report_clocks(self) -> None:
        clocks = self._board.collect()
        if clocks:
            self._tell(ReportClocks(executor_id=self._settings.executor_id, clocks=clocks))

    def _step(self, kind: type[Any]) -> Any:
        version, attempt = self._attempt
        return kind(executor_id=self._settings.executor_id, version=version, attempt=attempt)

    def _tell(self, message: Any) -> None:
        self._post.tell(self._settings.app_master, message)


def _tell_all(ref: Ref[TaskMessage], messages: list[Any]) -> None:
    for message in messages:
        ref.tell(message)
