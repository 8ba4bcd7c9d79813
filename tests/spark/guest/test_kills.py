"""Whoever of a cluster inside Spark is killed: each number is counted once."""

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.servers.yarn import Yarn
from tests.spark.guest.guest_drives import KINDS, driver, drives, is_exact, lines, run
from tests.spark.standalone import standalone_cluster

_ON_YARN: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.instances": "2",
    "spark.executor.cores": "2",
    "spark.executor.memoryOverhead": "384m",
    "spark.yarn.am.memory": "384m",
}
_DYNAMIC: Final = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
}

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", range(1, 7))
def test_executors_of_spark_workers_and_executors_are_killed(seed: int, tmp_path: Path) -> None:
    """Spark starts what it has lost again; the application goes on from its newest epoch."""
    told = run(tmp_path, KINDS, seed=seed)

    assert told["status"] == "terminated"
    assert is_exact(told)


def test_a_standalone_cluster_whose_driver_is_killed_too(tmp_path: Path) -> None:
    """A master of Spark and two workers, each with one executor.

    `bin/bench guest-crash` kills as often as one likes.
    """
    *recoveries, told = drives(tmp_path, kills=4, seed=4)

    assert len(recoveries) == 4
    assert isinstance(told, dict)
    assert is_exact(told)


def test_yarn(own_yarn: Yarn, tmp_path: Path) -> None:
    """A driver on this machine, executors in containers, connections that are encrypted."""
    told = run(
        tmp_path,
        KINDS,
        master="yarn",
        conf={**_ON_YARN, "spark.yarn.stagingDir": (tmp_path / "staging").as_uri()},
        env={"HADOOP_CONF_DIR": str(own_yarn.conf), "PYSPARK_PYTHON": sys.executable},
    )

    assert told["status"] == "terminated"
    assert is_exact(told)


def test_an_executor_that_spark_takes_away_is_left_before(tmp_path: Path) -> None:
    """Its workers drain: no restart of the application is spent, and Spark need not wait."""
    conf = {"spark.decommission.enabled": "true"}
    told = run(tmp_path, ("decommission", "decommission"), conf=conf, retries=0)

    assert told["status"] == "terminated"
    assert is_exact(told)


@pytest.mark.parametrize("conf", [{}, _DYNAMIC], ids=["fixed", "dynamic allocation"])
def test_workers_come_and_go_with_the_need_for_slots(conf: dict[str, str], tmp_path: Path) -> None:
    """Two applications want more slots than one worker has; in the end one worker is left."""
    spark = tmp_path / "spark"
    spark.mkdir()
    with (
        standalone_cluster(spark, workers=3) as url,
        driver(tmp_path, scene="sizes", master=url, conf=conf) as process,
    ):
        told = list(lines(process))

    print(told)  # noqa: T201
    assert [each["workers"] for each in told if "workers" in each] == [1, 3, 1]
    assert told[-1]["status"] == "succeeded"
