"""Values with large bytes: the same as other values, byte for byte."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import CannotTravel
from gearpy.wire.values.payload import decode_value, encode_value
from gearpy.wire.values.pieces import Pieces, encode_pieces

LARGE = bytes(70_000)
LEAVES = (
    st.none() | st.integers() | st.text(max_size=3) | st.binary(max_size=3) | st.just(LARGE)
) | st.tuples(st.integers())
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.dictionaries(st.integers() | st.text(max_size=2), inner, max_size=20)
    ),
    max_leaves=24,
)


def whole(encoded: bytes | Pieces) -> bytes:
    return encoded.joined() if isinstance(encoded, Pieces) else encoded


@given(value=VALUES)
def test_pieces_are_the_bytes_that_there_would_be(value: Any) -> None:
    assert whole(encode_pieces(value)) == encode_value(value)


@given(inner=VALUES, outer=VALUES)
def test_pieces_stand_for_bytes_in_another_value(inner: Any, outer: Any) -> None:
    encoded = encode_pieces(inner)
    found = decode_value(whole(encode_pieces([outer, {"inner": encoded}])))
    assert found == [outer, {"inner": encode_value(inner)}]


@pytest.mark.parametrize("count", [64, 65], ids=["few", "many"])
def test_large_bytes_are_not_copied_before_they_are_joined(count: int) -> None:
    """But in containers of so many that to look through them would cost more."""
    encoded = encode_pieces({"kept": [LARGE] * count})
    pieces = encoded.pieces if isinstance(encoded, Pieces) else []
    assert sum(each is LARGE for each in pieces) == (count if count == 64 else 0)


def test_a_part_that_cannot_travel_is_named() -> None:
    """As it would be without large bytes beside it."""
    with pytest.raises(CannotTravel, match=r"value\['b'\]"):
        encode_pieces({"a": encode_pieces([LARGE]), "b": object()})
