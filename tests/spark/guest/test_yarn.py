"""A cluster inside Spark on YARN: what is killed there, taken away there, or begins again there."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from gearpy.cluster.boot.remote import connect
from gearpy.config.load import load
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.client import ListWorkers
from gearpy.spark.guest.cluster import CONF_FILE, driver_of
from gearpy.spark.sessions.driver import spark_home
from gearpy.spark.sessions.java import java_home
from gearpy.windowlog.log import WindowLog
from tests.eventually import eventually, take_time
from tests.servers.yarn import NODE_MB, Yarn
from tests.spark.guest.guest_build import (
    OFTEN,
    counted_file,
    newest_epoch_by,
    parent,
    shown,
    spark_conf,
    verdict,
)
from tests.spark.guest.guest_drives import KINDS, Recovery, driver, drives, is_exact, lines, run
from tests.spark.guest.guest_nexmark import is_right
from tests.system.cluster_build import is_gone

_WAIT_S: Final = 900
_EXECUTORS: Final = {
    "spark.executor.instances": "2",
    "spark.executor.cores": "2",
    "spark.executor.memoryOverhead": "384m",
    # Those of this machine: nobody has to copy them.
    "spark.yarn.jars": f"local:{spark_home()}/jars/*",
}
#: Of a driver, and of each executor.
_CONTAINER_MB: Final = 512 + 384
_HERE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.yarn.am.memory": "384m",
}
_AS_CONTAINER: Final = {
    "spark.driver.memory": "512m",
    "spark.yarn.maxAppAttempts": "5",
    "spark.yarn.am.waitTime": "600s",  # Until there is a session, on a busy machine.
    "spark.yarn.submit.waitAppCompletion": "false",
    "spark.ui.enabled": "false",
    "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
    "spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME": "127.0.0.1",
    "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
}
#: Each worker takes an executor of Spark for itself.
_HOSTS: Final = """\
import gearpy.spark

config = {config!r}
with gearpy.spark.cluster(
    workers=2, cores=2, folder={folder!r}, config=config, timeout_s=600
) as cluster:
    cluster.wait()
"""

pytestmark = pytest.mark.long


def _where(yarn: Yarn, folder: Path) -> dict[str, Any]:
    staging = (folder / "staging").as_uri()
    return {
        "master": "yarn",
        "conf": {**_EXECUTORS, **_HERE, "spark.yarn.stagingDir": staging},
        "env": {"HADOOP_CONF_DIR": str(yarn.conf), "PYSPARK_PYTHON": sys.executable},
    }


def test_executors_of_spark_workers_and_executors_are_killed(
    own_yarn: Yarn, tmp_path: Path
) -> None:
    told = run(tmp_path, KINDS, **_where(own_yarn, tmp_path))

    assert told["status"] == "terminated"
    assert is_exact(told)


def test_a_driver_that_is_killed_is_submitted_again(own_yarn: Yarn, tmp_path: Path) -> None:
    """YARN ends the containers of the first; the second, over the same folder, goes on."""
    recovery, told = drives(tmp_path, kills=1, seed=3, **_where(own_yarn, tmp_path))

    assert isinstance(recovery, Recovery)
    assert recovery.kind == "driver"
    assert isinstance(told, dict)
    assert is_exact(told)


def test_a_driver_in_a_container_is_begun_again_by_yarn(own_yarn: Yarn, tmp_path: Path) -> None:
    with _hosted(own_yarn, tmp_path) as hosted:
        newest = hosted.begin()
        for victim_of in (parent, lambda pid: pid):
            before = driver_of(hosted.folder).pid
            os.kill(victim_of(before), signal.SIGKILL)
            hosted.await_other_driver(before)
            newest = hosted.await_epoch(newest + 2)

        assert hosted.ended_well()


def test_a_container_is_taken_away_for_somebody_else(own_yarn: Yarn, tmp_path: Path) -> None:
    """The scheduler of YARN pre-empts it, and the application goes on with the other worker.

    When there is room again Spark starts the lost worker again.
    """
    with _hosted(own_yarn, tmp_path) as hosted:
        newest = hosted.begin()
        urgent = own_yarn.begin_urgent(NODE_MB - 2 * _CONTAINER_MB)
        hosted.await_workers(1)
        newest = hosted.await_epoch(newest + 2)
        assert own_yarn.state(urgent) in {"ACCEPTED", "RUNNING"}
        own_yarn.kill(urgent)
        hosted.await_workers(2)
        hosted.await_epoch(newest + 2)

        assert hosted.ended_well()


def test_a_query_of_nexmark(own_yarn: Yarn, tmp_path: Path) -> None:
    """Its answers are those of plain Python, though an executor of Spark is killed meanwhile."""
    with driver(tmp_path, scene="nexmark", **_where(own_yarn, tmp_path)) as process:
        told = list(lines(process))

    assert told[-1] == {"status": "succeeded"}
    assert is_right(tmp_path)


class _Hosted(NamedTuple):
    """A cluster whose driver is in a container, as commands of this machine find it.

    Its program and what that counts are in ``home``.
    """

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "cluster"

    @property
    def conf(self) -> Path:
        return self.folder / CONF_FILE

    def begin(self) -> int:
        """Start the application; return its newest epoch as soon as it has one."""
        program = str(counted_file(self.home, rate=1000))
        with connect(config=load([self.conf])) as client:
            client.submit_program(program, executors=2)
        return self.await_epoch(0)

    def await_other_driver(self, before: int) -> None:
        def look() -> bool:
            with suppress(ConfigError, ValueError):
                return driver_of(self.folder).pid != before
            return False

        take_time(2 * _WAIT_S)
        eventually(lambda: is_gone(before), "the driver is gone", within_s=_WAIT_S)
        eventually(look, "another driver", within_s=_WAIT_S)

    def await_workers(self, count: int) -> None:
        def look() -> bool:
            with suppress(GearpyError, OSError), connect(config=load([self.conf])) as client:
                return len(client.ask(ListWorkers()).workers) == count
            return False

        take_time(2 * _WAIT_S)
        eventually(look, f"{count} workers", within_s=_WAIT_S, every_s=0.1)

    def await_epoch(self, more_than: int) -> int:
        def look() -> int:
            newest = newest_epoch_by(self.conf)
            return newest if newest > more_than else 0

        take_time(2 * _WAIT_S)
        return int(eventually(look, "an epoch", within_s=_WAIT_S, every_s=0.1))

    def ended_well(self) -> bool:
        """Drain the application; tell whether each number was counted once."""
        take_time(2 * _WAIT_S)
        with connect(config=load([self.conf])) as client:
            run = client.running("counted")
            run.drain()
            assert run.wait(_WAIT_S).status == "terminated"
        return verdict(shown(WindowLog(self.home / "counts"))).is_good


@contextmanager
def _hosted(yarn: Yarn, folder: Path) -> Iterator[_Hosted]:
    take_time(2 * _WAIT_S)
    hosted = _Hosted(folder)
    program = folder / "hosts.py"
    config = {**OFTEN, "application.total-retries": "1000"}
    program.write_text(_HOSTS.format(folder=str(hosted.folder), config=config))
    staging = {"spark.yarn.stagingDir": (folder / "staging").as_uri()}
    _submit(yarn, program, {**spark_conf(), **_EXECUTORS, **_AS_CONTAINER, **staging})
    try:
        hosted.await_workers(2)
        yield hosted
    finally:
        for each in yarn.applications():
            yarn.kill(each["id"])


def _submit(yarn: Yarn, program: Path, conf: Mapping[str, str]) -> None:
    words = [word for item in conf.items() for word in ("--conf", "=".join(item))]
    subprocess.run(
        [
            str(spark_home() / "bin" / "spark-submit"),
            *("--master", "yarn", "--deploy-mode", "cluster", *words, str(program)),
        ],
        env={
            **os.environ,
            "SPARK_HOME": str(spark_home()),
            "JAVA_HOME": str(java_home()),
            "HADOOP_CONF_DIR": str(yarn.conf),
        },
        check=True,
        capture_output=True,
        timeout=_WAIT_S,
    )
