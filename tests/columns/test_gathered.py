"""Cells that come few at a time: what is kept is what Arrow makes of each alone."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.log_columns import TEXT_MAX, GatheredCells

KINDS = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.decimal128(10, 2),
    pa.list_(pa.int64()),
    pa.struct({"a": pa.int64()}),
)
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)


class Text(str):
    __slots__ = ()


def cells_of_any_kind() -> st.SearchStrategy[Any]:
    """Return values that fit some column, nearly fit one, or fit none."""
    bits = st.sampled_from([7, 8, 15, 16, 31, 32, 53, 54, 63, 64])
    edges = st.builds(
        lambda n, sign, d: sign * (1 << n) + d, bits, st.sampled_from([1, -1]), st.integers(-1, 1)
    )
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        edges,
        st.floats(),
        st.text(st.characters(codec=None), max_size=3),
        st.sampled_from(["\ud800", "ü", Text("a"), b"a", [1], {"a": 1}, Decimal("1.5")]),
        st.dates(),
        st.datetimes(),
        st.datetimes(timezones=st.just(UTC)),
        st.just(MOMENT.astimezone(timezone(timedelta(hours=1)))),
    )


def gathered(kind: Any) -> GatheredCells:
    return GatheredCells(pa.schema({"a": kind}))


@given(st.sampled_from(KINDS), st.lists(st.lists(cells_of_any_kind(), min_size=1, max_size=3)))
def test_what_is_kept_becomes_what_it_would_have_become_alone(
    kind: Any, calls: list[list[Any]]
) -> None:
    cells = gathered(kind)
    kept = [call for call in calls if cells.add({"a": call}, len(call))]

    alone = [pa.array(call, kind) for call in kept]

    assert cells.rows == sum(map(len, kept))
    together = pa.array(cells.take()["a"], kind)
    assert str(together) == str(pa.concat_arrays([pa.array([], kind), *alone]))
    assert together.null_count == sum(each.null_count for each in alone)


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (pa.bool_(), [True, None]),
        (pa.int8(), [-128, 127]),
        (pa.int16(), [-(1 << 15), (1 << 15) - 1]),
        (pa.int32(), [-(1 << 31), (1 << 31) - 1]),
        (pa.int64(), [-(1 << 63), (1 << 63) - 1, None]),
        (pa.float64(), [0.5, float("nan"), 1 << 53, None]),
        (pa.string(), ["a", "ü", "x" * TEXT_MAX, None]),
        (pa.binary(), [b"a", b"x" * TEXT_MAX, None]),
        (pa.date32(), [date(2026, 1, 2), None]),
        (pa.timestamp("us"), [datetime(2026, 1, 2), None]),  # noqa: DTZ001 - that is the point
        (pa.timestamp("us", "UTC"), [MOMENT, None]),
    ],
)
def test_usual_cells_are_kept(kind: Any, cells: list[Any]) -> None:
    """Else small batches would be slow, and nobody would notice."""
    assert gathered(kind).add({"a": cells}, len(cells))


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        (pa.bool_(), 1),
        (pa.int8(), 128),
        (pa.int64(), 1 << 63),
        (pa.int64(), True),
        (pa.int64(), 1.0),
        (pa.float64(), (1 << 53) + 1),
        (pa.float64(), Decimal(1)),
        (pa.string(), "\ud800"),
        (pa.string(), "x" * (TEXT_MAX + 1)),
        (pa.string(), Text("a")),
        (pa.binary(), b"x" * (TEXT_MAX + 1)),
        (pa.binary(), bytearray(b"a")),
        (pa.date32(), MOMENT),
        (pa.timestamp("us", "UTC"), datetime(2026, 1, 2)),  # noqa: DTZ001 - that is the point
        (pa.timestamp("us", "UTC"), 5),
        (pa.timestamp("us"), MOMENT),
        (pa.decimal128(10, 2), Decimal(1)),
        (pa.list_(pa.int64()), [1]),
    ],
)
def test_a_cell_that_may_not_fit_or_may_change_is_not_kept(kind: Any, cell: Any) -> None:
    cells = GatheredCells(pa.schema({"first": pa.int64(), "a": kind}))

    assert not cells.add({"first": [1, 2], "a": [None, cell]}, 2)

    assert cells.rows == 0
    assert cells.take() == {"first": [], "a": []}


def test_microseconds_are_kept_where_it_is_said_that_they_are_some() -> None:
    """The log makes them of ms; a number of a record may be anything."""
    cells = GatheredCells(pa.schema({"at": pa.timestamp("us", "UTC"), "n": pa.int64()}))

    assert cells.add({"at": [5, None], "n": [1, 2]}, 2, moments=("at",))
    assert not cells.add({"at": [1 << 63], "n": [1]}, 1, moments=("at",))
    assert not cells.add({"at": [MOMENT], "n": [1]}, 1, moments=("at",))
    assert not cells.add({"at": [5], "n": [1]}, 1)

    assert cells.take() == {"at": [5, None], "n": [1, 2]}
