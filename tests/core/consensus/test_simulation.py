"""Members in virtual time, with faults; `bin/bench consensus` runs many more seeds.

What the simulator would find is in `test_planted_bugs`.
"""

import pytest

from tests.core.consensus_world import run_consensus_seed


@pytest.mark.parametrize("first", [0, 9000])
def test_all_rules_hold_whatever_fails(first: int) -> None:
    """One leader of a term, one log, nothing lost, no old reads; and an end to every election."""
    for seed in range(first, first + 100):
        result = run_consensus_seed(seed, events_max=400)

        assert not result.problem, result


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 12_000, 250))
def test_all_rules_hold_for_two_thousand_more(first: int) -> None:
    for seed in range(first, first + 250):
        result = run_consensus_seed(seed, events_max=400)

        assert not result.problem, result


@pytest.mark.long
def test_all_rules_hold_for_many_seeds() -> None:
    for seed in range(1000, 5000):
        result = run_consensus_seed(seed)

        assert not result.problem, result


def test_faults_come_and_work_is_done() -> None:
    """A world in which nothing happens would keep every rule."""
    results = [run_consensus_seed(seed) for seed in range(20)]

    for kind in ("faults", "leaders", "committed", "reads", "snapshots", "changes"):
        assert sum(getattr(each, kind) for each in results) > 3, kind


def test_same_seed_gives_the_same_run() -> None:
    """Else a failure could not be looked into."""
    assert run_consensus_seed(7) == run_consensus_seed(7)
