"""App master and executors: start-up, clocks, failures, end.

Every step of the start-up names the DAG version and the attempt; an executor or app master
ignores what belongs to another attempt, so that each step may be sent again.
"""

from dataclasses import dataclass
from typing import TypeAlias

from gearpy.ids import ActorPath, ExecutorId, SessionId, TaskId
from gearpy.messages.cluster import ErrorCard

__all__ = [
    "BeginEpoch",
    "EpochStored",
    "ExecutorMessage",
    "ExecutorToAppMaster",
    "InjectRecord",
    "LaunchTasks",
    "LinkBroken",
    "RecordQuarantined",
    "RegisterExecutor",
    "ReportClocks",
    "SnapshotFile",
    "StartAllTasks",
    "StopAllTasks",
    "TaskClock",
    "TaskFailed",
    "TaskLaunch",
    "TaskLocation",
    "TaskLocationsReady",
    "TaskLocationsReceived",
    "TasksLaunched",
    "TasksStarted",
    "TasksStopped",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterExecutor:
    """An executor is up and built the graph. ``data_address`` is its transport's listener.

    ``launch`` is that of its `LaunchExecutor`; another than the app master waits for is a zombie.
    """

    executor_id: ExecutorId
    launch: int
    executor: ActorPath
    data_address: str
    slots: int
    graph_hash: str
    graph: tuple[str, ...] = ()  # `Dag.description`: a line for each processor and edge.
    pid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLaunch:
    """A task to create and the session number of its new incarnation."""

    task_id: TaskId
    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """Where an executor has stored what its tasks were at the end of an epoch."""

    location: str
    sha256: str
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTasks:
    """Create these tasks; answered by `TasksLaunched`. Gearpump: `LaunchTasks`.

    Tasks of an earlier attempt of the same region are stopped first. ``epoch`` is the one that
    the first records belong to. ``snapshots`` hold what the tasks go on from; empty: from the
    beginning.
    """

    region: int
    version: int
    attempt: int
    tasks: tuple[TaskLaunch, ...]
    epoch: int = 1
    snapshots: tuple[SnapshotFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksLaunched:
    """The tasks exist and can be addressed."""

    executor_id: ExecutorId
    version: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLocation:
    """Which executor hosts which tasks, and where its data listener is."""

    executor_id: ExecutorId
    data_address: str
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLocationsReady:
    """All tasks exist; here is where. Answered by `TaskLocationsReceived`."""

    version: int
    attempt: int
    locations: tuple[TaskLocation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLocationsReceived:
    """The executor can reach every task."""

    executor_id: ExecutorId
    version: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAllTasks:
    """Run. Sources open at ``start_time_ms``. Answered by `TasksStarted`."""

    version: int
    attempt: int
    start_time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksStarted:
    """The executor's tasks run."""

    executor_id: ExecutorId
    version: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClock:
    """What one task reports. ``clock_ms`` never moves backwards within a session.

    ``watermark_ms`` is what the task promises downstream. Counts are since the task's start.
    ``done`` of ``total`` is a source's progress in its own units; 0 of 0 where unknown.
    """

    task_id: TaskId
    session: SessionId
    clock_ms: int
    watermark_ms: int
    idle: bool = False
    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0
    quarantined_records: int = 0
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportClocks:
    """The clocks of one executor's tasks that changed since the last report."""

    executor_id: ExecutorId
    clocks: tuple[TaskClock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpoch:
    """Sources of this attempt: end epoch ``epoch`` where you are. Answered by `EpochStored`.

    Sent again when it was not answered; sources that have ended the epoch ignore it.
    """

    version: int
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStored:
    """What all tasks of the executor and attempt were at the end of an epoch is on disk."""

    executor_id: ExecutorId
    attempt: int
    epoch: int
    snapshot: SnapshotFile


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBroken:
    """The connection to another executor's data listener is lost."""

    executor_id: ExecutorId
    address: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordQuarantined:
    """An operator could not take a record; the application goes on without it."""

    executor_id: ExecutorId
    processor_id: int
    value: bytes
    event_time_ms: int
    error: ErrorCard


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectRecord:
    """Give a record to a task once more, beside what comes on its links."""

    task_id: TaskId
    value: bytes
    event_time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed:
    """A task raised, or lost messages; it does nothing more."""

    executor_id: ExecutorId
    task_id: TaskId
    session: SessionId
    error: ErrorCard


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAllTasks:
    """Call `on_stop` of every task, then answer `TasksStopped`.

    ``completed`` tells sinks that the stream has ended well.
    """

    version: int
    attempt: int
    completed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksStopped:
    """All tasks have stopped. ``errors`` holds what `on_stop` raised."""

    executor_id: ExecutorId
    version: int
    attempt: int
    errors: tuple[ErrorCard, ...] = ()


ExecutorToAppMaster: TypeAlias = (
    RegisterExecutor
    | TasksLaunched
    | TaskLocationsReceived
    | TasksStarted
    | ReportClocks
    | TaskFailed
    | TasksStopped
    | EpochStored
    | LinkBroken
    | RecordQuarantined
)
ExecutorMessage: TypeAlias = (
    LaunchTasks | TaskLocationsReady | StartAllTasks | StopAllTasks | BeginEpoch | InjectRecord
)
