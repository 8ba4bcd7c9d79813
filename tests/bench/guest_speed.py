"""Records between two executors: between daemons, and inside Spark, turn by turn in one run."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import gearpy.spark
from gearpy.cluster.boot.remote import RemoteCluster, connect
from gearpy.cluster.client.client import ClusterClient
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from tests.bench.process_cluster import ProcessCluster, launched_by
from tests.eventually import eventually
from tests.spark.guest.guest_build import guests, jvm_of, spark_conf, with_children

#: Half of what a source reads is for the task in the other executor.
_PROGRAM: Final = """\
import itertools
import gearpy as gp

app = gp.StreamApp("speed", parallelism=2)
numbers = app.read(
    gp.generate(
        lambda part: itertools.count(part, 2), partitions=2, timestamp=lambda number: number // 100
    )
)
counts = numbers.key_by(lambda number: number % 1000).window(gp.tumbling("10s")).count()
counts.write(gp.text_file("/dev/null"))
"""
_WARM_S: Final = 3.0
_WITHIN_S: Final = 120.0
_LOOK_S: Final = 0.05


class _Side(NamedTuple):
    name: str
    client: RemoteCluster
    workers: Callable[[], list[int]]  # Each starts executors as its children.
    carriers: Callable[[], list[int]]  # What is there beside executors and app masters.


class Speed(NamedTuple):
    """One turn: records a second, also of what executors used, and cores that carriers used."""

    where: str
    rate: float
    per_cpu_s: float
    carrying_cores: float


def guest_speed(folder: Path, *, rounds: int, seconds: float) -> Iterator[Speed]:
    """Yield what was measured, turn by turn; both clusters are there all the time."""
    program = folder / "speed.py"
    program.write_text(_PROGRAM)
    (folder / "daemons").mkdir()
    spark = gearpy.spark.session("speed", master="local-cluster[2,2,1024]", conf=spark_conf())
    with (
        ProcessCluster(folder / "daemons", workers=2) as daemons,
        connect(config=daemons.config) as client,
        gearpy.spark.cluster(spark, workers=2, cores=2, folder=folder / "guest") as guest,
    ):
        masters = [each.process.pid for each in daemons.masters if each.process]
        workers = [each.process.pid for each in daemons.workers if each.process]
        sides = (
            _Side("daemons", client, lambda: workers, lambda: [*masters, *workers]),
            _Side("Spark", guest.client, lambda: guests(guest), lambda: _carriers(guests(guest))),
        )
        for turn in range(rounds * len(sides)):
            yield _turn(sides[turn % len(sides)], program, seconds)
    gearpy.spark.stop()


def lines_of(found: Iterable[Speed]) -> Iterator[str]:
    by_side: dict[str, list[Speed]] = {}
    for each in found:
        by_side.setdefault(each.where, []).append(each)
        yield (
            f"{each.where:8} {each.rate:12,.0f} records/s {each.per_cpu_s:12,.0f} for each CPU "
            f"second of executors, {each.carrying_cores:5.2f} cores for all that carries them"
        )
    pairs = list(zip(by_side["Spark"], by_side["daemons"], strict=True))
    of_rates = median(inside.rate / outside.rate for inside, outside in pairs)
    of_cpu = median(inside.per_cpu_s / outside.per_cpu_s for inside, outside in pairs)
    yield f"Spark to daemons, medians: {of_rates:.2f} of the rate, {of_cpu:.2f} per CPU second"


def _turn(side: _Side, program: Path, seconds: float) -> Speed:
    run = side.client.submit_program(str(program), executors=2)
    eventually(lambda: _records(side.client, run.app_id) > 0, "records", within_s=_WITHIN_S)
    time.sleep(_WARM_S)
    executors = [child for pid in side.workers() for child in launched_by(pid)]
    carriers = side.carriers()
    used = _cpu_s(executors), _cpu_s(carriers), time.monotonic()
    records, took_s = _flow(side.client, run.app_id, seconds)
    by_executors, by_carriers = _cpu_s(executors) - used[0], _cpu_s(carriers) - used[1]
    passed_s = time.monotonic() - used[2]
    run.shutdown()
    eventually(lambda: _is_over(side.client, run.app_id), "the end", within_s=_WITHIN_S)
    rate = records / took_s
    return Speed(side.name, rate, rate * passed_s / by_executors, by_carriers / passed_s)


def _flow(client: ClusterClient, app_id: AppId, seconds: float) -> tuple[int, float]:
    """Return records that were read between two reports of them, and the time between those."""
    seen: list[tuple[int, float]] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s or len(seen) < 2:
        records, now_s = _records(client, app_id), time.monotonic()
        if records and (not seen or seen[-1][0] != records):
            seen.append((records, now_s))
        time.sleep(_LOOK_S)
    return seen[-1][0] - seen[0][0], seen[-1][1] - seen[0][1]


def _records(client: ClusterClient, app_id: AppId) -> int:
    with suppress(GearpyError):
        return client.ask(GetApplication(app_id=app_id)).progress.records_in
    return 0


def _is_over(client: ClusterClient, app_id: AppId) -> bool:
    with suppress(GearpyError):
        return client.ask(GetApplication(app_id=app_id)).status in TERMINAL
    return False


def _carriers(workers: list[int]) -> list[int]:
    """Return the JVMs of Spark, its processes of Python, and the workers in them."""
    started = {child for pid in workers for child in launched_by(pid)}
    executors = sorted({jvm_of(pid) for pid in workers})
    return [each for each in with_children(executors) if each not in with_children([*started])]


def _cpu_s(pids: Iterable[int]) -> float:
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
