"""Whoever of a cluster inside Spark is killed: each number is counted once."""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.servers.yarn import Yarn
from tests.spark.standalone import standalone_cluster

_ROOT: Final = Path(__file__).parents[3]
_TWO_EXECUTORS: Final = "local-cluster[2,2,1024]"
_KINDS: Final = ("spark executor", "worker", "executor", "spark executor", "executor")
_SEED: Final = 30
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
    "spark.executor.cores": "1",
}

pytestmark = pytest.mark.long


@contextmanager
def _driver(
    folder: Path, env: Mapping[str, str] | None = None, **plan: Any
) -> Iterator["subprocess.Popen[str]"]:
    """Run a driver while the block runs; it tells what happened line by line."""
    given = json.dumps({"master": _TWO_EXECUTORS, "folder": str(folder), "kills": (), **plan})
    command = [sys.executable, "-m", "tests.spark.guest.guest_child", given]
    env = {**os.environ, **(env or {})}
    with subprocess.Popen(
        command, cwd=_ROOT, env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _lines(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """Yield what a driver tells, as it tells it."""
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)  # noqa: T201 - the times of recovery
        yield json.loads(line)


def _run(folder: Path, kills: Sequence[str], **plan: Any) -> dict[str, Any]:
    """Run a driver to its end; return all that it has told."""
    told: dict[str, Any] = {}
    with _driver(folder, kills=kills, **plan) as process:
        for line in _lines(process):
            told |= line
    assert "lost" in told, f"the driver ended too early: {told}"
    return told


def _is_exact(told: dict[str, Any]) -> bool:
    return bool(told["numbers"]) and (told["lost"], told["twice"]) == (0, 0)


@pytest.mark.parametrize("seed", range(1, 7))
def test_executors_of_spark_workers_and_executors_are_killed(seed: int, tmp_path: Path) -> None:
    """Spark starts what it has lost again; the application goes on from its newest epoch."""
    told = _run(tmp_path, _KINDS, seed=seed)

    assert told["status"] == "terminated"
    assert _is_exact(told)


def test_thirty_kills_on_a_standalone_cluster(tmp_path: Path) -> None:
    """A master of Spark and two workers, each with one executor; every sixth kill is the driver's.

    The next driver over the same folder goes on.
    """
    spark, rng = tmp_path / "spark", random.Random(_SEED)
    spark.mkdir()
    drives = [[rng.choice(_KINDS) for _ in range(5)] for _ in range(6)]
    took: dict[str, list[float]] = {"driver": []}
    with standalone_cluster(spark, cores=2) as url:
        struck_s = None
        for number, kills in enumerate(drives):
            plan: dict[str, Any] = {"master": url, "kills": kills, "seed": number, "endless": True}
            with _driver(tmp_path, **plan) as process:
                for told in _lines(process):
                    if "epoch" in told and struck_s is not None:
                        took["driver"].append(time.monotonic() - struck_s)
                    if "killed" in told:
                        took.setdefault(told["killed"], []).append(told["recovered_s"])
                    if "survived" in told:
                        break
                os.kill(process.pid, signal.SIGKILL)
                struck_s = time.monotonic()
        found = _run(tmp_path, (), master=url)
        took["driver"].append(found["epoch_s"])

    assert _is_exact(found)
    for kind, times in took.items():
        print(f"{kind}: {len(times)} kills, median {statistics.median(times):.1f} s")  # noqa: T201
    others = [each for kind, times in took.items() if kind != "driver" for each in times]
    assert (len(others), len(took["driver"])) == (30, 6)
    print(f"all but drivers: median {statistics.median(others):.1f} s")  # noqa: T201


def test_yarn(own_yarn: Yarn, tmp_path: Path) -> None:
    """A driver on this machine, executors in containers, connections that are encrypted."""
    told = _run(
        tmp_path,
        _KINDS,
        master="yarn",
        conf={**_ON_YARN, "spark.yarn.stagingDir": (tmp_path / "staging").as_uri()},
        env={"HADOOP_CONF_DIR": str(own_yarn.conf), "PYSPARK_PYTHON": sys.executable},
    )

    assert told["status"] == "terminated"
    assert _is_exact(told)


def test_an_executor_that_spark_takes_away_is_left_before(tmp_path: Path) -> None:
    """Its workers drain: no restart of the application is spent, and Spark need not wait."""
    conf = {"spark.decommission.enabled": "true"}
    told = _run(tmp_path, ("decommission", "decommission"), conf=conf, retries=0)

    assert told["status"] == "terminated"
    assert _is_exact(told)


@pytest.mark.parametrize("conf", [{}, _DYNAMIC], ids=["fixed", "dynamic allocation"])
def test_workers_come_and_go_with_the_need_for_slots(conf: dict[str, str], tmp_path: Path) -> None:
    """Two applications want more slots than one worker has; in the end one worker is left."""
    spark = tmp_path / "spark"
    spark.mkdir()
    with (
        standalone_cluster(spark, cores=2) as url,
        _driver(tmp_path, scene="sizes", master=url, conf=conf) as process,
    ):
        told = list(_lines(process))

    print(told)  # noqa: T201
    assert [each["workers"] for each in told if "workers" in each] == [1, 3, 1]
    assert told[-1]["status"] == "succeeded"
