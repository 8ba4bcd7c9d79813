"""Starts and stops the tasks of an application, step by step.

The state machine of the app master's hand-shake with its executors. Gearpump: `TaskManager`,
whose steps have no time-out, so that one lost message stops an application for ever.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, SessionId, TaskId
from gearpy.messages.app import (
    ExecutorMessage,
    LaunchTasks,
    SnapshotFile,
    SnapshotsDamaged,
    SourceProbe,
    StartAllTasks,
    StepDone,
    StopAllTasks,
    TaskLaunch,
    TaskLocation,
    TaskLocationsReady,
    TaskOffsets,
    TasksStopped,
)
from gearpy.messages.summaries import ErrorCard

DeploymentState: TypeAlias = Literal[
    "created", "launching", "locating", "starting", "running", "stopping", "stopped", "failed"
]
_Event: TypeAlias = Literal["start", "all-answered", "stop", "fail"]

#: The whole state machine. "all-answered": every executor has done the step.
TRANSITIONS: Final[Mapping[tuple[DeploymentState, _Event], DeploymentState]] = {
    ("created", "start"): "launching",
    ("launching", "all-answered"): "locating",
    ("locating", "all-answered"): "starting",
    ("starting", "all-answered"): "running",
    ("created", "stop"): "stopping",
    ("launching", "stop"): "stopping",
    ("locating", "stop"): "stopping",
    ("starting", "stop"): "stopping",
    ("running", "stop"): "stopping",
    ("failed", "stop"): "stopping",
    ("stopping", "all-answered"): "stopped",
    ("launching", "fail"): "failed",
    ("locating", "fail"): "failed",
    ("starting", "fail"): "failed",
    ("running", "fail"): "failed",
}

#: States in which executors are asked for something and must answer.
_ASKING: Final = frozenset({"launching", "locating", "starting", "stopping"})


class Send(Struct, frozen=True, kw_only=True):
    """Send a message to an executor."""

    executor_id: ExecutorId
    message: ExecutorMessage


class Ready(Struct, frozen=True, kw_only=True):
    """Every task runs. Gearpump: `ApplicationReady`."""


class AttemptFailed(Struct, frozen=True, kw_only=True):
    """The start-up, or an executor, has failed; ``cause`` names the place and where to look.

    ``silent`` are the executors that did not answer in time; they are asked nothing more.
    ``damaged`` names the snapshots that the tasks could not go on from, if that was the cause.
    """

    cause: str
    silent: tuple[ExecutorId, ...] = ()
    damaged: SnapshotsDamaged | None = None


class AttemptStopped(Struct, frozen=True, kw_only=True):
    """Every task has stopped, or will not answer any more, which is then among the errors.

    ``silent`` are the executors that did not answer in time; their tasks may still run.
    """

    errors: tuple[ErrorCard, ...]
    silent: tuple[ExecutorId, ...] = ()


Command: TypeAlias = Send | Ready | AttemptFailed | AttemptStopped
StepAnswer: TypeAlias = StepDone | SnapshotsDamaged | TasksStopped


class Deployment:
    """One attempt to start the tasks of one region, and their end.

    A step is sent once more half way through its time, and fails at the end of it. Replies of other
    versions, attempts and steps, and repeated ones, change nothing.

    Invariant: no executor is asked for a step before all have done the one before. Stopping always
    ends.
    """

    def __init__(
        self,
        *,
        version: int,
        region: int,
        attempt: int,
        placement: Mapping[TaskId, ExecutorId],
        addresses: Mapping[ExecutorId, str],
        first_session: int,
        step_timeout_ms: int,
        epoch: int = 1,
        snapshots: Sequence[SnapshotFile] = (),
        overrides: Sequence[TaskOffsets] = (),
        start_time_ms: int = MIN_MS,
        halt_ms: int = MAX_MS,
        probes: Sequence[SourceProbe] = (),
    ) -> None:
        assert placement, "a region has tasks"
        assert step_timeout_ms >= 1, step_timeout_ms
        self._version = version
        self._region = region
        self.attempt = attempt
        self._placement = dict(placement)
        self._addresses = {each: addresses[each] for each in sorted(set(placement.values()))}
        self._step_timeout_ms = step_timeout_ms
        self._epoch = epoch
        self._snapshots = tuple(snapshots)
        self._overrides = tuple(overrides)
        self._start_time_ms = start_time_ms
        self._halt_ms = halt_ms
        self._probes = tuple(probes)
        self.state: DeploymentState = "created"
        self._waiting_for: dict[ExecutorId, None] = {}  # A set that keeps its order.
        self._step_started_ms = 0
        self._is_repeated = False
        self._completed = False
        self._errors: list[ErrorCard] = []
        self._silent: tuple[ExecutorId, ...] = ()
        self.made_at_ms = 0  #: When all tasks existed, with the state that they go on from.
        self._first_session = SessionId(first_session)
        self.sessions: Mapping[TaskId, SessionId] = {
            task: SessionId(first_session + at) for at, task in enumerate(placement)
        }

    def awaits(self, executor_id: ExecutorId) -> bool:
        return executor_id in self._waiting_for

    def on_start(self, now_ms: int) -> list[Command]:
        assert self.state == "created", self.state
        return self._go("start", now_ms)

    def on_answer(self, answer: StepAnswer, now_ms: int) -> list[Command]:
        """Note that an executor has done a step; the next one follows when all have."""
        executor_id, step = answer.executor_id, "stopping"
        if not isinstance(answer, TasksStopped):
            step = answer.step if isinstance(answer, StepDone) else "launching"
        if (
            step != self.state
            or (answer.version, answer.attempt) != (self._version, self.attempt)
            or executor_id not in self._waiting_for
        ):
            return []
        if isinstance(answer, SnapshotsDamaged):
            what = answer.location or "the snapshots"
            cause = f"executor {executor_id} could not read {what}: {answer.reason}"
            return self._fail(cause, now_ms, damaged=answer)
        if isinstance(answer, TasksStopped):
            self._errors += answer.errors
        return self._done_by(executor_id, now_ms)

    def ask_again(self, executors: Collection[ExecutorId]) -> list[Send]:
        """Ask executors once more to start the tasks that run: one that is awake answers."""
        if self.state != "running":
            return []
        asked = [each for each in self._addresses if each in executors]
        return self._messages("starting", asked)

    def stop(self, *, completed: bool, now_ms: int) -> list[Command]:
        """Stop the tasks of all executors at once, from any step.

        ``completed`` says that the stream has ended well. Asking again changes nothing.
        """
        if (self.state, "stop") not in TRANSITIONS:
            return []
        self._completed = completed
        self._silent = ()  # Silent executors of the start were reported.
        return self._go("stop", now_ms)

    def on_executor_lost(self, executor_id: ExecutorId, now_ms: int) -> list[Command]:
        """Forget an executor; a start-up without it fails."""
        if executor_id not in self._addresses:
            return []
        del self._addresses[executor_id]
        if self.state == "stopping":
            if executor_id not in self._waiting_for:
                return []
            self._errors.append(ErrorCard(cause=f"executor {executor_id} lost in step stopping"))
            return self._done_by(executor_id, now_ms)
        if (self.state, "fail") not in TRANSITIONS:
            return []
        step = "while running" if self.state == "running" else f"in step {self.state}"
        return self._fail(f"executor {executor_id} lost {step}", now_ms)

    def on_tick(self, now_ms: int) -> list[Command]:
        if self.state not in _ASKING:
            return []
        passed_ms = now_ms - self._step_started_ms
        if passed_ms >= self._step_timeout_ms:
            after = f"after {self._step_timeout_ms} ms"
            self._silent = tuple(self._waiting_for)
            if self.state == "stopping":
                self._errors += [
                    ErrorCard(cause=f"executor {executor} has not stopped its tasks {after}")
                    for executor in self._silent
                ]
                return self._go("all-answered", now_ms)
            for executor in self._silent:
                del self._addresses[executor]
            names = ", ".join(map(str, self._silent))
            return self._fail(
                f"no answer in step {self.state} {after} from executor {names}", now_ms
            )
        if self._is_repeated or passed_ms * 2 < self._step_timeout_ms:
            return []
        self._is_repeated = True
        return [*self._messages(self.state, self._waiting_for)]

    def _done_by(self, executor_id: ExecutorId, now_ms: int) -> list[Command]:
        del self._waiting_for[executor_id]
        return [] if self._waiting_for else self._go("all-answered", now_ms)

    def _go(self, event: _Event, now_ms: int) -> list[Command]:
        self.state = TRANSITIONS[self.state, event]
        self._step_started_ms = now_ms
        if self.state == "locating":
            self.made_at_ms = now_ms
        self._is_repeated = False
        self._waiting_for = dict.fromkeys(self._addresses if self.state in _ASKING else ())
        if self.state == "stopping" and not self._waiting_for:
            return self._go("all-answered", now_ms)
        if self.state == "running":
            return [Ready()]
        if self.state == "stopped":
            return [AttemptStopped(errors=tuple(self._errors), silent=self._silent)]
        return [*self._messages(self.state, self._waiting_for)]

    def _fail(
        self, cause: str, now_ms: int, *, damaged: SnapshotsDamaged | None = None
    ) -> list[Command]:
        self._go("fail", now_ms)
        return [AttemptFailed(cause=cause, silent=self._silent, damaged=damaged)]

    def _messages(self, step: DeploymentState, executors: Iterable[ExecutorId]) -> list[Send]:
        """Return the messages that ask these executors for a step; none where none is asked."""
        version, attempt = self._version, self.attempt
        tasks_on: dict[ExecutorId, list[TaskId]] = {each: [] for each in self._addresses}
        for task in self.sessions:
            tasks_on.setdefault(self._placement[task], []).append(task)
        messages: list[Send] = []
        for executor_id in executors:
            message: ExecutorMessage
            if step == "launching":
                tasks = tasks_on[executor_id]
                wanted = set(tasks)
                message = LaunchTasks(
                    region=self._region,
                    version=version,
                    attempt=attempt,
                    tasks=tuple(
                        TaskLaunch(task_id=each, session=self.sessions[each]) for each in tasks
                    ),
                    epoch=self._epoch,
                    snapshots=tuple(
                        replace(file, tasks=own)
                        for file in self._snapshots
                        if (own := tuple(task for task in file.tasks if task in wanted))
                    ),
                    overrides=tuple(each for each in self._overrides if each.task_id in wanted),
                    first_session=self._first_session,
                    probes=tuple(each for each in self._probes if each.task_id in wanted),
                )
            elif step == "locating":
                locations = tuple(
                    TaskLocation(
                        executor_id=each, data_address=address, tasks=tuple(tasks_on[each])
                    )
                    for each, address in self._addresses.items()
                )
                message = TaskLocationsReady(version=version, attempt=attempt, locations=locations)
            elif step == "starting":
                message = StartAllTasks(
                    version=version,
                    attempt=attempt,
                    start_time_ms=self._start_time_ms,
                    halt_ms=self._halt_ms,
                )
            elif step == "stopping":
                message = StopAllTasks(version=version, attempt=attempt, completed=self._completed)
            else:
                break
            messages.append(Send(executor_id=executor_id, message=message))
        return messages
