"""A driver with a cluster inside Spark that is struck again and again; it tells JSON, by lines.

Run by tests, in a process of its own, as its Spark has executors of their own.
"""

import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import gearpy.spark
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.client import GetMaster
from gearpy.messages.masters import GetMasters
from gearpy.spark.guest.cluster import SparkCluster
from gearpy.spark.sessions.driver import DRIVER
from tests.eventually import eventually
from tests.spark.guest.guest_build import (
    OFTEN,
    counted,
    guests,
    jvm_of,
    newest_epoch,
    since_boot_s,
    spark_conf,
    started_s,
    verdict,
)
from tests.spark.guest.guest_nexmark import PROGRAM, words
from tests.system.cluster_build import descendants, is_gone

_WAIT_S: Final = 600
_LOOK_S: Final = 0.05  # More often would take from the processors what is measured.


def tell(**said: Any) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()


def _config(plan: Mapping[str, Any]) -> dict[str, str]:
    retries = str(plan.get("retries", 100_000))
    return {**OFTEN, "application.total-retries": retries, **plan.get("config", {})}


def await_epochs(cluster: SparkCluster, more_than: int) -> int:
    """Wait for epochs behind one; return the newest."""

    def look() -> int:
        newest = newest_epoch(cluster.client)
        return newest if newest > more_than else 0

    what = f"an epoch behind {more_than}"
    return int(eventually(look, what, within_s=_WAIT_S, every_s=_LOOK_S))


def _drain(cluster: SparkCluster) -> None:
    """End the application at an epoch; tell how it has ended."""
    run = cluster.client.running("counted")
    run.drain()
    tell(status=run.wait(_WAIT_S).status)


def _executor(pid: int) -> int:
    return random.choice([*descendants(pid), pid])


#: Whom to kill, of one of the workers.
_VICTIMS: Final[Mapping[str, Callable[[int], int]]] = {
    "spark executor": jvm_of,
    "worker": lambda pid: pid,
    "executor": _executor,
    "decommission": jvm_of,
}
#: As Spark's own scripts ask an executor to leave.
_SIGNALS: Final = {"decommission": signal.SIGPWR}


def strike(cluster: SparkCluster, kind: str, newest: int) -> int:
    """Kill a process of a kind; return the newest epoch after the application has recovered."""
    pids = eventually(lambda: _guests(cluster), "a worker is there", within_s=_WAIT_S)
    pid = random.choice(pids)
    os.kill(_VICTIMS[kind](pid), _SIGNALS.get(kind, signal.SIGKILL))
    if kind == "decommission":
        eventually(lambda: not _lives(pid), "the worker has left", within_s=_WAIT_S)
    since_s = since_boot_s()
    newest = await_epochs(cluster, newest + 2)  # One may have been under way.
    took_s = since_boot_s() - since_s
    waited_s = waited_for_spark_s(cluster, pids, since_s)
    tell(killed=kind, recovered_s=round(took_s, 2), spark_s=round(waited_s, 2))
    return newest


def waited_for_spark_s(cluster: SparkCluster, before: Sequence[int], since_s: float) -> float:
    """Return how long there was no worker, until Spark had begun a task that became one.

    Where one of ``before`` is left, nobody has waited for Spark.
    """
    now = eventually(lambda: _guests(cluster), "a worker is there", within_s=_WAIT_S)
    if set(now) & set(before):
        return 0.0
    return max(0.0, min(map(started_s, now)) - since_s)


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").exists() and not is_gone(pid)


def _guests(cluster: SparkCluster) -> list[int]:
    with suppress(GearpyError):
        return guests(cluster)
    return []


def check(spark: SparkSession, log: str) -> None:
    read = spark.read.format("gearpy").load(log)
    rows = read.selectExpr("unix_millis(window_start) as start", "key", "value").collect()
    found = verdict([tuple(row) for row in rows])
    tell(**found)


def _session(plan: Mapping[str, Any]) -> SparkSession:
    conf = {**spark_conf(), **plan.get("conf", {})}
    return gearpy.spark.session("guest", master=plan["master"], conf=conf)


def main(plan: Mapping[str, Any]) -> None:
    folder = Path(plan["folder"])
    random.seed(plan.get("seed", 1))
    since_s = time.monotonic()
    spark = _session(plan)
    tell(session_s=round(time.monotonic() - since_s, 2))
    if scene := plan.get("scene"):
        _SCENES[scene](spark, plan)
        gearpy.spark.stop()
        return
    app = counted(folder, rate=plan.get("rate", 1000))
    for turn in range(plan.get("starts", 1)):
        since_s = time.monotonic()
        with gearpy.spark.cluster(
            spark,
            workers=2,
            cores=plan.get("cores"),
            folder=folder / "cluster",
            config=_config(plan),
            timeout_s=_WAIT_S,
        ) as cluster:
            took_s = round(time.monotonic() - since_s, 2)
            tell(cluster_s=took_s, first_task_at_s=min(map(started_s, guests(cluster))))
            if turn + 1 == plan.get("starts", 1):
                _run(cluster, spark, app, plan)
    gearpy.spark.stop()


def _app_in(folder: Path, **more: Any) -> Any:
    folder.mkdir()
    return counted(folder, rate=20_000, **more)


def show_sizes(spark: SparkSession, plan: Mapping[str, Any]) -> None:
    """Have two applications want more slots than the first worker has, and then end."""
    folder = Path(plan["folder"])
    apps = [_app_in(folder / name, limit=400_000) for name in ("one", "two", "three")]
    with gearpy.spark.cluster(
        spark,
        workers=1,
        max_workers=3,
        idle_s=5,
        slots=2,
        folder=folder / "cluster",
        config=_config(plan),
        timeout_s=_WAIT_S,
    ) as cluster:
        tell(workers=len(cluster.workers()))
        runs = [
            cluster.submit(app, name=f"counted{number}", executors=2)
            for number, app in enumerate(apps[:2])
        ]
        eventually(lambda: len(cluster.workers()) == 3, "three workers", within_s=_WAIT_S)
        tell(workers=len(cluster.workers()))
        statuses = {run.wait(_WAIT_S).status for run in runs}
        eventually(lambda: len(cluster.workers()) == 1, "one worker", within_s=_WAIT_S)
        tell(workers=len(cluster.workers()))
        again = cluster.submit(apps[-1], executors=2)
        statuses.add(again.wait(_WAIT_S).status)
        tell(status="+".join(statuses))


def show_masters(spark: SparkSession, plan: Mapping[str, Any]) -> None:
    """Kill the executors of masters: of the one that leads, then of two; then all end well."""
    folder = Path(plan["folder"])
    app, newest = counted(folder, rate=1000), -1
    for turn in range(2):  # The second one goes on from the folder.
        since_s = time.monotonic()
        with gearpy.spark.cluster(
            spark,
            workers=2,
            masters=3,
            folder=folder / "cluster",
            config=_config(plan),
            timeout_s=_WAIT_S,
        ) as cluster:
            tell(cluster_s=round(time.monotonic() - since_s, 2))
            if turn == 0:
                cluster.submit(app, executors=2)
            newest = await_epochs(cluster, newest)
            for lost in (1, 2) if turn == 0 else (1,):
                newest = _strike_masters(cluster, folder, newest, lost)
            if turn == 1:
                _drain(cluster)
    check(spark, str(folder / "counts"))


def _strike_masters(cluster: SparkCluster, folder: Path, newest: int, lost: int) -> int:
    """Kill so many masters, the leader first, after a program was acknowledged; see it is kept."""
    name = f"kept{newest}"
    cluster.submit(_app_in(folder / name, limit=1000), name=name)
    leader = cluster.client.ask(GetMaster())
    others = [_seat_pid(each.address) for each in cluster.client.ask(GetMasters()).masters]
    killed = [leader.pid, *(pid for pid in others if pid != leader.pid)][:lost]
    executors = {jvm_of(pid) for pid in killed}
    since_s = time.monotonic()
    for each in executors:
        os.kill(each, signal.SIGKILL)
    eventually(lambda: _leader(cluster) != leader.address, "another leads", within_s=_WAIT_S)
    names = eventually(lambda: _names(cluster), "a master answers", within_s=_WAIT_S)
    led_s = round(time.monotonic() - since_s, 2)
    newest = await_epochs(cluster, newest + 2)
    epoch_s = round(time.monotonic() - since_s, 2)
    eventually(lambda: _seated(cluster) == 3, "three masters", within_s=_WAIT_S)
    whole_s = round(time.monotonic() - since_s, 2)
    status = cluster.client.running(name).wait(_WAIT_S).status
    tell(
        masters_killed=len(executors),
        is_kept=name in names,
        then=status,
        led_s=led_s,
        epoch_s=epoch_s,
        whole_s=whole_s,
    )
    return newest


def _leader(cluster: SparkCluster) -> str:
    """Return the address of the process that answers as the master, when one does."""
    found: list[str] = []

    def look() -> list[str]:
        with suppress(GearpyError):
            found[:] = [cluster.client.ask(GetMaster()).address]
        return found

    eventually(look, "a master answers", within_s=_WAIT_S)
    return found[0]


def _names(cluster: SparkCluster) -> list[str]:
    with suppress(GearpyError):
        return [each.name for each in cluster.client.applications()]
    return []


def _seated(cluster: SparkCluster) -> int:
    with suppress(GearpyError):
        masters = cluster.client.ask(GetMasters()).masters
        return len(masters) if all(each.role != "away" for each in masters) else 0
    return 0


def _seat_pid(address: str) -> int:
    port = int(address.rpartition(":")[2])
    sockets = {
        fields[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if (fields := line.split())[1].endswith(f":{port:04X}") and fields[3] == "0A"
    }
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            target = str(link.readlink())
            if target.startswith("socket:[") and target[8:-1] in sockets:
                return int(link.parts[2])
    raise AssertionError(f"nobody listens at {address}")


def show_frozen(spark: SparkSession, plan: Mapping[str, Any]) -> None:
    """Run an application under three masters until a file says that this driver may go on."""
    folder = Path(plan["folder"])
    app = counted(folder, rate=1000)
    with gearpy.spark.cluster(
        spark,
        workers=2,
        masters=3,
        folder=folder / "cluster",
        config=_config(plan),
        timeout_s=_WAIT_S,
    ) as cluster:
        cluster.submit(app, executors=2)
        tell(epoch=await_epochs(cluster, 0))
        eventually((folder / "thawed").exists, "a word", within_s=_WAIT_S, every_s=_LOOK_S)
        eventually(lambda: _seated(cluster) == 3, "three masters", within_s=_WAIT_S)
        _drain(cluster)
    check(spark, str(folder / "counts"))


def show_lost_jvm(spark: SparkSession, plan: Mapping[str, Any]) -> None:
    """Kill the JVM of this driver; who waits hears of it, and another session goes on."""
    folder = Path(plan["folder"])
    app = counted(folder, rate=1000)
    start = partial(
        gearpy.spark.cluster,
        workers=2,
        folder=folder / "cluster",
        config=_config(plan),
        timeout_s=_WAIT_S,
    )
    with start(spark) as cluster:
        run = cluster.submit(app, executors=2)
        newest = await_epochs(cluster, 0)
        assert DRIVER.pid is not None
        os.kill(DRIVER.pid, signal.SIGKILL)
        try:
            run.wait(_WAIT_S)
        except GearpyError as error:  # Of a master that ends, or has ended.
            tell(heard=str(error))
    spark = _session(plan)
    with start(spark) as cluster:
        await_epochs(cluster, newest + 2)
        _drain(cluster)
    check(spark, str(folder / "counts"))


def show_nexmark(spark: SparkSession, plan: Mapping[str, Any]) -> None:
    """Run a query of Nexmark, and kill an executor of Spark meanwhile."""
    folder = Path(plan["folder"])
    with gearpy.spark.cluster(
        spark, workers=2, folder=folder / "cluster", config=_config(plan), timeout_s=_WAIT_S
    ) as cluster:
        run = cluster.client.submit_program(PROGRAM, words(folder, rate=1000), executors=2)
        eventually(
            lambda: newest_epoch(cluster.client, run.name) > 0,
            "an epoch",
            within_s=_WAIT_S,
            every_s=_LOOK_S,
        )
        os.kill(jvm_of(random.choice(guests(cluster))), signal.SIGKILL)
        tell(status=run.wait(_WAIT_S).status)


def show_refusals(spark: SparkSession, plan: Mapping[str, Any]) -> None:
    """Ask for clusters that cannot be, then for one that can; each leaves room for the next."""
    folder, context = Path(plan["folder"]) / "cluster", spark.sparkContext
    _tell_refusal(spark, "slots", folder=folder, workers=3, timeout_s=plan["patience_s"])
    python, context.pythonExec = context.pythonExec, plan["bare"]
    _tell_refusal(spark, "image", folder=folder, workers=2, timeout_s=_WAIT_S)
    context.pythonExec, version, context.pythonVer = python, context.pythonVer, "3.8"
    _tell_refusal(spark, "version", folder=folder, workers=2, timeout_s=_WAIT_S)
    context.pythonVer = version
    conf, stranger = folder / "gear.toml", Path(plan["folder"]) / "another"
    stranger.write_text("ab" * 32)
    stranger.chmod(0o600)
    with gearpy.spark.cluster(spark, workers=2, folder=folder, timeout_s=_WAIT_S) as cluster:
        known = ("--conf", str(conf), "--set", f"transport.secret-file={stranger}")
        _tell_command("client", "info", *known)
        own = f"worker.folder={Path(plan['folder']) / 'stranger'}"
        _tell_command("worker", "worker", *known, "--set", own)
        _tell_command("folder", "spark", "start", "--folder", str(folder), "--spark", "local[2]")
        tell(workers=len(cluster.workers()))
    tell(jobs=len(context.statusTracker().getActiveJobsIds()))


def _tell_refusal(spark: SparkSession, what: str, **asked: Any) -> None:
    """Tell why there is no such cluster, and the jobs that are left of it; no thread is."""
    threads = set(threading.enumerate())
    try:
        gearpy.spark.cluster(spark, **asked).close()
    except ConfigError as error:
        eventually(lambda: set(threading.enumerate()) <= threads)
        jobs = spark.sparkContext.statusTracker().getActiveJobsIds()
        tell(what=what, said=str(error), left=list(jobs))


def _tell_command(what: str, *words: str) -> None:
    """Run a command of `gear` that cannot do its work; tell how it ended, and what it said last."""
    command = [sys.executable, "-m", "gearpy", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S, check=False)
    tell(what=what, code=ended.returncode, said=ended.stderr.strip())


_SCENES: Final[Mapping[str, Callable[[SparkSession, Mapping[str, Any]], None]]] = {
    "sizes": show_sizes,
    "refusals": show_refusals,
    "masters": show_masters,
    "frozen": show_frozen,
    "lost JVM": show_lost_jvm,
    "nexmark": show_nexmark,
}


def _run(cluster: SparkCluster, spark: SparkSession, app: Any, plan: Mapping[str, Any]) -> None:
    names = [each.name for each in cluster.client.applications()]
    if "counted" not in names:
        cluster.submit(app, executors=2)
    since_s = time.monotonic()
    newest = await_epochs(cluster, newest_epoch(cluster.client) + 1)
    tell(epoch=newest, epoch_s=round(time.monotonic() - since_s, 2))
    for kind in plan["kills"]:
        newest = strike(cluster, kind, newest)
    if plan.get("endless"):
        tell(survived=len(plan["kills"]))
        eventually(lambda: False, "killed from outside", within_s=_WAIT_S)
    _drain(cluster)
    check(spark, str(Path(plan["folder"]) / "counts"))


if __name__ == "__main__":
    logging.basicConfig()
    main(json.loads(sys.argv[1]))
