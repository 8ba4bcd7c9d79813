"""A program for clusters inside Spark, its oracle, and the processes of such a cluster."""

import importlib.util
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gearpy.cluster.boot.remote import connect
from gearpy.cluster.client.client import ClusterClient
from gearpy.config.load import load
from gearpy.errors import GearpyError
from gearpy.messages.client import DescribeWorker, GetEpochs
from gearpy.spark.guest.cluster import SparkCluster
from gearpy.windowlog.log import WindowLog
from tests.system.cluster_build import descendants

WINDOW_MS: Final = 50
#: What is done again after a failure is little.
OFTEN: Final = {
    "checkpoint.interval-ms": "200",
    "checkpoint.max-overhead-percent": "100",
    "application.backoff-base-ms": "10",
}
_KEYS: Final = 7
_PROGRAM: Final = """
import itertools
import gearpy as gp

app = gp.StreamApp("counted", parallelism=2)
numbers = app.read(
    gp.generate(itertools.count, rate={rate}, limit={limit}, timestamp=lambda number: number)
)
counts = numbers.key_by(lambda number: number % {keys}).window(gp.tumbling("{window}ms")).count()
counts.write(gp.window_log_folder({log!r}), name="counts")
{more}
"""
_SMALL: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_conf() -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": _SMALL,
        "spark.executor.extraJavaOptions": _SMALL,
        "spark.executor.memory": "512m",
    }


def counted_file(folder: Path, *, rate: int, limit: int | None = None, more: str = "") -> Path:
    """Write a program that counts numbers by window and key into ``counts`` of a folder."""
    file = folder / f"counted_{folder.name}.py".replace("-", "_")
    log = str(folder / "counts")
    file.write_text(
        _PROGRAM.format(rate=rate, limit=limit, keys=_KEYS, window=WINDOW_MS, log=log, more=more)
    )
    return file


def counted(folder: Path, **asked: Any) -> Any:
    file = counted_file(folder, **asked)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


class Verdict(dict[str, int]):
    """How many numbers were counted, and in how many windows too few or too many."""

    @property
    def is_good(self) -> bool:
        return bool(self["numbers"]) and not (self["lost"] or self["twice"])


def verdict(rows: list[tuple[int, int, int]]) -> Verdict:
    """Compare windows (start, key, count) with those of all numbers up to the last one."""
    numbers = sum(count for _, _, count in rows)
    right = Counter((n - n % WINDOW_MS, n % _KEYS) for n in range(numbers))
    found = Counter[tuple[int, int]]()
    for start, key, count in rows:
        found[start, key] += count
    lost, twice = (right - found).total(), (found - right).total()
    return Verdict(numbers=numbers, lost=lost, twice=twice)


def shown(log: WindowLog) -> list[tuple[int, int, int]]:
    """Return the windows of a log (start, key, count), read without Spark."""
    if not log.exists:
        return []
    table = log.read_between({}, log.view().ends())
    starts = table["window_start"].cast("int64").to_pylist()
    keys, counts = table["key"].to_pylist(), table["value"].to_pylist()
    return [(start // 1000, *more) for start, *more in zip(starts, keys, counts, strict=True)]


def newest_epoch(client: ClusterClient, name: str = "counted") -> int:
    """Return the newest complete epoch of an application; -1 while nobody knows it."""
    with suppress(GearpyError):
        run = client.running(name)
        return max(
            (each.epoch for each in client.ask(GetEpochs(app_id=run.app_id)).epochs), default=-1
        )
    return -1


def newest_epoch_by(conf: Path) -> int:
    """Return the same of ``counted``, by the file with which commands find a cluster."""
    with suppress(GearpyError, OSError), connect(config=load([conf])) as client:
        return newest_epoch(client)
    return -1


def guests(cluster: SparkCluster) -> list[int]:
    found = [
        cluster.client.ask(DescribeWorker(worker_id=each.worker_id)) for each in cluster.workers()
    ]
    return [each.process.pid for each in found]


def with_children(pids: list[int]) -> list[int]:
    return [*pids, *(child for pid in pids for child in descendants(pid))]


def jvm_of(pid: int) -> int:
    """Return the Spark executor of a worker: the parent of the daemon that has forked it."""
    return parent(parent(pid))


def since_boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def started_s(pid: int) -> float:
    """Return when a process was started, in seconds since this machine was."""
    return _stat(pid)[19] / os.sysconf("SC_CLK_TCK")


def parent(pid: int) -> int:
    """Return the process that has started another one, or has taken it over."""
    return _stat(pid)[1]


def _stat(pid: int) -> list[int]:
    """Return what the system knows of a process: its state as a number, its parent, and so on."""
    state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [ord(state), *map(int, rest)]


def environments(pids: list[int]) -> Iterator[bytes]:
    """Yield what everybody of this user can see of processes: arguments and environment."""
    for pid in pids:
        with suppress(OSError):  # It has ended meanwhile.
            yield Path(f"/proc/{pid}/cmdline").read_bytes()
            yield Path(f"/proc/{pid}/environ").read_bytes()
