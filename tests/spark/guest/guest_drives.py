"""Drivers of Spark with a cluster inside, as processes: one after the other over one folder."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.eventually import take_time
from tests.spark.guest.guest_build import since_boot_s
from tests.spark.standalone import standalone_cluster

KINDS: Final = ("spark executor", "worker", "executor", "spark executor", "executor")
_ROOT: Final = Path(__file__).parents[3]
_TWO_EXECUTORS: Final = "local-cluster[2,2,1024]"
_KILLS_MAX: Final = 5  # Of others, before the driver is killed.
_SILENCE_S: Final = 900  # A session on YARN alone takes minutes where a lot else runs.


class Recovery(NamedTuple):
    """A process that was killed, and how long it was until the next epoch but one was complete.

    ``of_spark`` of these seconds no task of Spark was there in which a worker could be.
    """

    kind: str
    seconds: float
    of_spark: float


@contextmanager
def driver(
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


def lines(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """Yield what a driver tells, as it tells it.

    A test of many kills takes longer than pytest lets one take; but no word for so long is a hang.
    """
    assert process.stdout is not None
    take_time(_SILENCE_S)
    for line in process.stdout:
        take_time(_SILENCE_S)
        print(line, end="", flush=True)  # noqa: T201 - the times of recovery
        yield json.loads(line)


def run(folder: Path, kills: Sequence[str], **plan: Any) -> dict[str, Any]:
    """Run a driver to its end; return all that it has told."""
    told: dict[str, Any] = {}
    with driver(folder, kills=kills, **plan) as process:
        for line in lines(process):
            told |= line
    assert "lost" in told, f"the driver ended too early: {told}"
    return told


def is_exact(told: Mapping[str, Any]) -> bool:
    return bool(told["numbers"]) and (told["lost"], told["twice"]) == (0, 0)


def drives(
    folder: Path, *, kills: int, seed: int, **where: Any
) -> Iterator[Recovery | dict[str, Any]]:
    """Kill processes, every sixth time the driver, on a cluster of Spark; then tell the verdict.

    The next driver over the same folder goes on. Its recovery is from the kill to the first epoch.

    Args:
        where: what `driver` is told of the cluster of Spark.
    """
    rng, struck_s, task_s, said = random.Random(seed), None, 0.0, dict[str, Any]()
    while "lost" not in said:
        others = [rng.choice(KINDS) for _ in range(min(_KILLS_MAX, kills - 1))]
        kills -= len(others) + 1
        plan: dict[str, Any] = {"kills": others, "seed": rng.random(), **where}
        with driver(folder, endless=kills >= 0, **plan) as process:
            for said in lines(process):
                task_s = said.get("first_task_at_s", task_s)
                if "epoch" in said and struck_s is not None:
                    yield Recovery("driver", since_boot_s() - struck_s, task_s - struck_s)
                if "killed" in said:
                    yield Recovery(said["killed"], said["recovered_s"], said["spark_s"])
                if "survived" in said:
                    os.kill(process.pid, signal.SIGKILL)
                    struck_s = since_boot_s()
    yield said


@contextmanager
def standalone(folder: Path, *, workers: int = 2, cores: int = 2) -> Iterator[str]:
    """Run a standalone cluster of Spark below a folder while the block runs; give its URL."""
    spark = folder / "spark"
    spark.mkdir(parents=True)
    with standalone_cluster(spark, workers=workers, cores=cores) as url:
        yield url
