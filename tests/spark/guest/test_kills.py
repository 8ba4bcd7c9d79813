"""Whoever of a cluster inside Spark is killed: each number is counted once."""

from pathlib import Path
from typing import Final

import pytest

from tests.spark.guest.guest_drives import KINDS, driver, drives, is_exact, lines, run, standalone
from tests.spark.guest.guest_nexmark import is_right

_DYNAMIC: Final = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
}
#: With which Spark waits for an executor that is not excluded; 120 s where nobody says it.
_PATIENCE: Final = "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout"

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
    with standalone(tmp_path) as url:
        *recoveries, told = drives(tmp_path, kills=4, seed=4, master=url)

    assert len(recoveries) == 4
    assert isinstance(told, dict)
    assert is_exact(told)


def test_a_driver_that_loses_its_jvm_hears_of_it(tmp_path: Path) -> None:
    """The cluster ends with its Spark, so nobody waits in vain; its folder is free at once."""
    with driver(tmp_path, scene="lost JVM", master="local[4]") as process:
        told = list(lines(process))

    assert [each for each in told if "heard" in each]
    assert {"status": "terminated"} in told
    assert is_exact(told[-1])


def test_executors_that_spark_excludes_for_failures(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a worker was lost its task shall not run again; then it can run nowhere.

    Spark waits for another executor, and gives up the job; gearpy starts another one, which may run
    anywhere. One of two workers is lost three times at least, so that this happens.
    """
    conf = {"spark.excludeOnFailure.enabled": "true", _PATIENCE: "1s"}
    with standalone(tmp_path) as url:
        told = run(tmp_path, ("worker",) * 6, master=url, conf=conf)

    assert "Spark has excluded every executor where this could run" in capfd.readouterr().err
    assert told["status"] == "terminated"
    assert is_exact(told)


def test_a_query_of_nexmark(tmp_path: Path) -> None:
    """Its answers are those of plain Python, though an executor of Spark is killed meanwhile."""
    with standalone(tmp_path) as url, driver(tmp_path, scene="nexmark", master=url) as process:
        told = list(lines(process))

    assert told[-1] == {"status": "succeeded"}
    assert is_right(tmp_path)


def test_an_executor_that_spark_takes_away_is_left_before(tmp_path: Path) -> None:
    """Its workers drain: no restart of the application is spent, and Spark need not wait."""
    conf = {"spark.decommission.enabled": "true"}
    told = run(tmp_path, ("decommission", "decommission"), conf=conf, retries=0)

    assert told["status"] == "terminated"
    assert is_exact(told)


@pytest.mark.parametrize("conf", [{}, _DYNAMIC], ids=["fixed", "dynamic allocation"])
def test_workers_come_and_go_with_the_need_for_slots(conf: dict[str, str], tmp_path: Path) -> None:
    """Two applications want more slots than one worker has; in the end one worker is left."""
    with (
        standalone(tmp_path, workers=3, cores=1) as url,
        driver(tmp_path, scene="sizes", master=url, conf=conf) as process,
    ):
        told = list(lines(process))

    print(told)  # noqa: T201
    assert [each["workers"] for each in told if "workers" in each] == [1, 3, 1]
    assert told[-1]["status"] == "succeeded"
