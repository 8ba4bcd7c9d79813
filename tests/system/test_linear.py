"""Three struck masters, judged by an independent checker; and whether that would see a bug."""

from pathlib import Path

import pytest

from tests.bench.linear import run_linear
from tests.bench.linear_site import BUGS, Bug

pytestmark = pytest.mark.long

_SEEDS = 5


def test_what_struck_masters_say_fits_one_order(history_checker: Path, tmp_path: Path) -> None:
    """Killed, frozen and cut off, also one way: no answer is lost, taken back or old."""
    run = run_linear(tmp_path, seed=1, faults=12)

    assert run.is_good, str(run)
    assert run.faults.total() == 12
    assert run.verdict is not None
    assert run.verdict.operations > 200


@pytest.mark.parametrize("bug", BUGS)
def test_masters_with_a_bug_are_found(history_checker: Path, tmp_path: Path, bug: Bug) -> None:
    kinds = ("leader cut off", "leader killed")
    for seed in range(_SEEDS):
        (folder := tmp_path / str(seed)).mkdir()
        verdict = run_linear(folder, seed=seed, faults=4, bug=bug, kinds=kinds).verdict
        if verdict is not None and verdict.wrong:
            return
    raise AssertionError(f"{bug}: not seen in {_SEEDS} runs")
