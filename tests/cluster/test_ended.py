"""An application that has ended can still be looked at."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import ClusterClient, RunningApplication
from gearpy.cluster.client.looking import look_at
from gearpy.errors import OperatorError, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import Artifact, DescribeApplication, GetApplication, GetEpochs, GetPlan
from gearpy.messages.metrics import GetHistory, MetricsData
from gearpy.views.app import app_view
from gearpy.views.model import AppView
from tests.eventually import eventually

_LONG_S = 60
_ENDLESS = """
import itertools
import gearpy as gp

app = gp.StreamApp("endless")
numbers = app.read(gp.generate(itertools.count, rate=200))
numbers.key_by(lambda n: n % 3).count().write(gp.to_list([]))
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    overrides = {"application.total-retries": "0", "log.folder": str(tmp_path)}
    with LocalCluster(gp.load_config(env={}, overrides=overrides)) as made:
        yield made


def numbers(name: str, limit: int, step: Callable[[int], int]) -> gp.StreamApp:
    app = gp.StreamApp(name)
    source = app.read(gp.generate(lambda: count(1), limit=limit))
    source.map(step).key_by(lambda number: number % 3).count().write(gp.to_list([]))
    return app


def ended(cluster: LocalCluster, running: RunningApplication) -> AppView:
    """Return the view of an application that has ended, when its app master is gone, too."""
    eventually(lambda: look_at(cluster.client, running.app_id).series, within_s=_LONG_S)
    return app_view(look_at(cluster.client, running.app_id))


def test_a_run_that_has_come_to_its_end_has_its_graph_and_counts(cluster: LocalCluster) -> None:
    with cluster.submitted(numbers("good", 600, abs)) as running:
        assert running.wait(_LONG_S).status == "succeeded"

        view = ended(cluster, running)
        plan = json.loads(cluster.client.ask(GetPlan(app_id=running.app_id)).text)
        epochs = cluster.client.ask(GetEpochs(app_id=running.app_id)).epochs

    assert len(plan["processors"]) == len(view.processors)
    assert [each.epoch for each in epochs][-1:] == [view.totals.epoch] * bool(epochs)
    assert view.headline.text.startswith("it has come to its end")
    assert [each.role for each in view.processors] == ["source", "sink"]
    assert view.processors[0].records_out == 600
    assert view.guarantees


def test_a_run_that_has_failed_has_its_error(cluster: LocalCluster) -> None:
    with cluster.submitted(numbers("bad", 600, lambda number: 1 // (number - 300))) as running:
        with pytest.raises(OperatorError):
            running.wait(_LONG_S)

        view = ended(cluster, running)

    assert "ZeroDivisionError" in view.headline.text
    assert any("ZeroDivisionError" in each.error.cause for each in view.failures)


def test_a_run_that_was_stopped_is_known_as_it_was(cluster: LocalCluster) -> None:
    """Whoever stops it may want to know why it was slow."""
    with cluster.submitted(numbers("endless", 10**9, abs)) as running:
        eventually(lambda: running.summary().progress.records_in, within_s=_LONG_S)
        running.shutdown()

        view = ended(cluster, running)

    assert view.status == "terminated"
    assert len(view.edges) == 1


def test_measurements_can_be_read_after_the_end(cluster: LocalCluster) -> None:
    """All of them as before: the newest, the last minutes, and the past by Gearpump's names."""
    client = cluster.client
    with cluster.submitted(numbers("measured", 10**9, abs)) as running:
        app_id = running.app_id
        eventually(lambda: running.summary().progress.records_in, within_s=_LONG_S)
        eventually(lambda: processors_in(client.metrics(app_id)) == {0, 1}, within_s=_LONG_S)
        eventually(lambda: client.series(app_id).at_ms, within_s=_LONG_S)
        running.shutdown()
        eventually(lambda: left_last(client, app_id), within_s=_LONG_S)

        data, series = client.metrics(app_id), client.series(app_id)
        none = client.series(app_id, series.at_ms[-1])
        latest = client.ask(GetHistory(app_id=app_id, path="app1.processor0"))

    assert processors_in(data) == {0, 1}
    assert [each.processor_id for each in series.processors] == [0, 1]
    assert (none.at_ms, none.processors[0].rate) == ((), ())
    assert {each.name for each in latest.items} >= {"app1.processor0.task0:sendThroughput"}


def processors_in(data: MetricsData) -> set[int]:
    return {each.task_id.processor for each in data.tasks}


def left_last(client: ClusterClient, app_id: AppId) -> bool:
    """Tell whether the last of what an application leaves behind has come."""
    with suppress(SubmitRefused):
        client.ask(GetHistory(app_id=app_id, read_option="readHistory"))
        return client.ask(GetApplication(app_id=app_id)).status == "terminated"
    return False


def test_an_application_with_many_processors_has_all_of_them_after_its_end(
    cluster: LocalCluster,
) -> None:
    app = gp.StreamApp("wide")
    for number in range(45):
        app.read(gp.collection([number])).write(gp.to_list([]))
    with cluster.submitted(app) as running:
        assert running.wait(_LONG_S).status == "succeeded"
        view = ended(cluster, running)
        series = cluster.client.series(running.app_id)

    assert len(view.processors) == 45
    assert [each.processor_id for each in series.processors] == list(range(45))


@pytest.mark.long
def test_an_app_master_that_was_killed_has_left_what_it_knew(tmp_path: Path) -> None:
    """Graph, measurements and errors, also while the application waits; marked as of before."""
    program = tmp_path / "endless.py"
    program.write_text(_ENDLESS, encoding="utf-8")
    folders = {f"{each}.folder": str(tmp_path / each) for each in ("log", "worker", "checkpoint")}
    overrides = {**folders, "application.backoff-base-ms": "60000"}
    config = gp.load_config(env={}, overrides={**overrides, "cluster.masters": "127.0.0.1:0"})
    with LocalCluster(config, executors="process", listen=True) as cluster:
        client = cluster.client
        app_id = client.submit("endless", Artifact(kind="file", location=str(program))).app_id
        eventually(lambda: has_series(client, app_id, points=8), within_s=_LONG_S)
        before = client.ask(DescribeApplication(app_id=app_id))
        pid = next(
            each.process.pid for each in client.metrics(app_id).executors if each.executor_id < 0
        )

        os.kill(pid, signal.SIGKILL)

        view = eventually(lambda: a_view_of_before(client, app_id), within_s=_LONG_S)
        assert [each.name for each in view.processors] == [each.name for each in before.processors]
        assert view.status in {"pending", "active"}
        assert look_at(client, app_id).series
        with pytest.raises(SubmitRefused):
            client.ask(DescribeApplication(app_id=app_id))
        client.shutdown(app_id)
        ended = app_view(look_at(client, app_id))
        assert (ended.status, ended.known_ms) == ("terminated", view.known_ms)
        assert ended.processors


def has_series(client: ClusterClient, app_id: AppId, *, points: int) -> bool:
    """Tell whether an app master has measured so long; what it knows is left every 10 s."""
    with suppress(SubmitRefused):
        return len(client.series(app_id).at_ms) >= points
    return False


def a_view_of_before(client: ClusterClient, app_id: AppId) -> AppView | None:
    view = app_view(look_at(client, app_id))
    return view if view.known_ms else None
