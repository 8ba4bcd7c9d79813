"""How much memory records take, roughly."""

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.messages.data import estimate_bytes
from gearpy.messages.table import Table

BIG = "x" * 100_000
Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - the plain form is a record, too


@dataclass
class Plain:
    text: str


@dataclass(slots=True)
class Slotted:
    text: str


@dataclass(slots=True)
class Longer(Slotted):
    number: int = 0


@pytest.mark.parametrize(
    "value",
    [
        BIG,
        BIG.encode(),
        [BIG],
        (BIG,),
        {BIG},
        frozenset({BIG}),
        {"key": BIG},
        {BIG: 1},
        {"deep": [{"deeper": BIG}]},
        Pair(1, BIG),
        Plain(BIG),
        Slotted(BIG),
        Longer(BIG),
    ],
    ids=iter(range(13)),
)
def test_big_content_is_seen(value: Any) -> None:
    assert len(BIG) <= estimate_bytes([value]) < 2 * len(BIG)


def test_batch_is_the_multiple_of_its_samples() -> None:
    """Touching all records would cost more than sending them."""
    one = estimate_bytes(["abc"])

    assert estimate_bytes(["abc"] * 1000) == 1000 * one


def test_table_is_as_large_as_its_columns() -> None:
    table = Table(pa.record_batch({"n": pa.array(range(100), pa.int32()), "z": pa.nulls(100)}))

    assert estimate_bytes(table) == 100 * (4 + 8)
    assert estimate_bytes(table[10:20]) == 10 * (4 + 8)
    assert estimate_bytes(Table(pa.record_batch({"z": pa.nulls(1)}))) > 0


VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.tuples(inner) | st.dictionaries(st.text(), inner)
    ),
    max_leaves=20,
)


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_estimate_is_positive_for_any_records(values: list[Any]) -> None:
    """Invariant: no batch with records is free, so a window always fills at last."""
    assert estimate_bytes(values) > 0
