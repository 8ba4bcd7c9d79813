"""Values with large bytes: the same as other values, byte for byte."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import CannotTravel
from gearpy.wire.values.payload import decode_value, encode_value
from gearpy.wire.values.pieces import Pieces, Scattered, encode_pieces, joined

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


@given(value=VALUES)
def test_pieces_are_the_bytes_that_there_would_be(value: Any) -> None:
    assert joined(encode_pieces(value)) == encode_value(value)


@given(inner=VALUES, outer=VALUES)
def test_pieces_stand_for_bytes_in_another_value(inner: Any, outer: Any) -> None:
    encoded = encode_pieces(inner)
    found = decode_value(joined(encode_pieces([outer, {"inner": encoded}])))
    assert found == [outer, {"inner": encode_value(inner)}]


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ([LARGE] * 64, 64),
        ([LARGE] * 65, 65),
        ([LARGE, *range(64), LARGE], 2),
        ([0, *[LARGE] * 64], 0),
        (dict.fromkeys(range(65), LARGE), 0),
        ([*[LARGE] * 2, *[0] * 65_534], 0),
    ],
    ids=["few", "many", "many with others", "late in many", "a large dict", "too many"],
)
def test_large_bytes_are_not_copied_before_they_are_joined(kept: Any, found: int) -> None:
    """But in containers of so many that to look through them would cost more."""
    value = {"kept": kept}
    encoded = encode_pieces(value)
    pieces = encoded.pieces if isinstance(encoded, Pieces) else []
    assert sum(each is LARGE for each in pieces) == found
    assert joined(encoded) == encode_value(value)


def test_a_part_that_cannot_travel_is_named() -> None:
    """As it would be without large bytes beside it."""
    with pytest.raises(CannotTravel, match=r"value\['b'\]"):
        encode_pieces({"a": encode_pieces([LARGE]), "b": object()})


@pytest.mark.parametrize("others", [1, 65], ids=["few", "many"])
@pytest.mark.parametrize("size", [0, 15, 16, 255, 256, 65_535, 65_536])
def test_a_scattered_list_is_encoded_as_the_list(others: int, size: int) -> None:
    items: list[bytes | None] = [bytes(size), None, b"", b"cde"]
    lists: list[list[bytes | None]] = [items, [b"ab"] * size, [b"ab", b""]]
    rest: dict[Any, Any] = dict.fromkeys(range(others), "x")
    for some in lists:
        encoded = encode_pieces({"kept": Scattered(some), **rest})

        assert joined(encoded) == encode_value({"kept": some, **rest})
        assert isinstance(encoded, Pieces) == (others == 1)
        assert len(encoded) == len(joined(encoded))
