"""Client -> master: submit, list, stop, describe; programs, logs, quarantined records.

What the master does not know itself, the process that answers clients asks of the app master
(`DescribeApplication`, `DrainApplication`, `GetEpochs`, `GetPlan`, `GetVersions`, `ReplayNow`,
`ReplayQuarantined`, `UpdateApplication`) or of a worker (`DescribeWorker`, `DrainWorker`,
`ReadLog`).
"""

from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from gearpy.ids import ActorPath, AppId, ExecutorId, WorkerId
from gearpy.messages.masters import MasterList
from gearpy.messages.question import Question
from gearpy.messages.served import Served
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationSummary,
    ErrorCard,
    ScaleBounds,
    Until,
    WorkerSummary,
)


class Artifact(Served, frozen=True, kw_only=True):
    """The submitted unit: where executors find the program, and how to build its graph.

    ``kind`` is ``"file"`` (``location`` is the path of a ``.py`` file), ``"memory"``
    (``location`` is a key of `cluster.programs.artifacts.embed`, one process only) or ``"stored"``
    (``location`` is the SHA-256 of bytes that were uploaded to the master, ``filename`` what they
    are: a ``.py`` file, a ``.zip`` of a folder, or a ``.whl``).
    ``module`` is the module to import of a stored folder or wheel, or that a file is (dotted name).
    ``attr`` names an application or a factory in it; empty means: find the only one.
    ``check_requirements``: what a stored program says it needs must be installed where it runs.
    ``runs``: a graph of tasks, or an app master and executors of its own.
    ``scale``: the tasks of steps, by id, that have others than the program says. ``bounds``: the
    same for what autoscale may choose. ``until``: whether it ends with its input, or when it has
    read what is there.
    """

    kind: Literal["file", "memory", "stored"]
    location: str
    filename: str = ""
    module: str = ""
    attr: str = ""
    args: tuple[str, ...] = ()
    check_requirements: bool = True
    runs: Literal["streams", "actors"] = "streams"
    scale: tuple[tuple[str, int], ...] = ()
    bounds: tuple[tuple[str, ScaleBounds], ...] = ()
    until: Until = "end"


class SubmitApplication(Question["Submitted"], frozen=True, kw_only=True):
    """Start an application. Answer: `Submitted` or `Refused`.

    With 0 ``executors`` it gets as few as there is room for.
    With ``resume_from`` it begins with a checkpoint of another one: text of a `ResumePoint`. With
    ``checkpoints`` it is a run that goes on: what it has stored is below that name, and its app
    master was launched ``launches`` times. The next to open its log ends the right of them all.
    Sent again with the same ``key``, which is not empty, it starts nothing more.
    """

    name: str
    artifact: Artifact
    executors: int = 0
    config: dict[str, str] = field(default_factory=dict)
    user: str = ""
    resume_from: str = ""
    checkpoints: str = ""
    launches: int = 0
    key: str = ""


class Submitted(Struct, frozen=True, kw_only=True):
    """The application has an id and will be started."""

    app_id: AppId


class Refused(Struct, frozen=True, kw_only=True):
    """The master refused a request; ``reason`` says why, and how to change it.

    ``is_forbidden``: another user may do this.
    """

    reason: str
    is_forbidden: bool = False


class NotLeader(Struct, frozen=True, kw_only=True):
    """Tells that a master does not lead, and answers nothing; ``leader`` does, if that is known.

    ``masters``: all, as far as this one knows.
    """

    leader: str = ""
    masters: tuple[str, ...] = ()


class Asker(Struct, frozen=True, kw_only=True):
    """The user in whose name a client asks for a change.

    Clients are believed, as they know the secret of the cluster: services tell the user of a token,
    ``is_admin`` if it is one of an admin, and the ``address`` that the request came from.
    """

    user: str = ""
    is_admin: bool = False
    address: str = ""


class ChangeMasters(Question[MasterList], frozen=True, kw_only=True):
    """Have another master lead, or have one more or one less. Answer: `MasterList` or `Refused`."""

    change: Literal["transfer", "add", "remove"]
    address: str
    by: Asker = Asker()


class GetCluster(Question["ClusterSummary"], frozen=True, kw_only=True):
    """Answer: `ClusterSummary`."""


class ClusterSummary(Struct, frozen=True, kw_only=True):
    """The cluster itself. Its id is part of the names of its checkpoints, and never changes.

    ``masters``: all, where there are several.
    """

    cluster_id: str
    masters: tuple[str, ...] = ()


class ListApplications(Question["ApplicationList"], frozen=True, kw_only=True):
    """Ask for the applications with this id and those after it. Answer: `ApplicationList`."""

    first: int = 0


class ApplicationList(Struct, frozen=True, kw_only=True):
    """The applications that the master knows, oldest first.

    ``more_from`` is the id of the first one that did not fit, 0 if all did.
    """

    applications: tuple[ApplicationSummary, ...]
    more_from: int = 0


class GetApplication(Question[ApplicationSummary], frozen=True, kw_only=True):
    """Answer: `ApplicationSummary` or `Refused`."""

    app_id: AppId


class ListWorkers(Question["WorkerList"], frozen=True, kw_only=True):
    """Answer: `WorkerList`."""


class WorkerList(Struct, frozen=True, kw_only=True):
    """All registered workers. ``grows``: there are more of them when slots are missing."""

    workers: tuple[WorkerSummary, ...]
    grows: bool = False


class ShutdownApplication(Question["Accepted"], frozen=True, kw_only=True):
    """Stop an application; it becomes ``terminated``. Answer: `Accepted` or `Refused`."""

    app_id: AppId
    by: Asker = Asker()


class Accepted(Struct, frozen=True, kw_only=True):
    """The application is being stopped, or drained, as it was asked for."""

    app_id: AppId


#: A client may ask these; everything else comes from roles of the cluster.
CLIENT_MESSAGES: Final = (
    SubmitApplication,
    GetCluster,
    ListApplications,
    GetApplication,
    ListWorkers,
    ShutdownApplication,
)


class HasArtifact(Struct, frozen=True, kw_only=True):
    """Does the master have these bytes? Answer: `ArtifactStored` or `ArtifactMissing`."""

    sha256: str


class UploadArtifact(Struct, frozen=True, kw_only=True):
    """Some bytes of an artifact, in order from offset 0.

    Answer to the last: `ArtifactStored` or `Refused`; to the others: `ArtifactMissing` with what
    was received, or `Refused`.
    """

    sha256: str
    offset: int
    data: bytes
    last: bool


class ArtifactMissing(Struct, frozen=True, kw_only=True):
    """The master does not have all of it; ``received`` bytes of the upload are there."""

    sha256: str
    received: int = 0


class ArtifactStored(Struct, frozen=True, kw_only=True):
    """The master has it."""

    sha256: str
    size: int


class GetArtifactPart(Struct, frozen=True, kw_only=True):
    """A worker fetches an artifact. Answer: `ArtifactPart` or `Refused`."""

    sha256: str
    offset: int


class ArtifactPart(Struct, frozen=True, kw_only=True):
    """A part of the bytes of an artifact; ``last`` with the last ones."""

    sha256: str
    offset: int
    data: bytes
    last: bool


class DescribeApplication(Question[ApplicationDetail], frozen=True, kw_only=True):
    """Answer: `ApplicationDetail`, or `Refused` while there is no app master.

    With ``or_last`` the answer is then what the app master of before has left behind, if it has.
    """

    app_id: AppId
    or_last: bool = False


class RestartApplication(Question[Submitted], frozen=True, kw_only=True):
    """Stop it if it runs, and submit the same once more. Answer: `Submitted` or `Refused`.

    It goes on from its newest epoch, with the configuration that its coordinator log has; unless it
    has succeeded, or ``from_beginning`` says otherwise. ``checkpoint_folder``: where these are now,
    if they were moved. Gearpump: `RestartApplication`.
    """

    app_id: AppId
    from_beginning: bool = False
    by: Asker = Asker()
    checkpoint_folder: str = ""


class DrainApplication(Question["Accepted"], frozen=True, kw_only=True):
    """Stop sources, show the records they read, then end. Answer: `Accepted` or `Refused`.

    The application is ``terminated`` in the end, and keeps its checkpoints; ``drained`` in its
    progress says that all was shown. If that takes too long it is ``failed``. With a ``savepoint``
    its last epoch gets that name. Who has asked need not ask again: it is in the coordinator log.
    """

    app_id: AppId
    savepoint: str = ""
    by: Asker = Asker()


class MakeSavepoint(Question["SavepointMade"], frozen=True, kw_only=True):
    """Give the next epoch of each region a name. Answer: `SavepointMade` or `Refused`.

    Nothing stops. One that ``begins`` asks for it; others only ask whether it is made by now.
    """

    app_id: AppId
    name: str
    begins: bool = True
    by: Asker = Asker()


class SavepointMade(Struct, frozen=True, kw_only=True):
    """The epochs of a savepoint, each with its region; none as long as it is being made."""

    app_id: AppId
    name: str
    epochs: tuple[tuple[int, int], ...] = ()


class UpdateApplication(Question["UpdatePlanned"], frozen=True, kw_only=True):
    """Put another version in place of the one that runs. Answer: `UpdatePlanned` or `Refused`.

    While its program is being loaded it is `ProgramLoading`: asked again, with the same ``key``, it
    is answered with what became of it, and nothing is done twice.

    Exactly one of these says which: ``artifact``, a program; ``scale``, the tasks of steps of the
    program that runs, by id or name; ``version``, one of before. ``change`` names it for people.
    ``bounds`` are what autoscale may choose for steps from now on; alone, they make no version, and
    ``executors`` alone make one with the same graph. ``reason`` says why it is asked for.
    What the new version has no place for is refused, unless it ``allows_drop``. With ``executors``
    so many share its tasks. With ``is_trial_run`` nothing is changed. What became of it is in
    `VersionList`. With ``at_event_ms`` records from this event time on are of the new version, and
    older ones of that before; ``calls_off`` gives such a change up, or one that is being prepared.
    """

    app_id: AppId
    artifact: Artifact | None = None
    scale: tuple[tuple[str, int], ...] = ()
    bounds: tuple[tuple[str, ScaleBounds], ...] = ()
    version: int | None = None
    change: str = ""
    reason: str = ""
    executors: int = 0
    allows_drop: bool = False
    is_trial_run: bool = False
    at_event_ms: int | None = None
    calls_off: bool = False
    by: Asker = Asker()
    key: str = ""


class ProgramLoading(Struct, frozen=True, kw_only=True):
    """The program of a change is being loaded, for so long already."""

    app_id: AppId
    lasts_ms: int


class PlannedMove(Served, frozen=True, kw_only=True):
    """The fate of a step's state in another version, and the same as a text for people."""

    step: str
    name: str
    fate: str
    is_lost: bool
    text: str


class UpdatePlanned(Served, frozen=True, kw_only=True):
    """The change begins, as version ``version``; with ``refusal`` it would be refused.

    ``is_same``: graph and state are as they are, so that only code is different. ``goes_on``: the
    steps that do not pause, by name. ``differences``: other steps with other code, by name, and
    what is different in it. ``at_event_ms``: the event time that it waits for; None: it does not.
    """

    app_id: AppId
    version: int
    moves: tuple[PlannedMove, ...]
    is_same: bool = False
    refusal: str = ""
    goes_on: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    at_event_ms: int | None = None


class GetVersions(Question["VersionList"], frozen=True, kw_only=True):
    """Answer: `VersionList`, or `Refused` while there is no app master."""

    app_id: AppId


class VersionSummary(Served, frozen=True, kw_only=True):
    """A version of an application's program; see `core.coordinator.versions.ProgramVersion`."""

    number: int
    filename: str
    args: tuple[str, ...]
    scale: tuple[tuple[str, int], ...]
    change: str
    by: str
    at_ms: int
    state: Literal["waiting", "preparing", "trial", "running", "replaced", "failed"]
    reason: str
    epoch: int


class VersionList(Served, frozen=True, kw_only=True):
    """The versions of an application's program, the oldest first."""

    app_id: AppId
    versions: tuple[VersionSummary, ...]


class ReplayNow(Question["ReplayAccepted"], frozen=True, kw_only=True):
    """Restart all tasks from the newest epoch. Answer: `ReplayAccepted` or `Refused`.

    Costs nothing of the restart budget. Gearpump: ``gear replay``.
    """

    app_id: AppId
    by: Asker = Asker()


class ReplayAccepted(Struct, frozen=True, kw_only=True):
    """The tasks are being restarted from an epoch (0: from the beginning)."""

    app_id: AppId
    epoch: int


class ReadLog(Question["LogText"], frozen=True, kw_only=True):
    """The last lines of an executor's log (-1: the app master's). Answer: `LogText` or `Refused`.

    ``launch`` 0 means the newest. ``after`` is the ``position`` of an earlier answer: then what
    was written since, as far as it is still there.
    """

    app_id: AppId
    executor_id: ExecutorId
    lines: int
    launch: int = 0
    after: str = ""


class LogText(Served, frozen=True, kw_only=True):
    """Lines of a log, oldest first; ``source`` says which. ``position`` is where they end."""

    source: str
    text: str
    launch: int = 0
    position: str = ""


class QuarantinedRecord(Served, frozen=True, kw_only=True):
    """A record that was put aside. ``value`` is the payload's bytes, ``error.record`` its text.

    A list has neither value nor traceback.
    """

    number: int
    processor_id: int
    value: bytes
    event_time_ms: int
    error: ErrorCard
    at_ms: int


class ListQuarantined(Question["QuarantinedList"], frozen=True, kw_only=True):
    """Answer: `QuarantinedList` or `Refused`. Also of an application that has ended.

    A client gets the records that ``numbers`` names whole, and of others what fits a line: no
    value, no traceback. The master itself does not look at ``numbers`` and gives all.
    """

    app_id: AppId
    numbers: tuple[int, ...] = ()


class QuarantinedList(Served, frozen=True, kw_only=True):
    """Records put aside, oldest first, without the replayed ones.

    ``total`` is above 0 when there are more than fit into one answer.
    """

    app_id: AppId
    records: tuple[QuarantinedRecord, ...]
    total: int = 0


class ReplayQuarantined(Question[QuarantinedList], frozen=True, kw_only=True):
    """Give records (all if none are named) back to their operators.

    Answer: `QuarantinedList` of those that were given, or `Refused`. One that fails again is
    quarantined again, under a new number.

    A client names numbers only. The app master gets the records with it, and gives them to
    tasks. Then the master is asked the same with the numbers that were given: it marks them as
    replayed, and they are listed no more.
    """

    app_id: AppId
    numbers: tuple[int, ...] = ()
    records: tuple[QuarantinedRecord, ...] = ()
    by: Asker = Asker()


class WorkerAddress(Struct, frozen=True, kw_only=True):
    """A worker and where it is."""

    worker_id: WorkerId
    worker: ActorPath


class GetAddresses(Struct, frozen=True, kw_only=True):
    """Ask for the actors of an application. Asked within the master's process only."""

    app_id: AppId


class RoleAddresses(Struct, frozen=True, kw_only=True):
    """Answer to `GetAddresses`. ``app_master`` is None while there is none."""

    app_id: AppId
    app_master: ActorPath | None
    workers: tuple[WorkerAddress, ...]
    artifact: Artifact


# -- what the services show of the roles themselves ------------------------------------------------


class GetMaster(Question["ProcessDetail"], frozen=True, kw_only=True):
    """Answer: `ProcessDetail`."""


class ProcessDetail(Struct, frozen=True, kw_only=True):
    """The process of a master or worker: its address, its folders, its configuration by key.

    ``started_ms`` is wall time; an empty folder, or address of a page of metrics, is one that it
    does not have.
    """

    address: str
    started_ms: int
    host: str
    pid: int
    folder: str = ""
    log_folder: str = ""
    config: dict[str, str] = field(default_factory=dict)
    metrics_address: str = ""


class DescribeWorker(Question["WorkerDetail"], frozen=True, kw_only=True):
    """Answer: `WorkerDetail` or `Refused`."""

    worker_id: WorkerId


class HostedExecutor(Struct, frozen=True, kw_only=True):
    """An executor on a worker, or an app master (-1)."""

    app_id: AppId
    executor_id: ExecutorId
    slots: int
    launch: int


class WorkerDetail(Struct, frozen=True, kw_only=True):
    """A worker: its process, and the executors on it."""

    worker_id: WorkerId
    slots: int
    executors: tuple[HostedExecutor, ...]
    process: ProcessDetail


class DrainWorker(Question["WorkerDrains"], frozen=True, kw_only=True):
    """Have a worker take no more launches, have all that runs stop, then end.

    What it runs goes on elsewhere. Answer: `WorkerDrains`, or `Refused`; with ``if_idle`` also if
    anything runs there. The process of a worker asks it itself, without an id.
    """

    worker_id: WorkerId | None = None
    if_idle: bool = False
    by: Asker = Asker()


class WorkerDrains(Struct, frozen=True, kw_only=True):
    """The worker has told its master that it leaves. ``executors`` are there that it waits for."""

    executors: int


class GetDemand(Question["SlotDemand"], frozen=True, kw_only=True):
    """Answer: `SlotDemand`, with what a further worker of ``worker_slots`` slots would help."""

    worker_slots: int


class SlotDemand(Struct, frozen=True, kw_only=True):
    """The slots that applications wait for, and would get if there were more workers."""

    slots: int


class GetSubmission(Question["Submission"], frozen=True, kw_only=True):
    """Answer: `Submission` or `Refused`. Also of an application that has ended."""

    app_id: AppId


class Submission(Struct, frozen=True, kw_only=True):
    """The program of an application and its own settings, as they were submitted.

    ``restarts_with``: the program that a restart goes on with, if it was changed.
    """

    app_id: AppId
    filename: str
    args: tuple[str, ...]
    executors: int
    config: dict[str, str]
    artifact: Artifact | None = None
    restarts_with: Artifact | None = None


class GetEpochs(Question["EpochList"], frozen=True, kw_only=True):
    """Answer: `EpochList`, or `Refused` while there is no app master.

    With ``ends_one`` an epoch ends soon, before its time, and the answer is only about regions in
    which one can. Who asks again says in ``until``, by region, for which epoch it waits: none is
    ended for it once that one is, or begins to be.
    """

    app_id: AppId
    ends_one: bool = False
    until: tuple[tuple[int, int], ...] = ()


class StoredEpoch(Served, frozen=True, kw_only=True):
    """A complete epoch that is kept. ``stored_ms`` is wall time, ``clock_ms`` event time.

    ``cut_time_ms`` is the event time that it ends at; None if sources ended it where they were.
    """

    region: int
    epoch: int
    stored_ms: int
    size_bytes: int
    files: int
    clock_ms: int | None
    cut_time_ms: int | None


class EpochList(Struct, frozen=True, kw_only=True):
    """The epochs that an application could go back to, oldest first.

    ``place`` is the checkpoint store, as its app master sees it, and ``prefix`` the name below
    which they are there. ``next_to_end`` answers `GetEpochs.ends_one`: regions, and the first epoch
    of each that begins to end behind the question, and so has all that was read before.
    """

    app_id: AppId
    epochs: tuple[StoredEpoch, ...]
    place: str = ""
    prefix: str = ""
    next_to_end: tuple[tuple[int, int], ...] = ()


class GetStoredNames(Question["StoredNames"], frozen=True, kw_only=True):
    """The names below a prefix in a checkpoint store. Answer: `StoredNames` or `Refused`.

    ``app_id`` is an application that stores there.
    """

    app_id: AppId
    prefix: str


class StoredNames(Struct, frozen=True, kw_only=True):
    """Names of files in a checkpoint store, sorted."""

    names: tuple[str, ...]


class GetStoredPart(Question["StoredPart"], frozen=True, kw_only=True):
    """A part of a file in a checkpoint store. Answer: `StoredPart` or `Refused`.

    ``app_id`` is an application that stores there.
    """

    app_id: AppId
    location: str
    offset: int


class StoredPart(Struct, frozen=True, kw_only=True):
    """Bytes of a stored file from an offset on; none behind its end. It may have gone meanwhile."""

    data: bytes = b""
    is_there: bool = True


class GetPlan(Question["PlanText"], frozen=True, kw_only=True):
    """Answer: `PlanText`, or `Refused` while there is no app master."""

    app_id: AppId


class PlanText(Struct, frozen=True, kw_only=True):
    """The plan of an application: JSON, as ``gear plan --format json`` prints it."""

    app_id: AppId
    text: str


class GetAlerts(Question["AlertList"], frozen=True, kw_only=True):
    """Answer: `AlertList`."""


class SilenceAlert(Question["AlertList"], frozen=True, kw_only=True):
    """Tell nobody of an alert of an application until a time; one that has passed ends that.

    Answer: `AlertList` or `Refused`.
    """

    app_id: AppId
    rule: str
    until_ms: int
    by: Asker = Asker()


class FiringAlert(Served, frozen=True, kw_only=True):
    """A rule about an application that has held for longer than it should; see `views.alerts`."""

    app_id: AppId
    name: str
    rule: str
    level: Literal["ok", "info", "warn", "bad"]
    since_ms: int
    text: str


class AlertChange(Served, frozen=True, kw_only=True):
    """A rule has begun to fire for an application, or has been resolved."""

    state: Literal["firing", "resolved"]
    at_ms: int
    app_id: int
    name: str
    alert: FiringAlert


class FollowedRule(Served, frozen=True, kw_only=True):
    """A rule with its limit: it fires when a value has been at ``above`` or more for ``for_s``.

    ``is_off``: the configuration leaves it out.
    """

    rule: str
    level: Literal["ok", "info", "warn", "bad"]
    above: float
    unit: Literal["seconds", "share", "count"]
    for_s: int
    is_off: bool = False


class AlertSilence(Served, frozen=True, kw_only=True):
    """A rule that is not told of for an application; ``alert`` is what it hides at present."""

    app_id: AppId
    name: str
    rule: str
    until_ms: int
    user: str
    alert: FiringAlert | None = None


class AlertList(Served, frozen=True, kw_only=True):
    """All alerts that fire and are not silenced; of each application the longest firing first.

    ``history``: the last changes since the master was started, the newest last, silenced ones too.
    """

    alerts: tuple[FiringAlert, ...]
    rules: tuple[FollowedRule, ...] = ()
    history: tuple[AlertChange, ...] = ()
    silences: tuple[AlertSilence, ...] = ()


#: Changes of an application, which its user or an admin may ask for.
ApplicationChange: TypeAlias = (
    ShutdownApplication
    | DrainApplication
    | MakeSavepoint
    | RestartApplication
    | ReplayNow
    | ReplayQuarantined
    | UpdateApplication
    | SilenceAlert
)
