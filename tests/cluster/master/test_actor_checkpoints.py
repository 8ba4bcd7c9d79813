"""The id of a cluster, where its applications store, and what they begin with."""

from gearpy.core.master.checkpoint_names import CLUSTER_ID_CHARS, OPENED_KEY
from gearpy.core.master.commands import NameCluster, decode_command
from gearpy.ids import AppId
from gearpy.messages.client import (
    Refused,
    RestartApplication,
    ShutdownApplication,
    SubmitApplication,
    Submitted,
)
from gearpy.messages.cluster import LaunchExecutor, PutValue
from gearpy.storage.log import MemoryLog
from tests.cluster.master_build import APP, ARTIFACT, Cluster, Role, a_running, an_exit, back


def test_a_cluster_has_an_id_from_its_first_moment() -> None:
    """Also when its master is killed before anybody has asked it anything."""
    cluster = Cluster()
    cluster.settle()
    cluster.log = cluster.log.crash()

    (record,) = cluster.log.replay().records

    named = decode_command(record)
    assert isinstance(named, NameCluster)
    assert len(named.cluster_id) == CLUSTER_ID_CHARS
    cluster.restart()
    assert cluster.cluster_id() == named.cluster_id


def test_a_cluster_keeps_its_id() -> None:
    """Over restarts, with the log and with a snapshot."""
    for records in (1, 1000):
        cluster = Cluster(snapshot_records=records)
        ids = {cluster.cluster_id()}
        for name in ("one", "two"):
            cluster.submit(name)
            cluster.restart()
            ids.add(cluster.cluster_id())
        assert len(ids) == 1


def test_a_master_over_an_earlier_log_names_its_cluster() -> None:
    """Logs had no id at first; the applications in it go on."""
    earlier = Cluster()
    earlier.submit()
    (_, *rest) = earlier.log.replay().records
    log = MemoryLog()
    log.append(rest)

    cluster = Cluster("", log)

    assert len(cluster.cluster_id()) == CLUSTER_ID_CHARS
    assert cluster.summary().name == "words"


def test_a_master_that_cannot_store_its_id_answers_nothing() -> None:
    """What it had told would be forgotten; the next one draws another."""
    log = MemoryLog()

    def fail(_: str) -> None:
        raise OSError(28, "No space left on device")

    log.folder.on_step = fail
    cluster = Cluster("", log)
    cluster.settle()
    assert not cluster.master.is_alive

    log.folder.on_step = lambda _: None
    cluster.restart()
    assert len(cluster.cluster_id()) == CLUSTER_ID_CHARS


def test_a_launch_says_where_its_checkpoints_are() -> None:
    """Below cluster and application, the same for each launch."""
    cluster, worker, _ = a_running()
    cluster.tell(an_exit())
    cluster.restart()
    back(cluster, worker)
    cluster.settle(1000)

    launches = worker.all(LaunchExecutor)

    prefix = f"{cluster.cluster_id()}/app1"
    assert [(each.launch, each.checkpoints) for each in launches] == [(1, prefix), (2, prefix)]
    assert [each.resume_from for each in launches] == ["", ""]


def test_each_launch_says_what_to_begin_with() -> None:
    """Over restarts of the master; and the same application once more, too."""
    cluster = Cluster()
    worker = cluster.worker()
    point = "k3f9a1c2/app3@7"
    cluster.ask(SubmitApplication(name="words", artifact=ARTIFACT, resume_from=point))
    cluster.tell(an_exit())
    cluster.restart()
    back(cluster, worker)
    cluster.settle(1000)

    cluster.ask(RestartApplication(app_id=APP))

    launches = worker.all(LaunchExecutor)
    assert [(each.app_id, each.launch) for each in launches] == [(1, 1), (1, 2), (2, 1)]
    assert {each.resume_from for each in launches} == {point}


def resumes(cluster: Cluster, worker: Role, **how: bool) -> str:
    """Start the newest application again; return what it begins with."""
    newest = worker.last(LaunchExecutor).app_id
    answer = cluster.ask(RestartApplication(app_id=newest, **how))
    assert isinstance(answer, Submitted), answer
    launch = worker.last(LaunchExecutor)
    assert launch.app_id == answer.app_id
    return launch.resume_from


def test_what_is_started_again_goes_on_from_what_it_has_stored() -> None:
    """Once it has a log; also over restarts of the master, and when it has ended."""
    cluster, worker, _ = a_running()
    assert resumes(cluster, worker) == ""
    cluster.app_master(worker.last(LaunchExecutor))
    cluster.tell(PutValue(app_id=AppId(2), launch=1, key=OPENED_KEY, value=b"1"))
    cluster.ask(ShutdownApplication(app_id=AppId(2)))
    cluster.restart()
    back(cluster, worker)

    assert resumes(cluster, worker) == f"{cluster.cluster_id()}/app2@+restart"
    assert resumes(cluster, worker) == f"{cluster.cluster_id()}/app2@+restart", "3 has no log"
    assert resumes(cluster, worker, from_beginning=True) == ""


def test_a_checkpoint_of_what_runs_is_refused() -> None:
    """And what is no checkpoint at all; nothing is stored of either."""
    cluster, _, _ = a_running()
    running_one = f"{cluster.cluster_id()}/app1@"
    before = cluster.log.append([])

    for point, text in ((running_one, "of application 1 while that runs"), ("1@", "no place")):
        request = SubmitApplication(name="next", artifact=ARTIFACT, resume_from=point)
        answer = cluster.ask(request)
        assert isinstance(answer, Refused)
        assert text in answer.reason

    assert cluster.log.append([]) == before
    cluster.ask(ShutdownApplication(app_id=APP))
    request = SubmitApplication(name="next", artifact=ARTIFACT, resume_from=running_one)
    assert cluster.ask(request) == Submitted(app_id=AppId(2))
