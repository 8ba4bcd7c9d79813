"""The tasks of one attempt of one region in one executor."""

from gearpy.actor.api import Ref
from gearpy.ids import ProcessorId, SessionId, TaskId
from gearpy.messages.app import LaunchTasks
from gearpy.messages.summaries import ErrorCard
from gearpy.task.runtime.actor import TaskMessage
from gearpy.task.runtime.runner import TaskRunner


class TaskGroup:
    """Tracks the tasks of a group: which have started, and which have stopped."""

    def __init__(self, launch: LaunchTasks, *, sources: frozenset[ProcessorId]) -> None:
        self.region = launch.region
        self.version = launch.version
        self.attempt = launch.attempt
        self.sessions: dict[TaskId, SessionId] = {
            each.task_id: each.session for each in launch.tasks
        }
        self.tasks: dict[TaskId, Ref[TaskMessage]] = {}
        self.runners: dict[TaskId, TaskRunner] = {}
        self.waiting_start: set[TaskId] | None = None
        self.is_asked_to_stop = False
        self.stop_errors: list[ErrorCard] = []
        self.successor: LaunchTasks | None = None
        self._sources = sources
        self._waiting_stop: set[TaskId] | None = None  # None: nobody was asked.

    def task_of(self, ref: Ref[TaskMessage]) -> TaskId | None:
        return next((task for task, known in self.tasks.items() if known is ref), None)

    def source_refs(self) -> list[Ref[TaskMessage]]:
        return [
            ref for task, ref in self.tasks.items() if ProcessorId(task.processor) in self._sources
        ]

    # -- the end ---------------------------------------------------------------------------

    @property
    def is_stopped(self) -> bool:
        return self._waiting_stop is not None and not self._waiting_stop

    def begin_stop(self) -> list[Ref[TaskMessage]]:
        if self._waiting_stop is None:
            self._waiting_stop = {task for task, ref in self.tasks.items() if ref.is_alive}
        return [self.tasks[task] for task in sorted(self._waiting_stop)]

    def on_stopped(self, task: TaskId, error: ErrorCard | None) -> bool:
        """Note that a task has stopped; True if that was the last one that was awaited."""
        if error is not None:
            self.stop_errors.append(error)
        if self._waiting_stop is None or task not in self._waiting_stop:
            return False
        self._waiting_stop.discard(task)
        return self.is_stopped
