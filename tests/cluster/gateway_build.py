"""A gateway, and all that it asks: made up, but spoken to over the codec."""

from collections.abc import Callable
from typing import Any

from gearpy.cluster.client.gateway import Gateway
from gearpy.errors import ActorStopped
from gearpy.ids import ActorPath, AppId, WorkerId
from gearpy.messages.client import (
    ApplicationList,
    Artifact,
    ArtifactMissing,
    ClusterSummary,
    DescribeApplication,
    GetAddresses,
    GetApplication,
    GetCluster,
    GetSubmission,
    ListQuarantined,
    QuarantinedList,
    QuarantinedRecord,
    Refused,
    ReplayAccepted,
    ReplayNow,
    ReplayQuarantined,
    RestartApplication,
    RoleAddresses,
    Submission,
    SubmitApplication,
    Submitted,
    UpdateApplication,
    UpdatePlanned,
    WorkerAddress,
)
from gearpy.messages.cluster import GetLastAnswer, LastAnswer
from gearpy.messages.metrics import (
    GetHistory,
    GetMetrics,
    GetProcessMetrics,
    GetSeries,
    GetWorkerAddress,
    HistoryData,
    MetricsData,
    ProcessMetricsData,
    ProcessSample,
    SeriesData,
)
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationProgress,
    ApplicationStatus,
    ApplicationSummary,
    ErrorCard,
)
from gearpy.wire.codec import decode_control, encode_control

APP = AppId(3)
APP_MASTER = ActorPath("10.0.0.1:4000#1", "app3-appmaster")
ARTIFACT = Artifact(kind="file", location="app.py")
FRAME_BYTES_MAX = 1 << 20


def a_record(number: int, *, value: bytes = b"value", text: str = "x") -> QuarantinedRecord:
    card = ErrorCard(
        cause=f"ValueError: {text}\nand more", record=text, source_line=text, traceback=text
    )
    return QuarantinedRecord(
        number=number, processor_id=1, value=value, event_time_ms=7, error=card, at_ms=9
    )


class FakeMaster:
    """A master actor with one application, number 3, and some records in quarantine."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.app_master: ActorPath | None = APP_MASTER
        self.workers: tuple[WorkerAddress, ...] = ()
        self.records: list[QuarantinedRecord] = []
        self.status: ApplicationStatus = "active"
        self.user = ""
        self.finished_ms = 0
        self.is_drained = False
        self.left: LastAnswer | None = None
        self.program = "there"
        self.restarts_with: Artifact | None = None

    def ask(self, message: Any) -> object:
        self.asked.append(message)
        if (getattr(message, "app_id", APP) or APP) != APP:
            return Refused(reason=f"no application has id {message.app_id}")
        match message:
            case GetAddresses():
                return RoleAddresses(
                    app_id=APP, app_master=self.app_master, workers=self.workers, artifact=ARTIFACT
                )
            case ListQuarantined():
                return QuarantinedList(app_id=APP, records=tuple(self.records))
            case ReplayQuarantined():
                assert message.numbers, "to name none would mean all"
                gone = [each for each in self.records if each.number in message.numbers]
                self.records = [each for each in self.records if each not in gone]
                return QuarantinedList(app_id=APP, records=tuple(gone))
            case GetWorkerAddress() | GetProcessMetrics() | GetHistory():
                return self._measured(message)
        summary = ApplicationSummary(
            app_id=APP,
            name="a",
            status=self.status,
            user=self.user,
            finished_ms=self.finished_ms,
            progress=ApplicationProgress(drained=self.is_drained),
        )
        answers: dict[type, object] = {
            GetCluster: ClusterSummary(cluster_id="k3f9a1c2"),
            GetApplication: summary,
            GetSubmission: Submission(
                app_id=APP,
                filename="a.py",
                args=(),
                executors=1,
                config={},
                artifact=Artifact(kind="stored", location=self.program),
                restarts_with=self.restarts_with,
            ),
            GetLastAnswer: self.left or Refused(reason="not known any more"),
            RestartApplication: Submitted(app_id=AppId(4)),
            SubmitApplication: Submitted(app_id=AppId(4)),
        }
        return answers.get(type(message), ApplicationList(applications=(summary,)))

    def _measured(self, message: GetWorkerAddress | GetProcessMetrics | GetHistory) -> object:
        if not isinstance(message, GetWorkerAddress):
            return measured("master", message)
        found = [each for each in self.workers if each.worker_id == message.worker_id]
        return found[0] if found else Refused(reason="no worker has this id")


class FakePost:
    """Other processes: what each of their actors answers, or raises."""

    def __init__(self) -> None:
        self.actors: dict[ActorPath, Callable[[Any], object]] = {}
        self.asked: list[tuple[ActorPath, Any]] = []

    def ask(self, path: ActorPath, message: Any, timeout_s: float, /) -> object:
        assert timeout_s > 0
        self.asked.append((path, message))
        answer = self.actors.get(path)
        if answer is None:
            raise ActorStopped(f"no actor {path}")
        assert len(encode_control(message)) < FRAME_BYTES_MAX
        return decode_control(encode_control(answer(message)))


class FakeArtifacts:
    """Has no artifact; programs that are named so are missing."""

    @property
    def why_not(self) -> Callable[[Artifact], str]:
        return lambda artifact: "it is missing" if artifact.location == "missing" else ""

    def answer(self, message: Any, /) -> object:
        return ArtifactMissing(sha256=message.sha256)


class World:
    def __init__(self) -> None:
        self.master, self.post = FakeMaster(), FakePost()
        self.post.actors[APP_MASTER] = app_master
        self.gateway = Gateway(self.master.ask, self.post, artifacts=FakeArtifacts())

    def answer(self, message: object) -> Any:
        """Return the answer of the gateway to a client, which must fit a frame."""
        answer = self.gateway.answer(message)
        assert len(encode_control(answer)) < FRAME_BYTES_MAX
        return answer

    def refusal(self, message: object) -> str:
        answer = self.answer(message)
        assert isinstance(answer, Refused), answer
        return answer.reason

    def add_worker(self, worker_id: int, answer: Callable[[Any], object] | None) -> None:
        """Add a worker that answers; without an answer it is gone."""
        path = ActorPath(f"10.0.0.2:{worker_id}#1", "worker")
        self.master.workers += (WorkerAddress(worker_id=WorkerId(worker_id), worker=path),)
        if answer is not None:
            self.post.actors[path] = answer


def measured(name: str, message: GetProcessMetrics | GetHistory) -> object:
    if isinstance(message, GetHistory):
        return HistoryData(path=name)
    return ProcessMetricsData(name=name, at_ms=1, process=ProcessSample(pid=1, started_ms=1))


def app_master(message: Any) -> object:
    match message:
        case DescribeApplication():
            return ApplicationDetail(app_id=APP, epoch=12)
        case GetMetrics():
            return MetricsData(app_id=APP, at_ms=1)
        case GetSeries():
            return SeriesData(app_id=APP, at_ms=(1,))
        case GetHistory():
            return HistoryData(path="app3")
        case ReplayNow():
            return ReplayAccepted(app_id=APP, epoch=12)
        case ReplayQuarantined():
            return QuarantinedList(app_id=APP, records=message.records)
        case UpdateApplication():
            return UpdatePlanned(app_id=APP, version=1, moves=())
    raise AssertionError(message)


def raising(error: Exception) -> Callable[[Any], object]:
    def _raise(_: object) -> object:
        raise error

    return _raise
