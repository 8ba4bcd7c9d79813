"""A cluster of gearpy as a guest of Spark, in the session that all tests here share."""

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import gearpy.spark
from gearpy.cluster.boot.remote import RemoteCluster, connect
from gearpy.cluster.client.client import RunningApplication
from gearpy.config.load import load
from gearpy.errors import AuthenticationFailed, ConfigError, SubmitRefused
from gearpy.messages.client import DescribeWorker, ListWorkers
from gearpy.spark.guest import cluster as clusters
from gearpy.spark.guest.cluster import CONF_FILE, SparkCluster
from gearpy.windowlog.log import WindowLog
from tests.eventually import eventually
from tests.spark.guest.guest_build import (
    counted,
    environments,
    guests,
    shown,
    verdict,
    with_children,
)
from tests.system.cluster_build import descendants, is_gone

_WAIT_S: Final = 200
_OFTEN: Final = {"checkpoint.interval-ms": "100", "checkpoint.max-overhead-percent": "100"}


def _cluster(spark: SparkSession, **more: Any) -> SparkCluster:
    return gearpy.spark.cluster(spark, **{"workers": 1, "timeout_s": _WAIT_S, **more})


def test_more_workers_than_cores_are_refused_at_once(spark: SparkSession) -> None:
    """A barrier stage would look for room for ten minutes."""
    with pytest.raises(
        ConfigError, match="a cluster of 3 x 1 cores was asked for, and Spark has 2"
    ):
        _cluster(spark, workers=3)
    with pytest.raises(ConfigError, match="workers is 0, must be 1 or more"):
        _cluster(spark, workers=0)
    with pytest.raises(ConfigError, match="max_workers is 1, must be as many as workers or more"):
        _cluster(spark, workers=2, max_workers=1)
    with pytest.raises(ConfigError, match="masters is 2, must be 1, in the driver, or 3"):
        _cluster(spark, masters=2)
    with pytest.raises(ConfigError, match="1 x 1 cores was asked for beside 3 masters, and Spark"):
        _cluster(spark, masters=3)


def test_a_log_of_one_master_is_no_log_of_three(spark: SparkSession, tmp_path: Path) -> None:
    """Each would begin anew over the folder of the other."""
    (tmp_path / "masters").mkdir()
    with pytest.raises(ConfigError, match=r"is of a cluster with three masters, .*with masters=3"):
        _cluster(spark, folder=tmp_path)


def test_a_program_runs_and_nothing_is_left(spark: SparkSession, tmp_path: Path) -> None:
    """Its window log is known by the name of its step; processes and folders end with the block.

    Spark keeps the process of Python for a minute, for other tasks.
    """
    app = counted(tmp_path, rate=20_000, limit=5000)
    with _cluster(spark) as cluster:
        _check_refusals(cluster, spark, app, tmp_path)
        run = cluster.submit(app)
        (worker,) = (
            cluster.client.ask(DescribeWorker(worker_id=each.worker_id))
            for each in cluster.workers()
        )
        pid, folders = worker.process.pid, [cluster.folder, Path(worker.process.folder)]
        assert run.wait(_WAIT_S).status == "succeeded"

    found = verdict(shown(WindowLog(run.window_log("counts"))))
    assert (found["numbers"], found["lost"], found["twice"]) == (5000, 0, 0)
    assert run.window_log() == str(tmp_path / "counts")
    with pytest.raises(ConfigError, match=r"has not one window log 'sums'; it has counts \(.*\)"):
        run.window_log("sums")
    assert not folders[0].exists()
    eventually(lambda: not folders[1].exists(), "the worker is gone", within_s=_WAIT_S)
    assert all(map(is_gone, descendants(pid)))


def _check_refusals(cluster: SparkCluster, spark: SparkSession, app: Any, folder: Path) -> None:
    """See that nothing starts a second cluster over a folder, or in a program that is submitted."""
    with pytest.raises(ConfigError, match="is in use"):
        _cluster(spark, folder=cluster.folder)
    (file,) = folder.glob("*.py")
    text = file.read_text()
    file.write_text(f"{text}\nimport gearpy.spark\ngearpy.spark.cluster()\n")
    with pytest.raises(ConfigError, match='below `if __name__ == "__main__":`'):
        cluster.submit(app)
    file.write_text(text)
    assert cluster.client.applications() == ()
    assert len(cluster.workers()) == 1


def test_a_worker_that_is_killed_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    """The application goes on: no number is counted twice, and none is lost. Here with TLS."""
    app = counted(tmp_path, rate=2000)
    with _cluster(spark, config={**_OFTEN, "transport.tls": "on"}) as cluster:
        run = cluster.submit(app)
        log = WindowLog(run.window_log())
        before = _more_than(0, log)
        _check_secret(cluster, tmp_path)
        os.kill(guests(cluster)[0], signal.SIGKILL)
        _more_than(before, log)
        _drain(run)
        assert run.wait(_WAIT_S).status == "terminated"

    assert verdict(shown(log)).is_good


def test_a_worker_that_is_told_to_begin_again_has_not_failed(spark: SparkSession) -> None:
    """Else a cluster that starts would be refused for it."""
    with _cluster(spark) as cluster:
        (before,) = cluster.workers()
        jobs = cluster._jobs  # noqa: SLF001
        assert jobs is not None
        jobs.begin_again()
        eventually(
            lambda: [each.worker_id for each in cluster.workers()] > [before.worker_id],
            "another worker is there",
            within_s=_WAIT_S,
        )
        assert jobs.failure == ""


def test_applications_go_on_over_the_same_folder(spark: SparkSession, tmp_path: Path) -> None:
    app, folder = counted(tmp_path, rate=2000), tmp_path / "cluster"
    once = {**_OFTEN, "application.total-retries": "0"}
    with _cluster(spark, folder=folder, config=once) as cluster:
        assert cluster.running(app) is None
        log = WindowLog(cluster.submit(app).window_log())
        before = _more_than(0, log)
    with _cluster(spark, folder=folder, config=once) as cluster:
        again = cluster.running(app)
        assert again is not None
        assert again.window_log() == log.place
        _more_than(before, log)
        _drain(again)
        assert again.wait(_WAIT_S).status == "terminated"
        assert cluster.running(app) is None

    assert verdict(shown(log)).is_good
    assert not (folder / CONF_FILE).exists()


def _drain(run: RunningApplication) -> None:
    """Have an application end well, as soon as its app master is there again."""

    def accepted() -> bool:
        with suppress(SubmitRefused):
            run.drain()
            return True
        return False

    eventually(accepted, "the drain is accepted", within_s=_WAIT_S)


def _more_than(numbers: int, log: WindowLog) -> int:
    """Wait until more numbers than so many are counted; return how many.

    What there is of the last epoch may be shown for one task and not yet for another.
    """
    return int(
        eventually(
            lambda: _numbers(log) if _numbers(log) > numbers else 0,
            f"more than {numbers}",
            within_s=_WAIT_S,
        )
    )


def _numbers(log: WindowLog) -> int:
    return verdict(shown(log))["numbers"]


def _check_secret(cluster: SparkCluster, folder: Path) -> None:
    """See that the secret is in memory, and in a file that only the driver's user may read."""
    file = cluster.folder / "secret"
    secret = file.read_text().strip()
    seen = b"".join(environments(with_children(guests(cluster))))
    assert bytes.fromhex(secret)
    assert secret.encode() not in seen
    assert bytes.fromhex(secret) not in seen
    assert file.stat().st_mode & 0o077 == 0
    known = cluster.folder / CONF_FILE
    wrong = load([known], overrides={"transport.secret-file": str(folder / "another")})
    with RemoteCluster([cluster.address], wrong) as stranger, pytest.raises(AuthenticationFailed):
        stranger.ask(ListWorkers())
    with connect(config=load([known])) as client:
        assert [each.slots for each in client.ask(ListWorkers()).workers] == [1000]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("gearpy", f"gearpy is 0.0.7 in the driver and .* at .*{re.escape(sys.executable)}"),
        ("version", r"run another Python than the driver: .*3\.8"),
        ("image", "the Python of Spark's executors lacks a module"),
    ],
)
def test_executors_that_cannot_be_workers_are_told_in_a_line(
    what: str, said: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another gearpy, another Python, an image for Spark alone; and nothing is left of it."""
    context, threads = spark.sparkContext, set(threading.enumerate())
    if what == "gearpy":
        monkeypatch.setattr(clusters, "__version__", "0.0.7")
    elif what == "version":
        monkeypatch.setattr(context, "pythonVer", "3.8")
    else:
        bare = tmp_path / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        monkeypatch.setattr(context, "pythonExec", str(bare / "bin" / "python"))
    with pytest.raises(ConfigError, match=f"a worker could not start inside Spark: .*{said}") as no:
        _cluster(spark, folder=tmp_path / "cluster")

    assert "\n" not in str(no.value)
    assert context.statusTracker().getActiveJobsIds() == []
    eventually(lambda: set(threading.enumerate()) <= threads)
    assert not (tmp_path / "cluster" / CONF_FILE).exists()


@pytest.mark.parametrize(
    ("master", "host", "tls"), [("local[4]", "127.0.0.1", "off"), ("yarn", "192.0.2.7", "on")]
)
def test_a_master_on_one_machine_listens_on_loopback(
    master: str, host: str, tls: str, tmp_path: Path
) -> None:
    conf = {"spark.driver.host": "192.0.2.7"}
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master, getConf=lambda: conf))

    config = clusters._settings(spark, tmp_path, {}, is_kept=True)  # noqa: SLF001

    assert (config.hostname, config.transport.tls) == (host, tls)


def test_a_session_of_connect_is_refused() -> None:
    """Its driver, where the master would have to be, is elsewhere."""
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(ConfigError, match="Spark Connect cannot host a cluster"):
        gearpy.spark.cluster(kind())
