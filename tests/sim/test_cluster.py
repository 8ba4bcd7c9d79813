"""Whole clusters in virtual time, with faults; see `tests.bench.simulate` for many more.

What the simulator would find is in `test_planted_bugs`.
"""

import pytest

from gearpy.ids import MASTER_EXECUTOR
from tests.bench.simulate import run_seed
from tests.bench.simulated_app import SimulatedApp
from tests.world.cluster import ClusterSimulation

pytestmark = pytest.mark.usefixtures("no_log")


@pytest.mark.parametrize("block", [0, pytest.param(1, marks=pytest.mark.long)])
def test_answer_is_right_whatever_fails(block: int) -> None:
    for seed in range(block * 6, block * 6 + 6):
        result = run_seed(seed)

        assert not result.problem, result


def test_a_drain_shows_what_was_read() -> None:
    results = [run_seed(seed, "drain") for seed in range(3)]

    assert not [each for each in results if each.problem]
    assert {each.status for each in results} == {"terminated", "succeeded"}


def test_an_application_ends_when_its_budget_is_spent() -> None:
    results = [run_seed(seed, "tight") for seed in range(2)]

    assert not [each for each in results if each.problem]


def test_without_faults_nothing_restarts() -> None:
    results = [run_seed(seed, "calm") for seed in range(2)]

    assert not [each for each in results if each.problem or each.restarts]


def test_same_seed_gives_the_same_run() -> None:
    """Else a failure could not be looked into."""
    assert run_seed(4) == run_seed(4)


def test_app_master_waits_for_a_store_that_is_away() -> None:
    """A relaunched one has epochs to go on from: the application must not end for that."""
    app = SimulatedApp(400, ["numbered"])
    cluster = ClusterSimulation(1)
    running = cluster.submit(app.build)
    cluster.world.run(lambda: bool(cluster.checkpoints.stored.names("")), within_ms=5000)
    cluster.world.run(lambda: False, within_ms=600)

    cluster.checkpoints.fail(5000)
    cluster.kill(cluster.launched(MASTER_EXECUTOR)[0])
    summary = cluster.run_to_end(running.app_id, within_ms=60_000)

    assert cluster.checkpoints.failures > 3
    assert summary is not None
    assert (summary.status, app.problem(), app.retracted) == ("succeeded", "", 0)


def test_master_that_dies_while_an_application_begins_costs_it_nothing() -> None:
    """The first launch has opened its log: it needs no store to hear that the master knows it."""
    app = SimulatedApp(10, ["numbered"])
    cluster = ClusterSimulation(1)
    running = cluster.submit(app.build)
    assert cluster.world.run(lambda: bool(cluster.checkpoints.stored.names("")), within_ms=5000)

    cluster.checkpoints.fail(3000)
    cluster.kill(cluster.master)
    cluster.start_master()
    summary = cluster.run_to_end(running.app_id, within_ms=60_000)

    assert summary is not None
    assert (summary.status, app.problem()) == ("succeeded", "")


def test_application_that_finds_no_store_ends() -> None:
    app = SimulatedApp(10, ["numbered"])
    cluster = ClusterSimulation(1)
    cluster.checkpoints.fail(600_000)

    running = cluster.submit(app.build)
    summary = cluster.run_to_end(running.app_id, within_ms=60_000)

    assert summary is not None
    assert summary.status == "failed"
    assert summary.cause is not None
    assert "the store fails" in summary.cause.cause
