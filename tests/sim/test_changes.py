"""Applications that are changed while they run, in virtual time, with faults.

See `tests.bench.simulate_changes` for what is changed and what must come out; ``bin/bench simulate
--changes`` runs many more.
"""

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.bench.simulate_changes import run_change_seed


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Let nobody format what goes wrong by the thousand."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(6))
def test_each_record_is_shown_once_by_the_version_that_read_it(seed: int) -> None:
    """Whatever fails meanwhile, and also if the new version does."""
    result = run_change_seed(seed)

    assert not result.problem, result


def test_versions_run_are_replaced_and_fail() -> None:
    """Without faults all of it happens, and nothing restarts but for changes."""
    results = [run_change_seed(seed, calm=True) for seed in (2, 5)]

    states = sum((each.versions for each in results), Counter[str]())
    assert not [each for each in results if each.problem]
    assert states.keys() == {"running", "replaced", "failed"}


def test_a_sink_keeps_what_versions_before_have_shown() -> None:
    """Also where a task that has shown something was gone for a version, and is there again."""
    results = [run_change_seed(seed) for seed in (20, 26)]

    assert not [each for each in results if each.problem]
