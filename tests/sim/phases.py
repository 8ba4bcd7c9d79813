"""Looks at simulated changes until each of their phases had a fault."""

from collections import Counter
from collections.abc import Iterable


def see_fault_in_each(phases: Iterable[str], runs: Iterable[tuple[str, Counter[str]]]) -> None:
    """Take as many runs as it needs: which seed hits which phase changes with what is simulated.

    Args:
        runs: the problem of each run, empty if it has none, and how often it came to what.
    """
    hit: Counter[str] = Counter()
    wanted = {f"fault in {phase}" for phase in phases}
    for problem, counts in runs:
        assert not problem, problem
        hit += counts
        if wanted <= hit.keys():
            return
    raise AssertionError(f"phases without a fault: {wanted - hit.keys()}")
