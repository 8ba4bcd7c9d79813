"""Measurements of applications and masters, from end to end within one process."""

import threading
from collections.abc import Callable
from typing import Any, Final

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.measured import ProcessPage, cluster_sample
from gearpy.config.schema import Config
from gearpy.ids import ExecutorId, WorkerId
from gearpy.messages.metrics import GetHistory, GetProcessMetrics, GetWorkerAddress, MetricsData
from tests.cluster.master_build import Cluster
from tests.eventually import DEADLINE_S, eventually

RECORDS: Final = 3000
_MINUTE_MS: Final = 60_000


def an_endless_app(stop: threading.Event, function: Callable[[int], int]) -> gp.StreamApp:
    def numbers() -> Any:
        yield from range(RECORDS)
        while not stop.is_set():
            stop.wait(0.05)
            yield RECORDS

    app = gp.StreamApp("measured")
    app.read(gp.generate(numbers)).map(function).key_by(lambda n: n % 3).count().write(
        gp.to_list([])
    )
    return app


def measured(cluster: LocalCluster, app: gp.StreamApp, stop: threading.Event) -> MetricsData:
    """Run an application until its records have arrived; return what was measured."""
    found: list[MetricsData] = []

    def has_arrived() -> bool:
        data = cluster.client.metrics(running.app_id)
        last = [each for each in data.tasks if each.task_id.processor == max(data.processors)]
        found.append(data)
        return sum(each.records_in for each in last) >= RECORDS and len(data.executors) > 1

    with cluster.submitted(app) as running:
        eventually(lambda: running.summary().status == "active")
        eventually(has_arrived)
        stop.set()
        running.wait(DEADLINE_S)
    return found[-1]


def test_a_restart_is_an_event_with_its_cause(configured: Callable[..., Config]) -> None:
    stop, once = threading.Event(), threading.Event()

    def check(n: int) -> int:
        if n == RECORDS // 2 and not once.is_set():
            once.set()
            raise ValueError("only once")
        return n

    config = configured(
        application__backoff_base_ms=1, checkpoint__interval_ms=50, metrics__report_interval_ms=100
    )
    with LocalCluster(config, workers=1) as cluster:
        data = measured(cluster, an_endless_app(stop, check), stop)

    restart = next(each for each in data.events if each.kind == "restart")
    assert "only once" in restart.text
    kinds = [each.kind for each in data.events]
    assert kinds[0] == "executor-started"
    assert "active" in kinds
    assert data.application.restarts == 1
    assert all(each.executor_id == 0 for each in data.tasks)


def test_measuring_can_be_switched_off(configured: Callable[..., Config]) -> None:
    """Records are counted all the same: people want to see that something happens."""
    stop = threading.Event()
    config = configured(metrics__report_interval_ms=0)
    found: list[MetricsData] = []
    with (
        LocalCluster(config, workers=1) as cluster,
        cluster.submitted(an_endless_app(stop, lambda n: n)) as running,
    ):
        eventually(lambda: running.summary().progress.records_out >= RECORDS)
        found.append(cluster.client.metrics(running.app_id))
        stop.set()
        running.wait(DEADLINE_S)

    (data,) = found
    assert {each.busy_ms for each in data.tasks} == {0}
    assert all(each.restored is None for each in data.tasks)
    assert sum(each.records_in for each in data.tasks) >= RECORDS
    assert [each.executor_id for each in data.executors] == [-1]


def test_what_other_pages_show_is_left_out(configured: Callable[..., Config]) -> None:
    """Else Prometheus would count it twice; what is of the application as a whole stays."""
    stop = threading.Event()
    with (
        LocalCluster(configured(metrics__report_interval_ms=100), workers=1) as cluster,
        cluster.submitted(an_endless_app(stop, lambda n: n)) as running,
    ):
        eventually(lambda: running.summary().status == "active", within_s=DEADLINE_S)
        eventually(
            lambda: len(cluster.client.metrics(running.app_id).executors) > 1, within_s=DEADLINE_S
        )
        page = ProcessPage(
            address="a:1", worker_id=WorkerId(0), app_id=running.app_id, executor_id=ExecutorId(0)
        )
        worker = ProcessPage(address="a:2", worker_id=WorkerId(0))
        whole = cluster_sample(cluster.client)
        rest = cluster_sample(cluster.client, beside=(page, worker))
        stop.set()
        running.wait(DEADLINE_S)

    assert (page.process, worker.process) == ("executor0", "worker0")
    ((_, data),), ((_, left),) = whole.applications, rest.applications
    assert {each.executor_id for each in data.tasks} == {0}
    assert left.tasks == ()
    assert [each.executor_id for each in left.executors] == [-1]
    assert left.processors == data.processors
    assert [each.name for each in whole.processes] == ["master", "worker0"]
    assert [each.name for each in rest.processes] == ["master"]


def test_a_master_counts_workers_slots_and_applications() -> None:
    cluster = Cluster()
    cluster.worker()
    cluster.submit()

    data = cluster.ask(GetProcessMetrics())

    assert data.name == "master"
    assert data.gauges["gearpy_workers"] == 1
    assert data.gauges["gearpy_slots"] > data.gauges["gearpy_free_slots"] > 0
    assert data.gauges["gearpy_applications.pending"] == 1
    assert data.process.pid > 0


def test_a_master_keeps_five_minutes_of_itself() -> None:
    cluster = Cluster()

    cluster.settle(10 * _MINUTE_MS)

    recent = cluster.ask(GetHistory(path="master:thread", read_option="readRecent"))
    assert len(recent.items) == 20
    assert {each.name for each in recent.items} == {"master:thread.count"}
    latest = cluster.ask(GetHistory())
    assert {each.name for each in latest.items} == {
        "master:thread.count",
        "master:memory.total.used",
    }


def test_the_address_of_a_worker() -> None:
    cluster = Cluster()
    cluster.worker()

    refused = cluster.ask(GetWorkerAddress(worker_id=WorkerId(9)))

    assert cluster.ask(GetWorkerAddress(worker_id=WorkerId(0))).worker_id == 0
    assert refused.reason == "no worker has id 9; there are: 0"
