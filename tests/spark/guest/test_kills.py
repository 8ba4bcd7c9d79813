"""Whoever of a cluster inside Spark is killed: each number is counted once."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.spark.standalone import standalone_cluster

_ROOT: Final = Path(__file__).parents[3]
_TWO_EXECUTORS: Final = "local-cluster[2,2,1024]"
_KINDS: Final = ("spark executor", "worker", "executor", "spark executor", "executor")

pytestmark = pytest.mark.long


@contextmanager
def _driver(folder: Path, **plan: Any) -> Iterator["subprocess.Popen[str]"]:
    """Run a driver while the block runs; it tells what happened line by line."""
    given = json.dumps({"master": _TWO_EXECUTORS, "folder": str(folder), "kills": (), **plan})
    command = [sys.executable, "-m", "tests.spark.guest.guest_child", given]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _told(process: "subprocess.Popen[str]", until: str) -> dict[str, Any]:
    """Return all that a driver tells until a name comes."""
    told: dict[str, Any] = {}
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="")  # noqa: T201 - the times of recovery
        told |= json.loads(line)
        if until in told:
            return told
    raise AssertionError(f"the driver ended before it told {until!r}: {told}")


def _run(folder: Path, kills: Sequence[str], **plan: Any) -> dict[str, Any]:
    with _driver(folder, kills=kills, **plan) as process:
        return _told(process, "lost")


def _is_exact(told: dict[str, Any]) -> bool:
    return bool(told["numbers"]) and (told["lost"], told["twice"]) == (0, 0)


@pytest.mark.parametrize("seed", range(1, 7))
def test_executors_of_spark_workers_and_executors_are_killed(seed: int, tmp_path: Path) -> None:
    """Spark starts what it has lost again; the application goes on from its newest epoch."""
    told = _run(tmp_path, _KINDS, seed=seed)

    assert told["status"] == "terminated"
    assert _is_exact(told)


def test_a_driver_is_killed_and_submitted_again(tmp_path: Path) -> None:
    """The next one over the same folder goes on."""
    with _driver(tmp_path, endless=True) as process:
        _told(process, "epoch")
        os.kill(process.pid, signal.SIGKILL)
    assert _is_exact(_run(tmp_path, ("executor",)))


def test_a_standalone_cluster(tmp_path: Path) -> None:
    """A master of Spark and two workers, each with one executor."""
    spark = tmp_path / "spark"
    spark.mkdir()
    with standalone_cluster(spark, cores=2) as url:
        assert _is_exact(_run(tmp_path, _KINDS, master=url))
