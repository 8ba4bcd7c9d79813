"""A store is taken away and given back, in the middle of anything: nothing is lost or twice."""

import pytest

from tests.bench.simulate import STORE_AWAY, run_seed
from tests.bench.simulate_changes import run_change_seed

pytestmark = pytest.mark.usefixtures("no_log")


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 40))]
)
def test_nothing_is_lost_when_a_store_goes_and_comes_back(seed: int) -> None:
    result = run_seed(seed, more=STORE_AWAY)

    assert not result.problem, result


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 20))]
)
def test_nothing_is_lost_in_changes_without_a_store(seed: int) -> None:
    result = run_change_seed(seed, more=STORE_AWAY, shorter=3)

    assert not result.problem, result
