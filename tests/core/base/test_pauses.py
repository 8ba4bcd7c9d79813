"""The pause before a thing that has failed is tried again."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.pauses import pause_after


@given(st.integers(1, 10**6), st.integers(0, 1000), st.integers(0, 10**6), st.randoms())
def test_pauses_double_up_to_a_limit(failures: int, first: int, more: int, rng: Random) -> None:
    """Property: half of a pause, at most, is left to chance; a million failures cost nothing."""
    whole = min(first * 2 ** min(failures - 1, 64), first + more)

    assert whole // 2 <= pause_after(failures, first, first + more, rng) <= whole


def test_all_pauses_up_to_the_longest_are_drawn() -> None:
    rng = Random(1)

    assert {pause_after(1, 4, 100, rng) for _ in range(1000)} == {2, 3, 4}
