"""Client, master, worker and app master: who runs what where."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from gearpy.ids import ActorPath, AppId, ExecutorId, WorkerId

__all__ = [
    "CLIENT_MESSAGES",
    "Allocation",
    "AppMasterRegistered",
    "ApplicationList",
    "ApplicationProgress",
    "ApplicationStatus",
    "ApplicationStatusChanged",
    "ApplicationSummary",
    "Artifact",
    "ErrorCard",
    "ExecutorExited",
    "ExecutorLaunchRejected",
    "GetApplication",
    "LaunchExecutor",
    "ListApplications",
    "ListWorkers",
    "MasterMessage",
    "Refused",
    "RegisterAppMaster",
    "RegisterWorker",
    "RequestResource",
    "ResourceAllocated",
    "ResourceUpdate",
    "ShutdownAccepted",
    "ShutdownApplication",
    "ShutdownExecutor",
    "SubmitApplication",
    "Submitted",
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

    ``kind`` is ``"file"`` (``location`` is the path of a ``.py`` file) or ``"memory"``
    (``location`` is a key of `task.application.embedded`, one process only).
    ``attr`` names an application or a factory in it; empty means: find the only one.
    """

    kind: Literal["file", "memory"]
    location: str
    attr: str = ""
    args: tuple[str, ...] = ()


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

    ``stall`` tells what holds the application clock when it has stood still for too long.
    """

    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    watermark_ms: int | None = None
    done: int = 0
    total: int = 0
    stall: str = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSummary:
    """One worker as `gear info` shows it."""

    worker_id: WorkerId
    slots: int
    free_slots: int


# -- client -> master ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitApplication:
    """Start an application. Answer: `Submitted` or `Refused`."""

    name: str
    artifact: Artifact
    executors: int = 1
    config: dict[str, str] = field(default_factory=dict)
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The application has an id and will be started."""

    app_id: AppId


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The master did not do what was asked; ``reason`` says what to change."""

    reason: str


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
class RegisterWorker:
    """A worker offers its slots. Answered by `WorkerRegistered`."""

    worker: ActorPath
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRegistered:
    """The worker has an id."""

    worker_id: WorkerId
    master: ActorPath


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUpdate:
    """Slots of the worker are free again; the master itself counts what it has granted.

    Gearpump: `ResourceUpdate`, which tells what is free at the worker's end, and so can be
    older than a grant that is under way.
    """

    worker_id: WorkerId
    released_slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchExecutor:
    """Start an executor that takes ``slots``; with id -1 it hosts the AppMaster."""

    app_id: AppId
    executor_id: ExecutorId
    slots: int
    name: str
    artifact: Artifact
    executors: int
    config: dict[str, str]
    reply_to: ActorPath  # The master for executor -1, else the app master.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorLaunchRejected:
    """The worker could not start it. Gearpump: `ExecutorLaunchRejected`."""

    app_id: AppId
    executor_id: ExecutorId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownExecutor:
    """Stop an executor; its slots become free."""

    app_id: AppId
    executor_id: ExecutorId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorExited:
    """An executor is gone. ``cause`` is empty when it was asked to stop."""

    app_id: AppId
    executor_id: ExecutorId
    cause: str = ""


# -- app master <-> master -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterAppMaster:
    """An app master is up. Answered by `AppMasterRegistered`."""

    app_id: AppId
    app_master: ActorPath


@dataclass(frozen=True, slots=True, kw_only=True)
class AppMasterRegistered:
    """The master knows the app master."""

    app_id: AppId


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResource:
    """Ask for ``slots`` spread over ``executors`` executors. Gearpump: `RequestResource`."""

    app_id: AppId
    slots: int
    executors: int


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
class ApplicationStatusChanged:
    """The app master reports ``active``, ``succeeded`` or ``failed``."""

    app_id: AppId
    status: ApplicationStatus
    progress: ApplicationProgress
    cause: ErrorCard | None = None


#: What a client may ask; everything else comes from roles of the cluster.
CLIENT_MESSAGES: Final = (
    SubmitApplication,
    ListApplications,
    GetApplication,
    ListWorkers,
    ShutdownApplication,
)
MasterMessage: TypeAlias = (
    SubmitApplication
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
    | ApplicationStatusChanged
)
WorkerMessage: TypeAlias = WorkerRegistered | LaunchExecutor | ShutdownExecutor
