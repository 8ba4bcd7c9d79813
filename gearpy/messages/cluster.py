"""Client, master, worker and app master: who runs what where."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from gearpy.ids import ActorPath, AppId, ExecutorId, WorkerId
from gearpy.messages.consumers import ConsumerSummary

__all__ = [
    "CLIENT_MESSAGES",
    "Allocation",
    "AppMasterRegistered",
    "ApplicationDetail",
    "ApplicationList",
    "ApplicationProgress",
    "ApplicationStatus",
    "ApplicationStatusChanged",
    "ApplicationSummary",
    "Artifact",
    "ClockHolderSummary",
    "ClusterSummary",
    "EpochsSummary",
    "ErrorCard",
    "ExecutorExited",
    "ExecutorLaunchRejected",
    "ExecutorSummary",
    "Failure",
    "GetApplication",
    "GetCluster",
    "LaunchExecutor",
    "ListApplications",
    "ListWorkers",
    "LongTurnSummary",
    "MasterMessage",
    "OtherCluster",
    "ProcessorSummary",
    "PutValue",
    "Quarantine",
    "QuarantineStored",
    "Refused",
    "RegisterAppMaster",
    "RegisterWorker",
    "RequestResource",
    "ResourceAllocated",
    "ResourceUpdate",
    "ReturnResource",
    "RunningExecutor",
    "ShutdownAccepted",
    "ShutdownApplication",
    "ShutdownExecutor",
    "SubmitApplication",
    "Submitted",
    "ValueStored",
    "WorkerList",
    "WorkerMessage",
    "WorkerRegistered",
    "WorkerSummary",
]

#: Gearpump: `ApplicationStatus`. The last three are final.
ApplicationStatus: TypeAlias = Literal["pending", "active", "succeeded", "failed", "terminated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The submitted unit: where executors find the program, and how to build its graph.

    ``kind`` is ``"file"`` (``location`` is the path of a ``.py`` file), ``"memory"``
    (``location`` is a key of `cluster.programs.artifacts.embed`, one process only) or ``"stored"``
    (``location`` is the SHA-256 of bytes that were uploaded to the master, ``filename`` what they
    are: a ``.py`` file, a ``.zip`` of a folder, or a ``.whl``).
    ``module`` is the module to import of a stored folder or wheel, or that a file is (dotted name).
    ``attr`` names an application or a factory in it; empty means: find the only one.
    ``check_requirements``: what a stored program says it needs must be installed where it runs.
    """

    kind: Literal["file", "memory", "stored"]
    location: str
    filename: str = ""
    module: str = ""
    attr: str = ""
    args: tuple[str, ...] = ()
    check_requirements: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCard:
    """Why something failed, for people: what, where, on which record. See `OperatorError`."""

    cause: str
    operator: str = ""
    task: str = ""
    source: str = ""
    source_line: str = ""
    record: str = ""
    event_time_ms: int | None = None
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationProgress:
    """How far an application is. Counts are since its start; ``done`` of ``total`` where known.

    ``stall`` tells what holds the application clock when it has stood still for too long;
    ``waits_for`` what a source waits for outside of the application, such as a server that is away.
    ``drained``: its sources were stopped before their end, and all that they had read is shown.
    """

    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0
    quarantined_records: int = 0
    restarts: int = 0  # Of regions; the master adds those under app masters before this one.
    epoch: int = 0  # Newest epoch that a restart would go back to; 0: none yet.
    watermark_ms: int | None = None
    done: int = 0
    total: int = 0
    stall: str = ""
    waits_for: str = ""
    drained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSummary:
    """One application as `gear info` shows it. Times are wall time in ms since the epoch."""

    app_id: AppId
    name: str
    status: ApplicationStatus
    user: str = ""
    submitted_ms: int = 0
    started_ms: int = 0
    finished_ms: int = 0
    progress: ApplicationProgress = field(default_factory=ApplicationProgress)
    cause: ErrorCard | None = None

    def __repr__(self) -> str:
        done = self.progress
        why = "" if self.cause is None else f": {self.cause.cause}"
        return (
            f"<{self.name!r} {'drained' if done.drained else self.status}: {done.records_in:,} "
            f"records in, {done.records_out:,} out, {done.late_records:,} late{why}>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSummary:
    """One worker as `gear info` shows it."""

    worker_id: WorkerId
    slots: int
    free_slots: int
    address: str = ""  # Of its control listener; empty within the master's process.
    executors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSummary:
    """One executor of an application."""

    executor_id: ExecutorId
    launch: int
    worker_id: WorkerId
    slots: int
    status: Literal["launching", "running"]
    pid: int = 0
    data_address: str = ""
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorSummary:
    """One processor of an application, counts over all its tasks."""

    processor_id: int
    name: str
    parallelism: int
    clock_ms: int | None
    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0
    quarantined_records: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that went wrong and was survived, or not. ``at_ms`` is wall time."""

    at_ms: int
    what: str
    error: ErrorCard


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockHolderSummary:
    """One link of the chain from a source to what holds the clock; see `ClockService.why`."""

    task: str
    name: str
    clock_ms: int | None
    watermark_ms: int | None
    waits_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTurnSummary:
    """A task has been in one call for so long, in a step, at a line of user code."""

    task: str
    step: str
    lasts_ms: int
    source: str
    source_line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsSummary:
    """The epochs of one region: the newest complete one, and what did not come to be complete.

    ``stored_ms`` is wall time; like ``epoch`` it is 0 when there is none. What was given up, or
    gone back behind, is counted from the launch of the app master on.
    """

    region: int
    epoch: int
    stored_ms: int
    size_bytes: int
    kept: int
    aborted: int = 0
    last_abort: str = ""
    fallbacks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationDetail:
    """What an app master knows of its application, beside its summary.

    ``guarantees`` says for each path from a source to a sink what is promised; ``lag_ms`` how long
    ago the sources had read what the clock shows.
    """

    app_id: AppId
    executors: tuple[ExecutorSummary, ...] = ()
    processors: tuple[ProcessorSummary, ...] = ()
    failures: tuple[Failure, ...] = ()  # The latest, oldest first.
    restarts: int = 0
    epoch: int = 0
    why: tuple[ClockHolderSummary, ...] = ()
    lag_ms: int = 0
    long_turns: tuple[LongTurnSummary, ...] = ()
    guarantees: tuple[str, ...] = ()
    epochs: tuple[EpochsSummary, ...] = ()
    consumers: tuple[ConsumerSummary, ...] = ()


# -- client -> master ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitApplication:
    """Start an application. Answer: `Submitted` or `Refused`.

    With 0 ``executors`` it gets as few as there is room for.
    With ``resume_from`` it begins with a checkpoint of another one: text of a `ResumePoint`. With
    ``checkpoints`` it is a run that goes on: what it has stored is below that name, and its app
    master was launched ``launches`` times. Whoever opens its log next ends the right of them all.
    """

    name: str
    artifact: Artifact
    executors: int = 0
    config: dict[str, str] = field(default_factory=dict)
    user: str = ""
    resume_from: str = ""
    checkpoints: str = ""
    launches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The application has an id and will be started."""

    app_id: AppId


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The master did not do what was asked; ``reason`` says what to change."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetCluster:
    """Answer: `ClusterSummary`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSummary:
    """The cluster itself. Its id is part of the names of its checkpoints, and never changes."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListApplications:
    """Answer: `ApplicationList`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationList:
    """All applications the master knows, oldest first."""

    applications: tuple[ApplicationSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetApplication:
    """Answer: `ApplicationSummary` or `Refused`."""

    app_id: AppId


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWorkers:
    """Answer: `WorkerList`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerList:
    """All registered workers."""

    workers: tuple[WorkerSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownApplication:
    """Stop an application; it becomes ``terminated``. Answer: `ShutdownAccepted` or `Refused`."""

    app_id: AppId


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownAccepted:
    """The application is ``terminated``; its executors are being stopped."""

    app_id: AppId


# -- worker <-> master ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningExecutor:
    """An executor that a worker has started and that has not ended.

    ``app_master`` is the launch of the app master that has launched it, or that it hosts.
    """

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    app_master: int
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterWorker:
    """A worker offers its slots. Answered by `WorkerRegistered`.

    Sent again when the master was lost and is back: ``worker_id`` is then what it had, and
    ``running`` what takes some of its slots, so that a new master can count them. A master of
    another cluster than ``cluster_id``, if that is not empty, answers `OtherCluster` instead.
    """

    worker: ActorPath
    slots: int
    cluster_id: str = ""
    worker_id: WorkerId | None = None
    running: tuple[RunningExecutor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRegistered:
    """The worker has an id, and belongs to a cluster from now on."""

    worker_id: WorkerId
    master: ActorPath
    cluster_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCluster:
    """Whoever has asked belongs to another cluster than this master, whose id this is."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUpdate:
    """What runs on the worker has changed: ``running`` is all of it.

    ``refused`` was to run since the last time, and was not started. Gearpump: `ResourceUpdate`,
    which tells how many slots are free at the worker's end, and so can be older than a grant that
    is under way.
    """

    worker_id: WorkerId
    running: tuple[RunningExecutor, ...]
    refused: tuple[RunningExecutor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchExecutor:
    """Start an executor that takes ``slots``; with id -1 it hosts the AppMaster.

    ``launch`` counts the launches of the app master, or of all executors of one app master: it
    tells an executor from an earlier one with the same id. ``app_master`` is the launch of the app
    master that asks, or that is hosted.
    """

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    app_master: int
    slots: int
    name: str
    artifact: Artifact
    executors: int
    config: dict[str, str]
    reply_to: ActorPath  # The master for executor -1, else the app master.
    cluster_id: str = ""  # Of the master that has launched the app master.
    checkpoints: str = ""  # Below which name of the checkpoint store everything of it is.
    resume_from: str = ""  # At its very first start: another such name, then "@" and an epoch.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorLaunchRejected:
    """The worker could not start it. Gearpump: `ExecutorLaunchRejected`."""

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownExecutor:
    """Stop an executor; its slots become free. ``kill`` gives it no time to end well."""

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    reason: str
    kill: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorExited:
    """An executor is gone. ``cause`` is empty when it was asked to stop.

    Of an app master, ``cluster_id`` says of which cluster it was.
    """

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    cause: str = ""
    cluster_id: str = ""


# -- app master <-> master -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterAppMaster:
    """An app master is up, or found its master again. Answered by `AppMasterRegistered`.

    ``launch`` is that of its `LaunchExecutor`: of two, the master hears the newer one only. A
    master of another cluster does not answer.
    """

    cluster_id: str = ""
    app_id: AppId
    app_master: ActorPath
    launch: int
    status: ApplicationStatus = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppMasterRegistered:
    """The master knows the app master. ``values`` is all that was stored for the application.

    ``has_run``: it was active before.
    """

    app_id: AppId
    launch: int
    has_run: bool = False
    values: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PutValue:
    """Store a value of an application durably. Answered by `ValueStored`.

    Gearpump: `PutKV`. ``version`` comes back with the answer.
    """

    app_id: AppId
    launch: int
    key: str
    value: bytes
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueStored:
    """The value is on disk."""

    app_id: AppId
    key: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Store a record that an operator could not take, durably.

    Answered by `QuarantineStored` with its ``number``, which counts those of a ``launch``.
    """

    app_id: AppId
    launch: int
    number: int
    processor_id: int
    value: bytes
    event_time_ms: int
    error: ErrorCard


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineStored:
    """The record is on disk."""

    app_id: AppId
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResource:
    """Ask for ``slots`` spread over ``executors`` executors. Gearpump: `RequestResource`.

    ``sizes`` of the executors, if they are not to be equal. With 0 executors the slots are
    divided as there is room, and granted together. ``launch`` is that of the app master that asks.
    """

    app_id: AppId
    launch: int
    slots: int
    executors: int
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """``slots`` on one worker, for one executor."""

    worker_id: WorkerId
    worker: ActorPath
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAllocated:
    """Some or all of what was requested; the rest follows when slots become free."""

    app_id: AppId
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnResource:
    """The app master of ``launch`` has no use for slots that it was granted for one executor."""

    app_id: AppId
    launch: int
    worker_id: WorkerId
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationStatusChanged:
    """The app master of ``launch`` reports how its application is.

    ``pending`` of one that was active: it waits for slots that it has lost.
    """

    app_id: AppId
    launch: int
    status: ApplicationStatus
    progress: ApplicationProgress
    cause: ErrorCard | None = None


#: What a client may ask; everything else comes from roles of the cluster.
CLIENT_MESSAGES: Final = (
    SubmitApplication,
    GetCluster,
    ListApplications,
    GetApplication,
    ListWorkers,
    ShutdownApplication,
)
MasterMessage: TypeAlias = (
    SubmitApplication
    | GetCluster
    | ListApplications
    | GetApplication
    | ListWorkers
    | ShutdownApplication
    | RegisterWorker
    | ResourceUpdate
    | ExecutorLaunchRejected
    | ExecutorExited
    | RegisterAppMaster
    | RequestResource
    | ReturnResource
    | ApplicationStatusChanged
    | PutValue
    | Quarantine
)
WorkerMessage: TypeAlias = WorkerRegistered | OtherCluster | LaunchExecutor | ShutdownExecutor
