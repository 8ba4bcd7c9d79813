"""The id of a cluster, where its applications store, and what they begin with."""

from typing import Any

from gearpy.core.master.checkpoint_names import CLUSTER_ID_CHARS, OPENED_KEY
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
from tests.cluster.master_build import APP, ARTIFACT, Cluster, Role, a_running, back


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


def resumes(cluster: Cluster, worker: Role, **how: Any) -> str:
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
