"""Measurements of a cluster of processes: they add up, from the tasks to the client."""

import itertools
import threading
import time
from pathlib import Path
from typing import Final

from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import ClusterClient
from gearpy.config.load import load
from gearpy.ids import AppId
from gearpy.messages.client import Artifact, GetApplication, ListWorkers
from gearpy.messages.metrics import GetHistory, GetProcessMetrics, MetricsData, TaskSample
from gearpy.metrics.histogram import count_of, quantile_of
from tests.eventually import eventually

DEADLINE_S: Final = 60.0
RECORDS: Final = 4000

#: Reads so many records, then waits until it is told to go on; the last batch waits with it.
PROGRAM: Final = f"""\
import os, time
import gearpy as gp

class Watched(gp.Task):
    def __init__(self, context):
        super().__init__(context)
        self.seen = context.metrics.counter("seen")
        self.sizes = context.metrics.histogram("size_bytes")

    def on_next(self, message):
        self.seen.add()
        self.sizes.observe(len(str(message.value)))
        self.context.output(message)

class Passed(gp.Task):  # As they come: the last one would wait for a later one elsewhere.
    def on_next(self, message):
        self.context.output(message)

def main(args):
    def numbers():
        for n in range({RECORDS}):
            yield n
        while not os.path.exists(args[0]):
            time.sleep(0.05)

    app = gp.StreamApp("measured", parallelism=2)
    read = app.read(gp.generate(numbers, rate=800), parallelism=1)
    counted = read.key_by(lambda n: n % 7).process(Watched)
    counted.key_by(lambda n: n % 5).process(Passed).write(gp.to_list([]))
    return app
"""


def of_processor(data: MetricsData, processor: int) -> list[TaskSample]:
    return [each for each in data.tasks if each.task_id.processor == processor]


def counts_of(data: MetricsData) -> list[tuple[int, int]]:
    return [(each.records_in, each.records_out) for each in data.tasks]


def at_rest(client: ClusterClient, app_id: AppId) -> MetricsData:
    pause, data = threading.Event(), client.metrics(app_id)
    before: list[tuple[int, int]] = []
    while not (has_arrived(data) and counts_of(data) == before):
        before = counts_of(data)
        pause.wait(1)
        data = client.metrics(app_id)
    return data


def has_arrived(data: MetricsData) -> bool:
    """Tell whether all that was read has arrived, but for the last batch, and a latency, too."""
    first, last = of_processor(data, 0), of_processor(data, max(data.processors, default=0))
    read = sum(each.records_out for each in first)
    taken = sum(count_of(each.processing) for each in last)
    # Executors report one after the other.
    has_passed = all(sent == come for sent, come in links_of(data))
    is_all = has_passed and taken == read > RECORDS * 0.9
    return is_all and any(count_of(each.latency) for each in last)


def links_of(data: MetricsData) -> list[tuple[int, int]]:
    """Return what each processor has sent, and the next one has taken."""
    return [
        (
            sum(each.records_out for each in of_processor(data, before)),
            sum(each.records_in for each in of_processor(data, behind)),
        )
        for before, behind in itertools.pairwise(sorted(data.processors))
    ]


def test_measurements_of_two_executors_add_up(tmp_path: Path) -> None:
    program, stop = tmp_path / "measured.py", tmp_path / "stop"
    program.write_text(PROGRAM, encoding="utf-8")
    config = load(
        env={},
        overrides={
            "transport.secret-file": str(tmp_path / "secret"),
            "metrics.report-interval-ms": "200",
            "checkpoint.interval-ms": "300",
        },
    )
    began_s = time.monotonic()
    with LocalCluster(config, workers=2, executors="process") as cluster:
        client = cluster.client
        artifact = Artifact(kind="file", location=str(program), args=(str(stop),))
        running = client.submit("measured", artifact, executors=2)
        app_id = running.app_id
        eventually(lambda: client.ask(GetApplication(app_id=app_id)).status != "pending")
        assert client.ask(GetApplication(app_id=app_id)).status == "active", client.ask(
            GetApplication(app_id=app_id)
        )
        eventually(lambda: any(client.series(app_id).records_in_rate))
        eventually(lambda: any(client.series(app_id).latency_p99_ms))
        eventually(lambda: has_arrived(client.metrics(app_id)))
        data = at_rest(client, app_id)
        series = client.series(app_id)
        history = client.ask(GetHistory(app_id=app_id, path=f"app{app_id}.processor*"))
        worker_id = client.ask(ListWorkers()).workers[0].worker_id
        master, worker = (
            client.ask(GetProcessMetrics()),
            client.ask(GetProcessMetrics(worker_id=worker_id)),
        )
        stop.touch()
        running.wait(DEADLINE_S)
    wall_ms = (time.monotonic() - began_s) * 1000

    _check_counts(data)
    _check_times(data, wall_ms)
    assert len({each.executor_id for each in data.tasks}) == 2
    assert {each.executor_id for each in data.executors} == {-1, 0, 1}
    assert all(each.process.rss_bytes > 10_000_000 for each in data.executors)
    assert len({each.process.pid for each in data.executors}) == 3
    assert {"executor-started", "active"} <= {each.kind for each in data.events}
    assert data.application.epochs_stored > 0
    assert data.application.epoch_bytes > 0
    assert len(series.processors) == len(data.processors)
    assert len(history.items) == 4 * len(data.tasks)
    assert master.gauges["gearpy_workers"] == 2
    assert (master.name, worker.name) == ("master", f"worker{worker_id}")


def _check_counts(data: MetricsData) -> None:
    assert all(sent == taken > RECORDS * 0.9 for sent, taken in links_of(data)), links_of(data)
    watched = [each.user for each in data.tasks if each.user]
    assert len(watched) == 1
    seen = [metric.value for user in watched for metric in user if metric.name == "seen"]
    assert sum(seen) == sum(each.records_in for each in of_processor(data, 1))
    assert any(each.state_bytes > 100 for each in data.tasks)


def _check_times(data: MetricsData, wall_ms: float) -> None:
    for task in data.tasks:
        assert 0 < task.busy_ms + task.backpressured_ms <= wall_ms
        is_source = task.task_id.processor == min(data.processors)
        assert (task.bytes_out > 0) == (task.task_id.processor != max(data.processors))
        assert (task.bytes_in > 0) == (not is_source)
        assert count_of(task.processing) == (task.records_out if is_source else task.records_in)
        if count_of(task.latency):
            assert 0 <= (quantile_of(task.latency, 0.5) or 0.0) < wall_ms / 1000
