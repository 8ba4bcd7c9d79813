"""An application that has ended can still be looked at."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.client.looking import look_at
from gearpy.errors import OperatorError
from gearpy.views.app import app_view
from gearpy.views.model import AppView
from tests.eventually import eventually


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
    eventually(lambda: look_at(cluster.client, running.app_id).series)
    return app_view(look_at(cluster.client, running.app_id))


def test_a_run_that_has_come_to_its_end_has_its_graph_and_counts(cluster: LocalCluster) -> None:
    with cluster.submitted(numbers("good", 600, abs)) as running:
        assert running.wait(30).status == "succeeded"

        view = ended(cluster, running)
        plan = json.loads(cluster.client.plan(running.app_id))
        epochs = cluster.client.epochs(running.app_id)

    assert len(plan["processors"]) == len(view.processors)
    assert [each.epoch for each in epochs][-1:] == [view.totals.epoch] * bool(epochs)
    assert view.headline.text.startswith("it has come to its end")
    assert [each.role for each in view.processors] == ["source", "sink"]
    assert view.processors[0].records_out == 600
    assert view.guarantees


def test_a_run_that_has_failed_has_its_error(cluster: LocalCluster) -> None:
    with cluster.submitted(numbers("bad", 600, lambda number: 1 // (number - 300))) as running:
        with pytest.raises(OperatorError):
            running.wait(30)

        view = ended(cluster, running)

    assert "ZeroDivisionError" in view.headline.text
    assert any("ZeroDivisionError" in each.error.cause for each in view.failures)


def test_a_run_that_was_stopped_is_known_as_it_was(cluster: LocalCluster) -> None:
    """Whoever stops it may want to know why it was slow."""
    with cluster.submitted(numbers("endless", 10**9, abs)) as running:
        eventually(lambda: running.summary().progress.records_in)
        running.shutdown()

        view = ended(cluster, running)

    assert view.status == "terminated"
    assert len(view.edges) == 1
