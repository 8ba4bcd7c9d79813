"""What a master does when an app master, a worker or itself was lost."""

from collections.abc import Sequence

from msgspec.structs import replace

from gearpy.ids import MASTER_EXECUTOR, AppId, WorkerId
from gearpy.messages.client import (
    GetAddresses,
    ListApplications,
    Refused,
    ShutdownApplication,
    SubmitApplication,
    Submitted,
)
from gearpy.messages.cluster import (
    AppMasterRegistered,
    ExecutorLaunchRejected,
    LaunchExecutor,
    MastersChanged,
    OtherCluster,
    PutValue,
    RegisterWorker,
    ShutdownExecutor,
    ValueStored,
    WorkerRegistered,
)
from gearpy.messages.summaries import ApplicationProgress, ApplicationSummary
from gearpy.storage.log import MemoryLog
from tests.cluster.master_build import (
    APP,
    ARTIFACT,
    LONG_MS,
    Cluster,
    Role,
    a_request,
    a_running,
    a_status,
    an_exit,
    an_update,
    back,
    running,
)

# -- other masters -----------------------------------------------------------------------------


def test_workers_and_app_masters_are_told_which_masters_there_are() -> None:
    cluster, worker, app_master = a_running()
    changed = MastersChanged(masters=("a:1", "b:1", "c:1"))

    cluster.tell(changed)
    late = cluster.worker()

    for each in (worker, app_master, late):
        assert each.all(MastersChanged) == [changed]


class CountingLog(MemoryLog):
    def __init__(self) -> None:
        super().__init__()
        self.appended: list[int] = []

    def append(self, records: Sequence[bytes]) -> int:
        self.appended.append(len(records))
        return super().append(records)


def test_launches_and_losses_of_one_worker_are_one_write_each() -> None:
    log = CountingLog()
    cluster = Cluster("", log)
    for number in range(5):
        cluster.submit(f"a{number}")

    worker = cluster.worker()
    assert len(worker.all(LaunchExecutor)) == 5
    assert log.appended[-1] == 6  # The id of the worker, and all launches.

    worker.die()
    assert log.appended[-2:] == [6, 5]


def test_what_waits_together_is_one_write_and_nobody_hears_of_it_before() -> None:
    """Also who only asks: an answer could tell of what is not durable."""
    log = CountingLog()
    cluster = Cluster("", log)
    worker = cluster.worker()
    cluster.submit()
    app_master = cluster.app_master(worker.last(LaunchExecutor))
    log.appended.clear()

    writes = [
        PutValue(app_id=APP, launch=1, key=f"k{number % 2}", value=b"%d" % number, version=number)
        for number in range(50)
    ]
    for each in writes:
        cluster.master.tell(each)
    answer = cluster.ask(SubmitApplication(name="other", artifact=ARTIFACT))

    assert log.appended == [52]  # Also the launch of the other one.
    assert isinstance(answer, Submitted)
    stored = app_master.all(ValueStored)
    assert [each.version for each in stored] == list(range(50))
    cluster.restart()
    back(cluster, worker, running())
    cluster.register(app_master, worker.all(LaunchExecutor)[0])
    assert app_master.last(AppMasterRegistered).values == {"k0": b"48", "k1": b"49"}


def test_what_waits_together_is_all_lost_with_the_disk() -> None:
    cluster, worker, app_master = a_running()
    values = [PutValue(app_id=APP, launch=1, key="k", value=b"%d" % each) for each in range(9)]

    def fail(_: str) -> None:
        raise OSError(28, "No space left on device")

    cluster.log.folder.on_step = fail
    cluster.tell(*values[:1])
    for each in values[1:]:
        cluster.master.tell(each)
    cluster.settle()
    assert not cluster.master.is_alive
    assert app_master.all(ValueStored) == []

    cluster.log.folder.on_step = lambda _: None
    cluster.restart()
    back(cluster, worker, running())
    cluster.register(app_master, worker.all(LaunchExecutor)[0])
    assert app_master.last(AppMasterRegistered).values == {}


# -- loss of an app master -------------------------------------------------------------------


def test_a_launch_that_is_rejected_is_tried_again() -> None:
    cluster = Cluster()
    worker = cluster.worker()
    cluster.submit()
    rejected = ExecutorLaunchRejected(
        app_id=APP, executor_id=MASTER_EXECUTOR, launch=1, reason="no thread"
    )

    cluster.tell(rejected, an_update(refused=(running(),)))
    cluster.settle(1000)

    assert worker.last(LaunchExecutor).launch == 2
    assert cluster.free() == {0: 8}


def test_an_app_master_out_of_reach_is_ended_by_its_worker() -> None:
    """It may be frozen; two must not run. The worker's word gives the cause."""
    cluster, worker, app_master = a_running(application__total_retries=0)

    app_master.die()
    stop = worker.last(ShutdownExecutor)
    assert (stop.launch, stop.kill) == (1, True)
    assert cluster.summary().status == "active"
    cluster.tell(an_exit(cause="killed by signal 9"))

    cause = cluster.summary().cause
    assert cause is not None
    assert cause.cause == "the app master is gone: killed by signal 9"


# -- zombies ---------------------------------------------------------------------------------


def test_an_app_master_that_was_replaced_is_not_heard_and_ended() -> None:
    cluster, worker, app_master = a_running()
    launch = worker.last(LaunchExecutor)
    cluster.tell(an_exit())
    cluster.settle(1000)
    second = cluster.app_master(worker.last(LaunchExecutor))
    worker.got.clear()
    app_master.got.clear()

    cluster.tell(a_status("failed"))
    cluster.register(app_master, launch)

    assert cluster.summary().status == "pending"
    stops = worker.all(ShutdownExecutor)
    assert [(each.launch, each.kill) for each in stops] == [(1, True), (1, True)]
    assert app_master.got == []
    assert cluster.ask(GetAddresses(app_id=APP)).app_master == second.path


def test_an_app_master_of_what_is_over_is_ended() -> None:
    """It missed the end, while it was cut off. It is asked: it still leaves its last answers."""
    cluster, worker, app_master = a_running()
    launch = worker.last(LaunchExecutor)
    cluster.ask(ShutdownApplication(app_id=APP))
    worker.got.clear()

    cluster.register(app_master, launch)
    cluster.tell(a_request(5))

    stops = worker.all(ShutdownExecutor)
    assert [(each.launch, each.kill) for each in stops] == [(1, False), (1, False)]
    assert cluster.free() == {0: 8}


def test_an_app_master_whose_application_has_just_ended_may_finish() -> None:
    """Its progress was on the way as the end was decided; it has last answers to leave."""
    cluster, worker, _ = a_running()
    cluster.ask(ShutdownApplication(app_id=APP))

    cluster.tell(a_status("active"))

    stops = worker.all(ShutdownExecutor)
    assert [(each.launch, each.kill) for each in stops] == [(1, False), (1, False)]


# -- the master was away ---------------------------------------------------------------------


def test_a_new_master_knows_all_applications() -> None:
    """Living and ended, with what was submitted; ids go on."""
    cluster, _, _ = a_running()
    cluster.submit("second")
    cluster.tell(replace(a_status("failed", launch=1), app_id=AppId(2)))
    before = cluster.ask(ListApplications()).applications

    cluster.restart()

    after = cluster.ask(ListApplications()).applications
    assert list(map(_stored, before)) == list(map(_stored, after))
    assert cluster.submit("third") == 3


def _stored(summary: ApplicationSummary) -> ApplicationSummary:
    return replace(summary, progress=ApplicationProgress(), app_master="")


def test_an_app_master_that_lived_on_goes_on() -> None:
    cluster, worker, app_master = a_running()
    cluster.tell(PutValue(app_id=APP, launch=1, key="epoch", value=b"7", version=3))
    launch = worker.last(LaunchExecutor)
    cluster.restart()
    worker.got.clear()

    back(cluster, worker, running(), running(executor=0, slots=3))
    cluster.register(app_master, launch)
    cluster.settle(LONG_MS)

    (registered,) = worker.all(WorkerRegistered)
    assert (registered.worker_id, registered.cluster_id) == (0, cluster.cluster_id())
    assert worker.got == [registered]
    assert cluster.free() == {0: 5}
    assert app_master.last(AppMasterRegistered).values == {"epoch": b"7"}
    cluster.tell(a_status("active", records=9))
    assert cluster.summary().progress.records_in == 9


def test_what_was_submitted_meanwhile_starts_when_those_that_ran_have_spoken() -> None:
    """Nothing else may happen after the last one has told that it lacks nothing."""
    cluster, worker, app_master = a_running()
    launch = worker.last(LaunchExecutor)
    cluster.restart()
    other = cluster.submit("other")
    back(cluster, worker, running(), running(executor=0, slots=3))
    cluster.register(app_master, launch)
    assert worker.last(LaunchExecutor) == launch

    cluster.tell(a_status("active"))

    assert worker.last(LaunchExecutor).app_id == other


def test_an_application_that_is_submitted_again_is_the_same() -> None:
    """Its client has not heard the answer, as the master was lost; then another has the name."""
    cluster = Cluster()
    request = SubmitApplication(name="words", artifact=ARTIFACT, key="k")
    (first, again) = (cluster.ask(request), cluster.ask(request))
    cluster.restart()

    assert first == again == cluster.ask(request)
    assert isinstance(cluster.ask(replace(request, key="other")), Refused)


def test_executors_of_what_is_over_are_killed_when_their_worker_is_back() -> None:
    """Nobody else would end them; those of the living stay."""
    cluster, worker, _ = a_running()
    cluster.ask(ShutdownApplication(app_id=APP))
    cluster.submit("second")
    worker.got.clear()

    cluster.restart()
    back(
        cluster,
        worker,
        running(),
        running(executor=0),
        running(5, app_id=2),
        running(app_id=2),
        running(executor=0, app_id=2),
        running(executor=0, app_id=99),
    )

    stops = worker.all(ShutdownExecutor)
    assert all(each.kill for each in stops)
    assert [(each.app_id, each.executor_id, each.launch) for each in stops] == [
        (1, -1, 1),
        (1, 0, 1),
        (2, -1, 5),
        (99, 0, 1),
    ]
    assert cluster.free() == {0: 3}


def test_a_worker_keeps_its_id() -> None:
    cluster, worker, _ = a_running()
    cluster.tell(RegisterWorker(worker=worker.path, slots=9, running=(running(),)))
    assert [each.worker_id for each in worker.all(WorkerRegistered)] == [0, 0]
    assert cluster.free() == {0: 8}

    moved = Role(cluster, "moved")
    back(cluster, moved, running())
    worker.die()

    assert moved.last(WorkerRegistered).worker_id == 0
    assert list(cluster.workers()) == [0]
    assert cluster.summary().status == "active"
    assert cluster.worker().last(WorkerRegistered).worker_id == 1


def test_a_worker_of_another_cluster_gets_a_new_id() -> None:
    cluster = Cluster()
    cluster.submit()
    stranger = Role(cluster, "stranger")

    cluster.tell(
        RegisterWorker(
            worker=stranger.path, slots=9, worker_id=WorkerId(7), running=(running(executor=0),)
        )
    )

    assert stranger.last(WorkerRegistered).worker_id == 0
    assert stranger.last(ShutdownExecutor).kill
    assert stranger.last(LaunchExecutor).app_id == APP


def test_a_worker_that_says_it_is_of_another_cluster_is_refused() -> None:
    cluster, worker, app_master = a_running()
    launch, cluster_id = worker.last(LaunchExecutor), cluster.cluster_id()
    assert launch.cluster_id == cluster_id
    cluster.restart()
    assert cluster.cluster_id() == cluster_id
    stranger = Role(cluster, "stranger")

    exited = replace(an_exit(), cluster_id="other")
    offer = RegisterWorker(worker=stranger.path, slots=9, cluster_id="other", worker_id=WorkerId(0))
    cluster.tell(exited, offer)
    cluster.register(app_master, replace(launch, cluster_id="other"))

    assert stranger.got == [OtherCluster(cluster_id=cluster_id)]
    assert cluster.free() == {}
    assert len(app_master.all(AppMasterRegistered)) == 1
    own = RegisterWorker(worker=worker.path, slots=9, cluster_id=cluster_id, running=(running(),))
    cluster.tell(replace(own, worker_id=WorkerId(0)))
    cluster.register(app_master, launch)
    assert cluster.free() == {0: 8}
    assert len(app_master.all(AppMasterRegistered)) == 2
