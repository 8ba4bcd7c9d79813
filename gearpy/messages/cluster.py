"""Messages between the master, workers and app masters: registration, slots, launches."""

from typing import Literal, TypeAlias

from msgspec import Struct, field

from gearpy.ids import ActorPath, AppId, ExecutorId, WorkerId
from gearpy.messages.client import (
    Artifact,
    GetApplication,
    GetCluster,
    ListApplications,
    ListWorkers,
    ShutdownApplication,
    SubmitApplication,
)
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ErrorCard


class RunningExecutor(Struct, frozen=True, kw_only=True):
    """An executor that a worker has started and that has not ended.

    ``app_master`` is the launch of the app master that has launched it, or that it hosts.
    """

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    app_master: int
    slots: int


class RegisterWorker(Struct, frozen=True, kw_only=True):
    """A worker offers its slots. Answered by `WorkerRegistered`.

    Sent again when the master was lost and is back: ``worker_id`` is then what it had, and
    ``running`` what takes some of its slots, so that a new master can count them. A master of
    another cluster than ``cluster_id``, if that is not empty, answers `OtherCluster` instead.
    ``hosts`` are names of its machine, ``rack`` is where that stands; both may be unknown.
    ``home`` is where it works, the same for the next process there; empty if there is none.
    ``version`` is that of its gearpy; empty if that is too old to say it.
    """

    worker: ActorPath
    slots: int
    cluster_id: str = ""
    worker_id: WorkerId | None = None
    running: tuple[RunningExecutor, ...] = ()
    hosts: tuple[str, ...] = ()
    rack: str = ""
    home: str = ""
    version: str = ""


class WorkerRegistered(Struct, frozen=True, kw_only=True):
    """The worker has an id, and belongs to a cluster from now on."""

    worker_id: WorkerId
    master: ActorPath
    cluster_id: str = ""
    term: int = 0


class MastersChanged(Struct, frozen=True, kw_only=True):
    """The addresses of all masters, for who may have to look for another one.

    Told behind the answer to a registration, and when masters were added or removed.
    """

    masters: tuple[str, ...]
    term: int = 0


class OtherCluster(Struct, frozen=True, kw_only=True):
    """The asker belongs to another cluster; ``cluster_id`` is that of this master."""

    cluster_id: str


class ResourceUpdate(Struct, frozen=True, kw_only=True):
    """The executors of a worker have changed: ``running`` is all of them.

    ``refused`` was to run since the last time, and was not started. Gearpump: `ResourceUpdate`,
    which tells how many slots are free at the worker's end, and so can be older than a grant that
    is under way. A worker that ``is_leaving`` takes nothing new.
    """

    worker_id: WorkerId
    running: tuple[RunningExecutor, ...]
    refused: tuple[RunningExecutor, ...] = ()
    is_leaving: bool = False


class LaunchExecutor(Struct, frozen=True, kw_only=True):
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
    cluster_id: str = ""  # The cluster that has launched the app master.
    checkpoints: str = ""  # Below which name of the checkpoint store everything of it is.
    resume_from: str = ""  # At its very first start: another such name, then "@" and an epoch.
    term: int = 0  # The master's, for executor -1.
    hosts: tuple[str, ...] = ()  # The places that its tasks are bound to.

    @property
    def store_prefix(self) -> str:
        return self.checkpoints or f"app{self.app_id}"


class ExecutorLaunchRejected(Struct, frozen=True, kw_only=True):
    """The worker could not start it. Gearpump: `ExecutorLaunchRejected`."""

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    reason: str

    @property
    def cause(self) -> str:
        return f"it was not started: {self.reason}"


class ShutdownExecutor(Struct, frozen=True, kw_only=True):
    """Stop an executor; its slots become free. ``kill`` gives it no time to end well."""

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    reason: str
    kill: bool = False
    term: int = 0  # A master's; an app master has none.


class ExecutorExited(Struct, frozen=True, kw_only=True):
    """An executor is gone. ``cause`` is empty when it was asked to stop.

    Of an app master, ``cluster_id`` names the cluster it was of.
    """

    app_id: AppId
    executor_id: ExecutorId
    launch: int
    cause: str = ""
    cluster_id: str = ""


class RegisterAppMaster(Struct, frozen=True, kw_only=True):
    """An app master is up, or found its master again. Answered by `AppMasterRegistered`.

    ``launch`` is that of its `LaunchExecutor`: of two, the master hears the newer one only. A
    master of another cluster does not answer.
    """

    cluster_id: str = ""
    app_id: AppId
    app_master: ActorPath
    launch: int
    status: ApplicationStatus = "pending"


class AppMasterRegistered(Struct, frozen=True, kw_only=True):
    """The master knows the app master. ``values`` is all that was stored for the application.

    ``has_run``: it was active before. ``master`` is the one that answers.
    """

    app_id: AppId
    launch: int
    has_run: bool = False
    values: dict[str, bytes] = field(default_factory=dict)
    master: ActorPath | None = None
    term: int = 0


class PutValue(Struct, frozen=True, kw_only=True):
    """Store a value of an application durably. Answered by `ValueStored`.

    Gearpump: `PutKV`. ``version`` comes back with the answer.
    """

    app_id: AppId
    launch: int
    key: str
    value: bytes
    version: int = 0


class ValueStored(Struct, frozen=True, kw_only=True):
    """The value is on disk."""

    app_id: AppId
    key: str
    version: int


class Quarantine(Struct, frozen=True, kw_only=True):
    """Store a record that an operator could not take, durably.

    Answered by `QuarantineStored` with its ``number``, which counts those of a ``launch``. One
    that the app master keeps itself has the time at which it was put aside, and its number counts.
    """

    app_id: AppId
    launch: int
    number: int
    processor_id: int
    value: bytes
    event_time_ms: int
    error: ErrorCard
    at_ms: int = 0


class QuarantineStored(Struct, frozen=True, kw_only=True):
    """The record is on disk."""

    app_id: AppId
    number: int


SlotPriority: TypeAlias = Literal["", "low", "normal", "high"]
SlotRelaxation: TypeAlias = Literal["", "any", "one-worker"]


class SlotWishes(Struct, frozen=True, kw_only=True):
    """The places and times of a program's slots; an empty field is as configured."""

    priority: SlotPriority = ""
    relaxation: SlotRelaxation = ""
    hosts: tuple[str, ...] = ()


class RequestResource(Struct, frozen=True, kw_only=True):
    """Ask for ``slots`` spread over ``executors`` executors. Gearpump: `RequestResource`.

    ``sizes`` of the executors, if they are not to be equal. With 0 executors the slots are
    divided as there is room, and granted together. ``launch`` is that of the app master that asks.
    It takes the place of what was asked for before, unless it ``adds`` to that. With a
    ``worker_id`` it is for one executor, on that worker; with ``hosts`` only for workers there.
    Workers ``near`` its data, by the names of their machines, come first; others will do, too.
    ``wishes`` are those of the program; what the application was submitted with counts more.
    ``total`` are the slots of all its executors, with those asked for; 0 if that is not said.
    """

    app_id: AppId
    launch: int
    slots: int
    executors: int
    total: int = 0
    sizes: tuple[int, ...] = ()
    worker_id: WorkerId | None = None
    hosts: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    adds: bool = False
    wishes: SlotWishes = SlotWishes()


class WithdrawRequests(Struct, frozen=True, kw_only=True):
    """The app master of ``launch`` waits for no slots any more."""

    app_id: AppId
    launch: int


class FindWorkers(Struct, frozen=True, kw_only=True):
    """The app master of ``launch`` asks for the workers. Answered by `WorkerList`."""

    app_id: AppId
    launch: int


class Allocation(Struct, frozen=True, kw_only=True):
    """``slots`` on one worker, for one executor; asked for with these ``hosts``."""

    worker_id: WorkerId
    worker: ActorPath
    slots: int
    hosts: tuple[str, ...] = ()


class ResourceAllocated(Struct, frozen=True, kw_only=True):
    """Some or all of the requested slots; the rest follows when slots become free."""

    app_id: AppId
    allocations: tuple[Allocation, ...]
    term: int = 0


class ReturnResource(Struct, frozen=True, kw_only=True):
    """The app master of ``launch`` has no use for slots that it was granted for one executor."""

    app_id: AppId
    launch: int
    worker_id: WorkerId
    slots: int


class ApplicationStatusChanged(Struct, frozen=True, kw_only=True):
    """The app master of ``launch`` reports how its application is.

    ``pending`` of one that was active: it waits for slots that it has lost.
    """

    app_id: AppId
    launch: int
    status: ApplicationStatus
    progress: ApplicationProgress
    cause: ErrorCard | None = None


class LastAnswer(Struct, frozen=True, kw_only=True):
    """The app master of ``launch`` leaves an answer behind, for clients that ask when it is gone.

    It does so at its end, and every now and then before, as its process may be killed: ``is_last``
    tells which. The master notes the time, ``at_ms``. ``kind`` is the class of the answer,
    ``answer`` its encoding: `ApplicationDetail`, `PlanText`, `EpochList`, `VersionList`,
    `MetricsData`, `SeriesData` or `HistoryPoints`. Of the last three there are several: ``part`` is
    the ``first`` of a page, or a ``read_option``.
    """

    app_id: AppId
    launch: int
    kind: str
    answer: bytes
    part: str = ""
    is_last: bool = True
    at_ms: int = 0


class GetLastAnswer(Struct, frozen=True, kw_only=True):
    """Ask for an answer of an application without an app master. Answer: `LastAnswer` or `Refused`.

    Asked within the master's process only.
    """

    app_id: AppId
    kind: str
    part: str = ""


class ReplicaPart(Struct, frozen=True, kw_only=True):
    """A part of a master's message to another about their log.

    ``member`` is the address of the sender among the masters, ``disk`` names its folder. Parts of
    one message come one after the other. ``speaks`` is the newest version of such messages that
    the sender understands.
    """

    member: str
    disk: str
    part: bytes
    is_first: bool
    is_last: bool
    speaks: int = 1


class ReplicaRefused(Struct, frozen=True, kw_only=True):
    """The master at ``member`` does not listen to one with this ``disk``: it had another one."""

    member: str
    disk: str


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
    | WithdrawRequests
    | FindWorkers
    | ApplicationStatusChanged
    | PutValue
    | Quarantine
    | LastAnswer
    | GetLastAnswer
    | MastersChanged
)
#: A master demands these of workers and app masters; ``term`` says since when it leads.
MasterOrder: TypeAlias = (
    WorkerRegistered
    | MastersChanged
    | LaunchExecutor
    | ShutdownExecutor
    | AppMasterRegistered
    | ResourceAllocated
)
WorkerMessage: TypeAlias = (
    WorkerRegistered | MastersChanged | OtherCluster | LaunchExecutor | ShutdownExecutor
)
