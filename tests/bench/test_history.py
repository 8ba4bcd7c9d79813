"""The checker of histories: what it lets pass, and what it must not."""

from math import inf

import pytest

from tests.bench.history import Added, Seen, problem_of

A, B = Added("a", 1, 2), Added("b", 3, 4)
LOST = Added("c", 1)  # Nobody knows whether it is there.


def seen(names: str, begin_s: float, end_s: float) -> Seen:
    return Seen(frozenset(names), begin_s, end_s)


@pytest.mark.parametrize(
    "reads",
    [
        [],
        [seen("", 0, 1.5), seen("a", 1, 1.6), seen("ab", 3.5, 9)],
        [seen("a", 2.5, 3.5), seen("ab", 2.5, 3.5), seen("abc", 5, 6)],
        [seen("ab", 5, 6), seen("ab", 6, 7)],
    ],
)
def test_what_fits_an_order_passes(reads: list[Seen]) -> None:
    """Reads that overlap may see either; what is unknown may come late, or never."""
    assert problem_of([A, B, LOST], reads) == ""


@pytest.mark.parametrize(
    ("reads", "problem"),
    [
        ([seen("a", 5, 6)], "b was acknowledged, and is missing"),
        ([seen("ab", 0, 2.5)], "b is there before it was added"),
        ([seen("abx", 5, 6)], "nobody has added x"),
        ([seen("b", 1.5, 3.5)], "a is missing, and one is there that was added behind it"),
        ([seen("abc", 5, 6), seen("ab", 7, 8)], "c was there, and is not any more"),
        ([seen("a", 1.5, 9), seen("c", 1.5, 9)], "two reads do not agree"),
    ],
)
def test_what_fits_none_is_found(reads: list[Seen], problem: str) -> None:
    added = [A, Added("b", 3, inf), LOST] if "c" in str(reads[-1].names) else [A, B, LOST]
    assert problem_of(added, reads).startswith(problem)
