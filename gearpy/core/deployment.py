"""How the tasks of an application are started and stopped, step by step.

The state machine of the app master's hand-shake with its executors. Gearpump: `TaskManager`,
whose steps have no time-out, so that one lost message stops an application for ever.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gearpy.core.dag import Dag
from gearpy.core.placement import place
from gearpy.ids import MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import (
    ExecutorMessage,
    LaunchTasks,
    RegisterExecutor,
    StartAllTasks,
    StopAllTasks,
    TaskLaunch,
    TaskLocation,
    TaskLocationsReady,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.cluster import ErrorCard

__all__ = [
    "TRANSITIONS",
    "Command",
    "Deployment",
    "DeploymentState",
    "Failed",
    "Ready",
    "Send",
    "Stopped",
]

DeploymentState: TypeAlias = Literal[
    "created",
    "waiting-for-executors",
    "launching",
    "locating",
    "starting",
    "running",
    "stopping",
    "stopped",
    "failed",
]
_Event: TypeAlias = Literal["start", "all-answered", "stop", "fail"]

#: The whole state machine. "all-answered": every executor has done the step.
TRANSITIONS: Final[Mapping[tuple[DeploymentState, _Event], DeploymentState]] = {
    ("created", "start"): "waiting-for-executors",
    ("waiting-for-executors", "all-answered"): "launching",
    ("launching", "all-answered"): "locating",
    ("locating", "all-answered"): "starting",
    ("starting", "all-answered"): "running",
    ("created", "stop"): "stopping",
    ("waiting-for-executors", "stop"): "stopping",
    ("launching", "stop"): "stopping",
    ("locating", "stop"): "stopping",
    ("starting", "stop"): "stopping",
    ("running", "stop"): "stopping",
    ("failed", "stop"): "stopping",
    ("stopping", "all-answered"): "stopped",
    ("waiting-for-executors", "fail"): "failed",
    ("launching", "fail"): "failed",
    ("locating", "fail"): "failed",
    ("starting", "fail"): "failed",
    ("running", "fail"): "failed",
}

#: States in which executors are asked for something and must answer.
_ASKING: Final = frozenset({"launching", "locating", "starting", "stopping"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a message to an executor."""

    executor_id: ExecutorId
    message: ExecutorMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Every task runs. Gearpump: `ApplicationReady`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The start-up, or an executor, has failed; ``cause`` says where and what to look at."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Every task has stopped, or will not answer any more, which is then among the errors."""

    errors: tuple[ErrorCard, ...]


Command: TypeAlias = Send | Ready | Failed | Stopped
_Answer: TypeAlias = TasksLaunched | TaskLocationsReceived | TasksStarted | TasksStopped


class Deployment:
    """One attempt to start the tasks of one dag version, and their end.

    Every event returns what to send or to tell. A step that is not done half way through
    its time is sent once more to those who have not answered, and fails at the end of its
    time. Answers of other versions, attempts and steps, and repeated ones, change nothing.

    Invariant: no executor is asked for a step before all have answered the one before, and
    what `StartAllTasks` starts is known to everybody. Stopping always ends.
    """

    def __init__(
        self,
        dag: Dag,
        *,
        executors_wanted: int,
        step_timeout_ms: int,
        first_session: int = 1,
        attempt: int = 0,
        start_time_ms: int = MIN_MS,
    ) -> None:
        assert executors_wanted >= 1, executors_wanted
        assert step_timeout_ms >= 1, step_timeout_ms
        self._dag = dag
        self._executors_wanted = executors_wanted
        self._step_timeout_ms = step_timeout_ms
        self._attempt = attempt
        self._start_time_ms = start_time_ms
        self._state: DeploymentState = "created"
        self._executors: dict[ExecutorId, RegisterExecutor] = {}
        self._waiting_for: dict[ExecutorId, None] = {}  # A set that keeps its order.
        self._step_started_ms = 0
        self._is_repeated = False
        self._completed = False
        self._errors: list[ErrorCard] = []
        self._ignored = 0
        self._placement: Mapping[TaskId, ExecutorId] = {}
        self._sessions: Mapping[TaskId, SessionId] = {
            task: SessionId(first_session + place) for place, task in enumerate(dag.tasks())
        }

    # -- questions -------------------------------------------------------------------------

    @property
    def state(self) -> DeploymentState:
        """The step at hand."""
        return self._state

    @property
    def attempt(self) -> int:
        """The number that every message of this deployment carries, with the dag version."""
        return self._attempt

    @property
    def sessions(self) -> Mapping[TaskId, SessionId]:
        """The session of every task; known from the beginning."""
        return self._sessions

    @property
    def next_session(self) -> SessionId:
        """The first session number that a later attempt may use."""
        return SessionId(max(self._sessions.values()) + 1)

    @property
    def placement(self) -> Mapping[TaskId, ExecutorId]:
        """The executor of every task; empty until all executors are there."""
        return self._placement

    @property
    def executors(self) -> tuple[ExecutorId, ...]:
        """The executors that are registered and not lost."""
        return tuple(sorted(self._executors))

    @property
    def ignored(self) -> int:
        """How many messages came too late, twice, or from somebody unknown."""
        return self._ignored

    # -- the start -------------------------------------------------------------------------

    def on_start(self, now_ms: int) -> list[Command]:
        """Begin to wait for executors."""
        assert self._state == "created", self._state
        return self._go("start", now_ms)

    def on_executor_registered(self, message: RegisterExecutor, now_ms: int) -> list[Command]:
        """Count an executor; when all are there, place the tasks and launch them."""
        if self._state != "waiting-for-executors":
            return self._ignore()
        if mistake := self._mistake_of(message):
            return self._fail(mistake, now_ms)
        self._executors[message.executor_id] = message
        if len(self._executors) < self._executors_wanted:
            return []
        slots = {executor: each.slots for executor, each in self._executors.items()}
        self._placement = place(self._dag, slots)
        return self._go("all-answered", now_ms)

    def on_tasks_launched(self, message: TasksLaunched, now_ms: int) -> list[Command]:
        """When the tasks of all executors exist, tell everybody where they are."""
        return self._on_answer("launching", message, now_ms)

    def on_task_locations_received(
        self, message: TaskLocationsReceived, now_ms: int
    ) -> list[Command]:
        """When every executor can reach every task, start them all."""
        return self._on_answer("locating", message, now_ms)

    def on_tasks_started(self, message: TasksStarted, now_ms: int) -> list[Command]:
        """When every task runs, the application is ready."""
        return self._on_answer("starting", message, now_ms)

    # -- the end ---------------------------------------------------------------------------

    def stop(self, *, completed: bool, now_ms: int) -> list[Command]:
        """Stop the tasks of all executors at once, from whatever step this is in.

        ``completed`` says that the stream has ended well. Asking again changes nothing.
        """
        if (self._state, "stop") not in TRANSITIONS:
            return []
        self._completed = completed
        return self._go("stop", now_ms)

    def on_tasks_stopped(self, message: TasksStopped, now_ms: int) -> list[Command]:
        """When all tasks have stopped, say so, with what went wrong."""
        if self._is_awaited("stopping", message):
            self._errors += message.errors
        return self._on_answer("stopping", message, now_ms)

    # -- trouble ---------------------------------------------------------------------------

    def on_executor_lost(self, executor_id: ExecutorId, now_ms: int) -> list[Command]:
        """Forget an executor; without it nothing that was started can go on.

        While executors are awaited a new one may take its place.
        """
        if executor_id not in self._executors:
            return self._ignore()
        del self._executors[executor_id]
        if self._state == "stopping":
            return self._on_lost_while_stopping(executor_id, now_ms)
        if self._state in {"waiting-for-executors", "stopped", "failed"}:
            return []
        step = "while running" if self._state == "running" else f"in step {self._state}"
        return self._fail(f"executor {executor_id} lost {step}", now_ms)

    def on_tick(self, now_ms: int) -> list[Command]:
        """Send the step again half way through its time; end it when the time is over."""
        if self._state != "waiting-for-executors" and self._state not in _ASKING:
            return []
        passed_ms = now_ms - self._step_started_ms
        if passed_ms >= self._step_timeout_ms:
            return self._on_timeout(now_ms)
        if self._is_repeated or passed_ms * 2 < self._step_timeout_ms:
            return []
        self._is_repeated = True
        return self._step_messages()

    def _on_timeout(self, now_ms: int) -> list[Command]:
        after = f"after {self._step_timeout_ms} ms"
        silent = ", ".join(map(str, self._waiting_for))
        if self._state == "waiting-for-executors":
            there = f"{len(self._executors)} of {self._executors_wanted} executors"
            return self._fail(f"only {there} have registered {after}: are there free slots", now_ms)
        if self._state == "stopping":
            cards = [
                ErrorCard(cause=f"executor {executor} has not stopped its tasks {after}")
                for executor in self._waiting_for
            ]
            self._errors += cards
            return self._go("all-answered", now_ms)
        return self._fail(f"no answer in step {self._state} {after} from executor {silent}", now_ms)

    def _on_lost_while_stopping(self, executor_id: ExecutorId, now_ms: int) -> list[Command]:
        if executor_id not in self._waiting_for:
            return []
        self._errors.append(ErrorCard(cause=f"executor {executor_id} lost in step stopping"))
        return self._done_by(executor_id, now_ms)

    def _mistake_of(self, message: RegisterExecutor) -> str | None:
        if message.slots < 1:
            return f"executor {message.executor_id} has {message.slots} slots: give it at least 1"
        expected = self._dag.structural_hash()
        if message.graph_hash == expected:
            return None
        return (
            f"executor {message.executor_id} built another graph than the app master "
            f"(hash {message.graph_hash[:12]} instead of {expected[:12]}): the program must "
            "build the same graph in every process; look for what differs, such as "
            "arguments, environment, random numbers, or another version of a file"
        )

    # -- the machine -----------------------------------------------------------------------

    def _on_answer(self, step: DeploymentState, answer: _Answer, now_ms: int) -> list[Command]:
        if not self._is_awaited(step, answer):
            return self._ignore()
        return self._done_by(answer.executor_id, now_ms)

    def _is_awaited(self, step: DeploymentState, answer: _Answer) -> bool:
        return (
            self._state == step
            and (answer.version, answer.attempt) == (self._dag.version, self._attempt)
            and answer.executor_id in self._waiting_for
        )

    def _done_by(self, executor_id: ExecutorId, now_ms: int) -> list[Command]:
        del self._waiting_for[executor_id]
        return [] if self._waiting_for else self._go("all-answered", now_ms)

    def _go(self, event: _Event, now_ms: int) -> list[Command]:
        self._state = TRANSITIONS[self._state, event]
        self._step_started_ms = now_ms
        self._is_repeated = False
        self._waiting_for = dict.fromkeys(self.executors if self._state in _ASKING else ())
        if self._state == "stopping" and not self._waiting_for:
            return self._go("all-answered", now_ms)
        if self._state == "running":
            return [Ready()]
        if self._state == "stopped":
            return [Stopped(errors=tuple(self._errors))]
        return self._step_messages()

    def _fail(self, cause: str, now_ms: int) -> list[Command]:
        self._go("fail", now_ms)
        return [Failed(cause=cause)]

    def _ignore(self) -> list[Command]:
        self._ignored += 1
        return []

    # -- what each step asks for -----------------------------------------------------------

    def _step_messages(self) -> list[Command]:
        make = self._makers().get(self._state)
        if make is None:
            return []
        return [Send(executor_id=each, message=make(each)) for each in self._waiting_for]

    def _makers(self) -> Mapping[DeploymentState, Callable[[ExecutorId], ExecutorMessage]]:
        version, attempt = self._dag.version, self._attempt
        return {
            "launching": self._launch_tasks,
            "locating": lambda _: self._locations(),
            "starting": lambda _: StartAllTasks(
                version=version, attempt=attempt, start_time_ms=self._start_time_ms
            ),
            "stopping": lambda _: StopAllTasks(
                version=version, attempt=attempt, completed=self._completed
            ),
        }

    def _tasks_on(self, executor_id: ExecutorId) -> list[TaskId]:
        return [task for task in self._sessions if self._placement[task] == executor_id]

    def _launch_tasks(self, executor_id: ExecutorId) -> LaunchTasks:
        launches = [
            TaskLaunch(task_id=task, session=self._sessions[task])
            for task in self._tasks_on(executor_id)
        ]
        return LaunchTasks(version=self._dag.version, attempt=self._attempt, tasks=tuple(launches))

    def _locations(self) -> TaskLocationsReady:
        locations = [
            TaskLocation(
                executor_id=executor,
                data_address=self._executors[executor].data_address,
                tasks=tuple(self._tasks_on(executor)),
            )
            for executor in self.executors
        ]
        return TaskLocationsReady(
            version=self._dag.version, attempt=self._attempt, locations=tuple(locations)
        )
