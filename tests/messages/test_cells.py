"""Columns become values as those of `to_pylist`, which takes longer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.messages.table import cells_of

_MOMENTS = st.sampled_from(
    [
        *(pa.timestamp(unit) for unit in ("s", "ms", "us")),
        *(pa.timestamp("us", zone) for zone in ("UTC", "Europe/Berlin", "+05:30", "Asia/Tokyo")),
        *(pa.timestamp("ms", "America/New_York"), pa.timestamp("s", "UTC")),
        *(pa.date32(), pa.date64(), pa.duration("s"), pa.duration("ms"), pa.duration("us")),
        pa.time64("us"),
    ]
)
_PLAIN = st.sampled_from(
    [pa.int64(), pa.uint8(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.null()]
)


def _nested(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        kinds.map(pa.list_)
        | kinds.map(pa.large_list)
        | kinds.map(lambda kind: kind if pa.types.is_dictionary(kind) else pa.list_(kind, 2))
        | kinds.map(lambda kind: pa.map_(pa.string(), kind))
        | st.lists(kinds, max_size=3).map(
            lambda kinds: pa.struct([(f"f{at}", kind) for at, kind in enumerate(kinds)])
        )
        | st.just(pa.dictionary(pa.int32(), pa.string()))
    )


_TYPES = st.recursive(_MOMENTS | _PLAIN, _nested, max_leaves=4)
#: About the hour that Berlin has twice, far away, and any.
_COUNTS = (
    st.integers(1_761_436_800, 1_761_447_600)
    | st.sampled_from([-62_135_596_800, 253_402_300_799, -1, 0])
    | st.integers(-(1 << 33), 1 << 33)
)


def _values(kind: Any) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any]
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        per_s = {"s": 1, "ms": 1000, "us": 1_000_000}[kind.unit]
        found = _COUNTS.map(lambda count: count * per_s)
    elif pa.types.is_date(kind):
        found = st.dates()
    elif pa.types.is_time(kind):
        found = st.times()
    elif pa.types.is_dictionary(kind):
        found = _values(kind.value_type)
    elif pa.types.is_map(kind):
        found = st.dictionaries(st.text("ab"), _values(kind.item_type), max_size=2).map(
            lambda cells: list(cells.items())
        )
    elif pa.types.is_fixed_size_list(kind):
        found = st.lists(_values(kind.value_type), min_size=2, max_size=2)
    elif pa.types.is_struct(kind):
        found = st.fixed_dictionaries({field.name: _values(field.type) for field in kind})
    elif pa.types.is_nested(kind):
        found = st.lists(_values(kind.value_type), max_size=3)
    elif pa.types.is_null(kind):
        return st.none()
    elif pa.types.is_string(kind):
        found = st.text(max_size=3)
    elif pa.types.is_binary(kind):
        found = st.binary(max_size=3)
    else:
        found = st.booleans() if pa.types.is_boolean(kind) else st.integers(0, 255)
    return found | st.none()


def _shown(value: Any) -> Any:
    """Return a value with all that equality does not see."""
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(_shown, value))
    if isinstance(value, datetime):
        return repr(value), value.fold, type(value.tzinfo)
    return type(value), value


@given(data=st.data(), kind=_TYPES)
def test_cells_are_those_of_arrow(data: st.DataObject, kind: Any) -> None:
    values = data.draw(st.lists(_values(kind), max_size=5))
    column = pa.array(values, kind)
    start = data.draw(st.integers(0, len(values)))
    column = column.slice(start, data.draw(st.none() | st.integers(0, 4)))
    try:
        expected = column.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError) as error:
        with pytest.raises((type(error), OverflowError)):
            cells_of(column)
        return

    assert _shown(cells_of(column)) == _shown(expected)


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.date32()])
def test_what_python_does_not_have_is_refused_as_by_arrow(kind: Any) -> None:
    column = pa.array([None, (1 << 31) - 1 if kind == pa.date32() else 1 << 62]).cast(
        pa.int32() if kind == pa.date32() else pa.int64()
    )

    with pytest.raises((ValueError, OverflowError)):
        cells_of(column.view(kind))


def test_the_first_and_the_last_moment_are_known() -> None:
    ends = [each.replace(tzinfo=UTC) for each in (datetime.min, datetime.max)]  # noqa: DTZ901
    spans = [timedelta(days=days) for days in (-999_999_999, 999_999_999)]

    assert cells_of(pa.array(ends, pa.timestamp("us", "UTC"))) == ends
    assert cells_of(pa.array(spans, pa.duration("s"))) == spans


def test_few_values_of_many_cells() -> None:
    """Of those that NumPy makes, too; and none of them is a value as well."""
    days = pa.array([datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)] + [None])
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 2, 1]), days)

    assert cells_of(column) == column.to_pylist()
