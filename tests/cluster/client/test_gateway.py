"""The gateway takes each question to whoever knows the answer, and nobody else's."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gearpy.cluster.client.gateway import Gateway
from gearpy.errors import ActorStopped, AskTimeout, ConnectionLost
from gearpy.ids import AppId, ExecutorId, TaskId, WorkerId
from gearpy.messages.app import InjectRecord, StepDone
from gearpy.messages.client import (
    CLIENT_MESSAGES,
    AlertList,
    Artifact,
    ArtifactMissing,
    Asker,
    DescribeApplication,
    DrainApplication,
    DrainWorker,
    FiringAlert,
    GetAddresses,
    GetAlerts,
    GetApplication,
    GetArtifactPart,
    GetCluster,
    HasArtifact,
    ListApplications,
    ListQuarantined,
    ListWorkers,
    LogText,
    ReadLog,
    Refused,
    ReplayNow,
    ReplayQuarantined,
    RestartApplication,
    ShutdownApplication,
    SubmitApplication,
    Submitted,
    UpdateApplication,
    UploadArtifact,
    WorkerDrains,
)
from gearpy.messages.cluster import (
    ExecutorExited,
    LastAnswer,
    PutValue,
    Quarantine,
    RegisterAppMaster,
    RegisterWorker,
    ShutdownExecutor,
)
from gearpy.messages.metrics import (
    GetHistory,
    GetMetrics,
    GetProcessMetrics,
    GetSeries,
    HistoryData,
    MetricsData,
    SeriesData,
)
from gearpy.messages.summaries import ApplicationDetail, ApplicationStatus, ErrorCard
from gearpy.wire.codec import encode_control
from gearpy.wire.connection.keys import CLUSTER, Principal
from tests.cluster.gateway_build import APP, APP_MASTER, ARTIFACT, World, measured, raising

OTHER = AppId(4)


@pytest.fixture
def world() -> World:
    """Return a cluster without workers, whose app master takes every record."""
    return World()


# -- the master, artifacts, and what is not for clients ----------------------------------------


OF_MASTER: list[object] = [
    GetCluster(),
    ListApplications(),
    ListWorkers(),
    GetApplication(app_id=APP),
    ShutdownApplication(app_id=APP),
    SubmitApplication(name="a", artifact=ARTIFACT),
    RestartApplication(app_id=APP),
]


def test_every_message_for_clients_is_tried_here() -> None:
    assert set(map(type, OF_MASTER)) >= set(CLIENT_MESSAGES)


@pytest.mark.parametrize(
    "change",
    [ShutdownApplication, RestartApplication, ReplayNow, ReplayQuarantined, UpdateApplication],
)
def test_the_application_of_another_is_not_changed(world: World, change: Any) -> None:
    noted: list[tuple[str, ...]] = []
    world.master.user = "ann"
    world.gateway = Gateway(
        world.master.ask, world.post, admins=["ops"], note_action=lambda *said: noted.append(said)
    )
    ben = change(app_id=APP, by=Asker(user="ben", address="10.0.0.7"))

    refused = world.answer(ben)

    assert isinstance(refused, Refused)
    assert refused.is_forbidden
    assert world.master.asked == [GetApplication(app_id=APP)]
    assert [each[0] for each in noted] == ["ben"]
    assert noted[0][2:4] == (f"app_id={APP}", "10.0.0.7")
    for asker in (Asker(user="ann"), Asker(user="ops"), Asker(user="x", is_admin=True)):
        answer = world.answer(change(app_id=APP, by=asker))
        assert not (isinstance(answer, Refused) and answer.is_forbidden)
    assert [each[0] for each in noted] == ["ben", "ann", "ops", "x"]


def test_a_worker_is_drained_for_admins_only(world: World) -> None:
    """It runs applications of many users; and who has asked is noted."""
    noted: list[tuple[str, ...]] = []
    world.gateway = Gateway(
        world.master.ask, world.post, admins=["ops"], note_action=lambda *said: noted.append(said)
    )
    world.add_worker(2, lambda _: WorkerDrains(executors=3))

    refused = world.answer(DrainWorker(worker_id=WorkerId(2), by=Asker(user="ben")))
    drains = world.answer(DrainWorker(worker_id=WorkerId(2), by=Asker(user="ops")))

    assert refused.is_forbidden
    assert refused.reason.startswith("worker drain: ben is no admin: ask an admin (master.admins")
    assert drains == WorkerDrains(executors=3)
    world.add_worker(3, None)  # An idle one may end before it has answered.
    idle = DrainWorker(worker_id=WorkerId(3), by=Asker(is_admin=True))
    assert world.answer(idle) == WorkerDrains(executors=0)
    assert [each[:3] for each in noted[:2]] == [
        ("ben", "worker drain", "worker_id=2"),
        ("ops", "worker drain", "worker_id=2"),
    ]


def test_changes_are_noted_by_the_commands_that_ask_for_them(world: World) -> None:
    noted: list[str] = []
    world.gateway = Gateway(
        world.master.ask, world.post, note_action=lambda *said: noted.append(said[1])
    )
    by = Asker(is_admin=True)

    world.answer(UpdateApplication(app_id=APP, artifact=ARTIFACT, by=by))
    world.answer(UpdateApplication(app_id=APP, scale=(("a", 2),), by=by))
    world.answer(UpdateApplication(app_id=APP, version=0, is_trial_run=True, by=by))

    world.answer(UpdateApplication(app_id=APP, calls_off=True, by=by))

    assert noted == ["app update", "app scale", "app rollback --dry-run", "app call-off"]


def test_alerts_are_those_that_the_master_follows(world: World) -> None:
    alert = FiringAlert(
        app_id=APP, name="a", rule="restarts", level="warn", since_ms=1, text="too many"
    )
    world.gateway = Gateway(
        world.master.ask, world.post, alerts=lambda _: AlertList(alerts=(alert,))
    )

    assert world.answer(GetAlerts()) == AlertList(alerts=(alert,))


def test_artifacts_are_answered_for_by_their_store(world: World) -> None:
    missing = ArtifactMissing(sha256="ab")

    assert world.answer(HasArtifact(sha256="ab")) == missing
    assert world.answer(UploadArtifact(sha256="ab", offset=0, data=b"", last=False)) == missing
    assert world.answer(GetArtifactPart(sha256="ab", offset=0)) == missing
    assert not world.master.asked


def test_a_cluster_without_a_store_takes_no_uploads(world: World) -> None:
    world.gateway = Gateway(world.master.ask, world.post)

    assert "takes no uploads" in world.refusal(HasArtifact(sha256="ab"))


@pytest.mark.parametrize(
    "message",
    [
        GetAddresses(app_id=APP),
        RegisterWorker(worker=APP_MASTER, slots=1),
        RegisterAppMaster(app_id=APP, app_master=APP_MASTER, launch=1),
        PutValue(app_id=APP, launch=1, key="k", value=b""),
        Quarantine(
            app_id=APP,
            launch=1,
            number=1,
            processor_id=1,
            value=b"",
            event_time_ms=0,
            error=ErrorCard(cause=""),
        ),
        ExecutorExited(app_id=APP, executor_id=ExecutorId(1), launch=1),
        ShutdownExecutor(app_id=APP, executor_id=ExecutorId(1), launch=1, reason=""),
        StepDone(executor_id=ExecutorId(1), version=1, attempt=1, step="launching"),
        InjectRecord(task_id=TaskId(0, 0), attempt=1, number=1, value=b"", event_time_ms=0),
        ErrorCard(cause=""),
        "text",
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_roles_say_to_each_other_is_not_for_clients(message: object, world: World) -> None:
    assert world.refusal(message) == f"{type(message).__name__} is not for clients"
    assert not world.master.asked
    assert not world.post.asked


# -- the app master ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        DescribeApplication(app_id=AppId(9)),
        ReplayNow(app_id=AppId(9)),
        ListQuarantined(app_id=AppId(9)),
        ReplayQuarantined(app_id=AppId(9)),
        ReadLog(app_id=AppId(9), executor_id=ExecutorId(0), lines=1),
        GetApplication(app_id=AppId(9)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_an_unknown_application_is_refused_by_the_master(message: object, world: World) -> None:
    assert world.refusal(message) == "no application has id 9"


def test_an_application_that_has_ended_is_said_to_have(world: World) -> None:
    world.master.app_master, world.master.status = None, "failed"

    assert world.refusal(ReplayNow(app_id=APP)) == "application 3 is failed: it must run for that"
    assert world.refusal(DrainApplication(app_id=APP)) == "application 3 is failed already"
    world.master.is_drained = True
    assert world.refusal(DrainApplication(app_id=APP)) == "application 3 is drained already"


@pytest.mark.parametrize("error", [ActorStopped("no actor"), ConnectionLost("reset")])
def test_an_app_master_that_has_just_gone_is_no_fault_of_the_cluster(
    error: Exception, world: World
) -> None:
    """The master has not noticed yet; a moment later there is another one."""
    world.post.actors[APP_MASTER] = raising(error)

    reason = world.refusal(DescribeApplication(app_id=APP))

    assert (
        reason == f"the app master of application 3 has just gone ({error}); ask again in a moment"
    )


def test_an_app_master_that_does_not_answer_is_a_time_out(world: World) -> None:
    world.post.actors[APP_MASTER] = raising(AskTimeout("no answer in 10 s"))

    with pytest.raises(AskTimeout, match="app master of application 3 did not answer ReplayNow"):
        world.answer(ReplayNow(app_id=APP))


def left_at(at_ms: int, *, is_last: bool) -> LastAnswer:
    detail = ApplicationDetail(app_id=APP, epoch=9)
    return LastAnswer(
        app_id=APP,
        launch=1,
        kind="ApplicationDetail",
        answer=encode_control(detail),
        is_last=is_last,
        at_ms=at_ms,
    )


@pytest.mark.parametrize(
    ("status", "left", "known_ms"),
    [
        ("terminated", left_at(99_000, is_last=True), 0),
        ("terminated", left_at(101_000, is_last=True), 0),
        ("failed", left_at(99_000, is_last=False), 99_000),
        ("failed", left_at(50_000, is_last=True), 50_000),
        ("pending", left_at(99_000, is_last=True), 99_000),
    ],
)
def test_what_was_known_last_says_when_that_was(
    world: World, status: ApplicationStatus, left: LastAnswer, known_ms: int
) -> None:
    """Unless its app master has left it at the end, as it should."""
    world.master.app_master, world.master.status = None, status
    world.master.left, world.master.finished_ms = left, 100_000

    answer = world.answer(DescribeApplication(app_id=APP, or_last=True))

    assert (answer.epoch, answer.known_ms) == (9, known_ms)


def test_of_an_application_that_may_come_back_only_who_wants_it_gets_what_was(world: World) -> None:
    world.master.status, world.master.left = "pending", left_at(7, is_last=False)
    world.post.actors[APP_MASTER] = raising(ConnectionLost("reset"))
    assert "has just gone (reset)" in world.refusal(DescribeApplication(app_id=APP))
    assert world.answer(DescribeApplication(app_id=APP, or_last=True)).known_ms == 7

    world.master.app_master = None
    assert "no app master at present" in world.refusal(DescribeApplication(app_id=APP))
    assert world.answer(DescribeApplication(app_id=APP, or_last=True)).known_ms == 7
    world.master.left = None
    assert "no app master" in world.refusal(DescribeApplication(app_id=APP, or_last=True))


# -- logs --------------------------------------------------------------------------------------

ASK_LOG = ReadLog(app_id=APP, executor_id=ExecutorId(0), lines=10)


def a_log(launch: int = 1) -> Callable[[Any], LogText]:
    return lambda _: LogText(source=f"launch-{launch}", text="text", launch=launch)


def test_when_the_launch_is_named_the_first_worker_that_has_it_is_enough(world: World) -> None:
    world.add_worker(0, a_log(2))
    world.add_worker(1, a_log(2))

    named = ReadLog(app_id=APP, executor_id=ExecutorId(0), lines=10, launch=2)

    assert world.answer(named).source == "launch-2"
    assert len(world.post.asked) == 1


def test_workers_that_cannot_answer_do_not_hide_those_that_can(world: World) -> None:
    world.add_worker(0, None)
    world.add_worker(1, raising(AskTimeout("no answer")))
    world.add_worker(2, raising(ConnectionLost("reset")))
    world.add_worker(3, a_log())

    assert world.answer(ASK_LOG).source == "launch-1"


def test_workers_that_hang_cost_a_bounded_time(world: World) -> None:
    """The client does not wait for ever; 10 s allow for five of them."""
    for worker_id in range(20):
        world.add_worker(worker_id, raising(AskTimeout("no answer")))

    world.refusal(ASK_LOG)

    assert len(world.post.asked) == 5


def test_executors_of_this_process_have_their_logs_here(world: World) -> None:
    world.gateway = Gateway(world.master.ask, world.post, read_log=a_log(7))

    assert world.answer(ASK_LOG).launch == 7


# -- who may ask -------------------------------------------------------------------------------


# -- measurements ----------------------------------------------------------------------------


def test_measurements_of_an_application_come_from_its_app_master(world: World) -> None:
    assert world.answer(GetMetrics(app_id=APP)) == MetricsData(app_id=APP, at_ms=1)
    assert world.answer(GetSeries(app_id=APP)) == SeriesData(app_id=APP, at_ms=(1,))
    assert world.answer(GetHistory(app_id=APP)) == HistoryData(path="app3")


@pytest.mark.parametrize("question", [GetProcessMetrics, GetHistory])
def test_measurements_of_a_process_come_from_itself(question: Any, world: World) -> None:
    world.add_worker(2, partial(measured, "worker2"))

    assert world.answer(question()) == measured("master", question())
    assert world.answer(question(worker_id=WorkerId(2))) == measured("worker2", question())


def test_a_worker_that_is_not_there_is_named(world: World) -> None:
    world.add_worker(2, None)

    assert world.refusal(GetProcessMetrics(worker_id=WorkerId(9))) == "no worker has this id"
    admin = Asker(is_admin=True)
    nobody = DrainWorker(worker_id=WorkerId(9), by=admin)
    assert world.refusal(nobody) == "no worker has this id"
    assert "worker_id is missing" in world.refusal(DrainWorker(by=admin))
    assert "worker 2 cannot be reached" in world.refusal(GetHistory(worker_id=WorkerId(2)))


def questions_about(app_id: AppId) -> list[object]:
    return [
        GetApplication(app_id=app_id),
        DescribeApplication(app_id=app_id),
        ListQuarantined(app_id=app_id),
        ReadLog(app_id=app_id, executor_id=ExecutorId(0), lines=1),
        GetMetrics(app_id=app_id),
        GetSeries(app_id=app_id),
        GetHistory(app_id=app_id),
    ]


@pytest.mark.parametrize(
    "message",
    [*questions_about(APP), GetArtifactPart(sha256="ab", offset=0)],
    ids=lambda message: type(message).__name__,
)
def test_an_application_may_ask_about_itself(message: object, world: World) -> None:
    assert world.gateway.allows(Principal(APP), message)
    answer = world.gateway.answer(message, Principal(APP))
    assert "may not ask" not in getattr(answer, "reason", "")


@pytest.mark.parametrize(
    "message",
    [
        *questions_about(OTHER),
        ListApplications(),
        ListWorkers(),
        SubmitApplication(name="a", artifact=ARTIFACT),
        *(
            cls(app_id=APP)
            for cls in (ShutdownApplication, RestartApplication, ReplayNow, ReplayQuarantined)
        ),
        HasArtifact(sha256="ab"),
        UploadArtifact(sha256="ab", offset=0, data=b"", last=True),
        GetAddresses(app_id=APP),
        pytest.param(GetHistory(), id="GetHistory of the master"),
        GetProcessMetrics(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_an_application_may_ask_nothing_else(message: object, world: World) -> None:
    """Code of users runs there; it must not reach other people's applications."""
    assert not world.gateway.allows(Principal(APP), message)
    answer = world.gateway.answer(message, Principal(APP))

    assert answer == Refused(reason=f"application 3 may not ask this {type(message).__name__}")
    assert not world.master.asked
    assert not world.post.asked


def test_who_knows_the_secret_may_ask_anything(world: World) -> None:
    assert world.gateway.allows(CLUSTER, ListApplications())
    assert world.gateway.allows(CLUSTER, ShutdownApplication(app_id=APP))


# -- programs that are not kept ------------------------------------------------------------

MISSING = Artifact(kind="stored", location="missing")


def test_nothing_begins_with_a_program_that_is_not_there(world: World) -> None:
    """It would fail when its app master looks for it, with a text that helps nobody."""
    submit = SubmitApplication(name="a", artifact=MISSING)
    assert world.refusal(submit) == "it is missing"
    assert world.refusal(UpdateApplication(app_id=APP, artifact=MISSING)) == "it is missing"
    assert not any(isinstance(each, SubmitApplication) for each in world.master.asked)


def test_a_restart_whose_program_went_says_how_to_go_on(world: World) -> None:
    """The program that it would begin with counts: the last one, unless from the beginning."""
    restart = RestartApplication(app_id=APP)
    world.master.restarts_with = MISSING
    text = world.refusal(restart)
    assert text.startswith("application 3 cannot be started again: it is missing.")
    assert "artifact.keep-ended" in text
    assert text.endswith("gear app submit --from-checkpoint 3 PROGRAM")
    again = world.answer(RestartApplication(app_id=APP, from_beginning=True))
    assert again == Submitted(app_id=AppId(4))

    world.master.restarts_with, world.master.program = None, "missing"
    assert world.refusal(RestartApplication(app_id=APP, from_beginning=True)) == text
