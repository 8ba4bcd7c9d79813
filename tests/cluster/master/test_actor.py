"""What a master does with clients, slots, values and records."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import LogBroken
from gearpy.ids import MASTER_EXECUTOR, AppId, WorkerId
from gearpy.messages.client import (
    GetAddresses,
    GetApplication,
    ListApplications,
    ListQuarantined,
    Refused,
    ReplayQuarantined,
    RestartApplication,
    ShutdownApplication,
    SubmitApplication,
    Submitted,
)
from gearpy.messages.cluster import (
    AppMasterRegistered,
    LaunchExecutor,
    PutValue,
    Quarantine,
    ResourceAllocated,
    ShutdownExecutor,
    ValueStored,
    WorkerRegistered,
)
from gearpy.messages.summaries import ErrorCard
from gearpy.transport.api import TransportLimits
from gearpy.wire.codec import encode_control
from tests.cluster.master_build import (
    APP,
    ARTIFACT,
    LONG_MS,
    Cluster,
    a_request,
    a_running,
    a_status,
    an_exit,
    back,
    running,
)

# -- the normal life -------------------------------------------------------------------------


def test_an_application_is_launched_where_there_is_room() -> None:
    cluster = Cluster()
    app_id = cluster.submit()
    assert cluster.summary(app_id).status == "pending"

    worker = cluster.worker()

    launch = worker.last(LaunchExecutor)
    assert (launch.app_id, launch.executor_id, launch.launch) == (APP, MASTER_EXECUTOR, 1)
    assert launch.reply_to == cluster.master.path
    assert worker.got[0] == WorkerRegistered(
        worker_id=WorkerId(0), master=cluster.master.path, cluster_id=cluster.cluster_id()
    )
    assert cluster.free() == {0: 8}
    app_master = cluster.app_master(launch)
    master = cluster.master.path
    assert app_master.got == [AppMasterRegistered(app_id=APP, launch=1, master=master)]


def test_a_wrong_configuration_is_refused_at_once() -> None:
    cluster = Cluster()
    config = {"application.total-retries": "many"}

    answer = cluster.ask(SubmitApplication(name="words", artifact=ARTIFACT, config=config))

    assert isinstance(answer, Refused)
    assert "'words' has a wrong configuration" in answer.reason


def test_questions_about_unknown_applications_are_refused() -> None:
    cluster = Cluster()
    cluster.submit()
    other = AppId(9)

    for question in (
        GetApplication(app_id=other),
        ShutdownApplication(app_id=other),
        RestartApplication(app_id=other),
        ListQuarantined(app_id=other),
        ReplayQuarantined(app_id=other),
        GetAddresses(app_id=other),
    ):
        answer = cluster.ask(question)
        assert answer == Refused(reason="no application has id 9; ids known: 1")


def test_slots_go_to_the_app_master_that_asked() -> None:
    """Spread over the workers; a worker's news of free slots serves who waits."""
    cluster, worker, app_master = a_running()
    other = cluster.worker(slots=2)

    cluster.tell(a_request(6, executors=2))

    allocations = [each for got in app_master.all(ResourceAllocated) for each in got.allocations]
    assert [(each.worker_id, each.worker, each.slots) for each in allocations] == [
        (0, worker.path, 3),
        (0, worker.path, 3),
    ]
    assert cluster.free()[1] == 2
    assert other.all(LaunchExecutor) == []
    assert cluster.workers()[0].executors == 3


def test_slots_for_an_app_master_out_of_reach_are_released() -> None:
    cluster, _, app_master = a_running()
    cluster.tell(a_request(20, executors=2))
    cluster.system.stop(app_master.ref)

    cluster.worker(slots=40)

    assert cluster.free()[1] == 40


# -- clients' changes ------------------------------------------------------------------------


def test_a_shutdown_ends_it_and_stays() -> None:
    cluster, worker, _ = a_running()
    cluster.ask(ShutdownApplication(app_id=APP))
    assert worker.last(ShutdownExecutor).launch == 1

    cluster.tell(a_status("succeeded"))
    cluster.restart()

    assert cluster.summary().status == "terminated"
    answer = cluster.ask(ShutdownApplication(app_id=APP))
    assert answer == Refused(reason="application 1 is already terminated")


def test_restarting_stops_it_and_submits_the_same() -> None:
    cluster, worker, _ = a_running()

    assert cluster.ask(RestartApplication(app_id=APP)) == Submitted(app_id=AppId(2))

    assert cluster.summary().status == "terminated"
    assert worker.last(ShutdownExecutor).app_id == APP
    assert worker.last(LaunchExecutor).app_id == 2
    assert worker.last(LaunchExecutor).name == "words"
    cluster.ask(ShutdownApplication(app_id=AppId(2)))
    assert cluster.ask(RestartApplication(app_id=APP)) == Submitted(app_id=AppId(3))


def test_restarting_keeps_to_the_rule_of_names() -> None:
    """Another one has the name by now; nothing is stopped."""
    cluster, _, _ = a_running()
    cluster.ask(ShutdownApplication(app_id=APP))
    cluster.submit()

    answer = cluster.ask(RestartApplication(app_id=APP))

    assert isinstance(answer, Refused)
    assert "already pending with id 2" in answer.reason
    assert cluster.summary(AppId(2)).status == "pending"


# -- values and records ----------------------------------------------------------------------


def test_a_value_is_on_disk_when_it_is_answered() -> None:
    cluster, worker, app_master = a_running()

    cluster.tell(PutValue(app_id=APP, launch=1, key="k", value=b"v", version=5))
    assert app_master.last(ValueStored) == ValueStored(app_id=APP, key="k", version=5)
    cluster.restart()
    back(cluster, worker)
    cluster.settle(1000)

    second = cluster.app_master(worker.last(LaunchExecutor))
    assert second.last(AppMasterRegistered).values == {"k": b"v"}


def test_a_value_of_nobody_is_not_answered() -> None:
    cluster, _, app_master = a_running()
    cluster.tell(an_exit())

    cluster.tell(
        PutValue(app_id=APP, launch=1, key="k", value=b"v"),
        PutValue(app_id=AppId(9), launch=1, key="k", value=b""),
    )

    assert app_master.all(ValueStored) == []


def a_poison() -> Quarantine:
    return Quarantine(
        app_id=APP,
        launch=1,
        number=1,
        processor_id=1,
        value=b"v",
        event_time_ms=3,
        error=ErrorCard(cause="boom"),
    )


def test_records_are_quarantined_until_they_were_replayed() -> None:
    cluster, _, _ = a_running()
    cluster.tell(a_poison(), a_poison(), a_poison())

    marked = cluster.ask(ReplayQuarantined(app_id=APP, numbers=(2, 99)))
    assert [each.number for each in marked.records] == [2]
    cluster.tell(a_status("failed"), a_poison())
    cluster.restart()

    listed = cluster.ask(ListQuarantined(app_id=APP))
    assert [(each.number, each.value, each.error.cause) for each in listed.records] == [
        (1, b"v", "boom"),
        (3, b"v", "boom"),
    ]
    cluster.ask(ReplayQuarantined(app_id=APP))
    assert cluster.ask(ListQuarantined(app_id=APP)).records == ()


def test_too_many_quarantined_records_fail_the_application() -> None:
    cluster, _, _ = a_running(application__quarantine_max_records=2)

    cluster.tell(a_poison(), a_poison())
    assert cluster.summary().status == "active"
    cluster.tell(a_poison())

    summary = cluster.summary()
    assert summary.status == "failed"
    assert summary.cause is not None
    assert summary.cause.cause.startswith("more than 2 records in quarantine")


# -- limits and the log ----------------------------------------------------------------------


def test_old_ends_are_forgotten() -> None:
    cluster = Cluster(ended_max=2)
    for number in range(5):
        app_id = cluster.submit(f"app{number}")
        cluster.ask(ShutdownApplication(app_id=app_id))
    cluster.submit("living")

    for _ in range(2):
        known = [each.app_id for each in cluster.ask(ListApplications()).applications]
        assert known == [4, 5, 6]
        cluster.restart()


def test_snapshots_are_taken_as_often_as_configured() -> None:
    cluster = Cluster(snapshot_records=3)
    for number in range(6):
        cluster.submit(f"app{number}")
    assert len(cluster.log.replay().records) == 1  # The first one was the cluster's id.

    cluster.restart()

    assert len(cluster.ask(ListApplications()).applications) == 6


def test_a_log_that_cannot_be_written_ends_the_master() -> None:
    cluster, worker, _ = a_running()

    def fail(_: str) -> None:
        raise OSError(28, "No space left on device")

    cluster.log.folder.on_step = fail
    with pytest.raises(LogBroken, match="No space left"):
        cluster.ask(SubmitApplication(name="other", artifact=ARTIFACT))
    cluster.settle()
    assert not cluster.master.is_alive
    assert len(worker.all(LaunchExecutor)) == 1

    cluster.log.folder.on_step = lambda _: None
    cluster.restart()
    assert len(cluster.ask(ListApplications()).applications) == 1


def test_nothing_is_done_before_it_is_durable() -> None:
    steps = 0
    while power_fails_at(steps):
        steps += 1
    assert steps > 10


def power_fails_at(step: int) -> bool:
    """Run an application until the power fails; compare what was seen with what is known."""
    cluster = Cluster(snapshot_records=2)
    cluster_id = cluster.cluster_id()
    left = step
    failed = False

    def count_down(_: str) -> None:
        nonlocal left, failed
        left -= 1
        if left < 0:
            failed = True
            raise OSError(5, "power")

    cluster.log.folder.on_step = count_down
    worker = cluster.worker()
    submitted: list[AppId] = []
    attempt(lambda: submitted.append(cluster.submit()))
    launches = worker.all(LaunchExecutor)
    app_master = cluster.app_master(launches[-1]) if launches and not failed else None
    cluster.tell(a_status("active"), PutValue(app_id=APP, launch=1, key="k", value=b"v"))
    cluster.tell(an_exit())
    cluster.settle(1000)
    cluster.log.folder.on_step = lambda _: None

    cluster.restart()

    assert cluster.cluster_id() == cluster_id
    known = {each.app_id: each for each in cluster.ask(ListApplications()).applications}
    assert set(submitted) <= set(known)
    ids = [each.worker_id for each in worker.all(WorkerRegistered)]
    new = cluster.worker()
    assert new.last(WorkerRegistered).worker_id not in ids
    if launches := worker.all(LaunchExecutor):
        back(cluster, worker, *[running(each.launch) for each in launches])
        cluster.settle(LONG_MS)
        later = [*new.all(LaunchExecutor), *worker.all(LaunchExecutor)[len(launches) :]]
        if known[APP].status == "pending" and later:
            assert later[0].launch > launches[-1].launch
            role = cluster.app_master(later[-1])
            stored = app_master is not None and app_master.all(ValueStored)
            registered = role.all(AppMasterRegistered)
            assert not stored or registered[-1].values == {"k": b"v"}
    return failed


def attempt(act: Callable[[], object]) -> None:
    with suppress(Exception):  # Whatever the end of the master looks like.
        act()


def test_a_list_of_thousands_comes_in_parts() -> None:
    cluster = Cluster()
    names = [f"{'a' * 100}{number}" for number in range(2400)]
    for name in names:
        cluster.submit(name)

    def ask(message: Any) -> Any:
        answer = cluster.ask(message)
        assert len(encode_control(answer)) < TransportLimits().control_frame_bytes_max
        return answer

    assert [each.name for each in ClusterClient(ask).applications()] == names


def test_a_list_of_applications_is_brief() -> None:
    """A thousand of them fit into one answer; one by one they tell all."""
    cluster, _, _ = a_running()
    cause = ErrorCard(cause="x" * 5000, record="y" * 5000, traceback="z" * 5000)
    cluster.tell(replace(a_status("failed"), cause=cause))

    (brief,) = cluster.ask(ListApplications()).applications

    assert brief.cause is not None
    assert (len(brief.cause.cause), len(brief.cause.record)) == (300, 300)
    assert brief.cause.traceback == ""
    assert cluster.summary().cause == cause
