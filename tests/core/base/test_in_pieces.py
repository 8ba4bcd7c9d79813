"""Long work in pieces."""

from collections.abc import Iterator
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.in_pieces import emptied, in_order
from tests.core.pieces import tiny_pieces


@pytest.fixture(autouse=True, scope="module")
def pieces() -> Iterator[None]:
    with tiny_pieces():
        yield


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_things_come_in_order_with_pauses(things: list[tuple[int, int]]) -> None:
    """Property: as a stable sort has them, whether they happen to be in order or not."""
    for given_ in (things, sorted(things)):
        left = list(given_)
        ordered = in_order(left, itemgetter(0))
        out = list(ordered)

        assert [each for each in out if each is not None] == sorted(given_, key=itemgetter(0))
        assert out.count(None) == max(0, (len(given_) - 1) // 2)
        assert left == []


def test_a_dict_is_emptied_with_pauses() -> None:
    kept = {number: str(number) for number in range(3)}

    sizes = [len(kept) for _ in emptied(kept)]

    assert (sizes, kept) == ([2, 1], {})
