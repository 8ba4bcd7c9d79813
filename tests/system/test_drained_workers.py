"""Workers that are told to end, as in a rolling update: their tasks go on elsewhere, exactly."""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import DescribeWorker, GetApplication, ListWorkers
from tests.bench.process_cluster import Daemon, ProcessCluster, launched_by
from tests.eventually import eventually

WITHIN_S: Final = 120.0
PROGRAM: Final = """
import itertools
import gearpy as gp

def main(args):
    app = gp.StreamApp("numbers", parallelism=2)
    numbers = app.read(gp.generate(
        lambda part: itertools.count(part, 2), rate=150, partitions=2
    ))
    numbers.key_by(lambda n: n % 10).map_with_state(
        lambda seen, n: (seen + 1, {"n": n, "seen": seen}), initial=0
    ).write(gp.jsonl_folder(args[0]))
    return app
"""


def written(folder: Path) -> list[str]:
    files = [path for path in folder.glob("*") if path.is_file() and path.name[0] not in "_."]
    rows = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return [f"{row['n']} {row['seen']}" for row in rows]


def restarts_of(cluster: ProcessCluster, app_id: AppId) -> list[int]:
    """Return how often the application has restarted; nothing while nobody answers."""
    with suppress(GearpyError):
        return [cluster.client.ask(GetApplication(app_id=app_id)).progress.restarts]
    return []


def is_drained(cluster: ProcessCluster, app_id: AppId) -> bool:
    """Ask for a drain until it is over: the app master may just not answer."""
    with suppress(GearpyError):
        if cluster.client.ask(GetApplication(app_id=app_id)).status == "terminated":
            return True
        cluster.client.drain(app_id)
    return False


def by_signal(_: ProcessCluster, worker: Daemon) -> int:
    """Have a worker end as its machine does; return its exit code."""
    return worker.stop(WITHIN_S)


def by_command(cluster: ProcessCluster, worker: Daemon) -> int:
    """Have a worker end as `gear worker drain` does; return its exit code."""
    client, process = cluster.client, worker.process
    assert process is not None
    (worker_id,) = (
        each.worker_id
        for each in client.ask(ListWorkers()).workers
        if client.ask(DescribeWorker(worker_id=each.worker_id)).process.pid == process.pid
    )
    client.drain_worker(worker_id)
    return process.wait(WITHIN_S)


@pytest.mark.long
def test_one_worker_after_the_other_costs_no_restart(tmp_path: Path) -> None:
    """The application may not restart once; results have no gap, and nothing twice."""
    program, results = tmp_path / "program.py", tmp_path / "results"
    program.write_text(PROGRAM)
    settings = {"application.total-retries": "0", "checkpoint.interval-ms": "200"}
    with ProcessCluster(tmp_path, workers=3, slots=5, settings=settings) as cluster:
        app_id = cluster.submit(program, str(results), executors=1)
        eventually(lambda: len(written(results)) > 100, within_s=WITHIN_S)

        for end in (by_signal, by_command):
            running = set(eventually(lambda: cluster.launched("executor"), within_s=WITHIN_S))
            (busy,) = [
                worker
                for worker in cluster.workers
                if worker.pid is not None and running & set(launched_by(worker.pid))
            ]
            before = len(written(results))
            assert end(cluster, busy) == 0
            eventually(lambda: len(written(results)) > before, within_s=WITHIN_S)  # noqa: B023
            busy.start()
            busy.wait_ready(WITHIN_S)

        eventually(lambda: is_drained(cluster, app_id), within_s=WITHIN_S)
        restarts = eventually(lambda: restarts_of(cluster, app_id), within_s=WITHIN_S)

    assert restarts == [0]
    rows = Counter(written(results))
    numbers = sorted(int(row.split()[0]) for row in rows)
    assert rows == Counter(f"{n} {n // 10}" for n in numbers)
    for part in (0, 1):
        mine = [n for n in numbers if n % 2 == part]
        assert mine == list(range(part, part + 2 * len(mine), 2))
