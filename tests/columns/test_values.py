"""Which values a column keeps, see `gearpy.columns.values`."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.values import cast_column, check_cast, check_column, plain_cells

EAST = timezone(timedelta(hours=2))


GOOD: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [1, None]),
    (pa.int64(), [2.0, Decimal(3)]),
    (pa.float64(), [1, 1.5]),
    (pa.string(), ["a"]),
    (pa.large_string(), ["a"]),
    (pa.binary(), [b"a", bytearray(b"b")]),
    (pa.bool_(), [True]),
    (pa.date32(), [date(2020, 1, 1)]),
    (pa.time64("us"), [time(1, 2)]),
    (pa.timestamp("us"), [datetime(2020, 1, 1)]),  # noqa: DTZ001 - that is the test
    (pa.timestamp("us", tz="UTC"), [datetime(2020, 1, 1, tzinfo=UTC)]),
    (pa.duration("us"), [timedelta(1)]),
    (pa.list_(pa.int64()), [[1], [], None]),
    (pa.map_(pa.string(), pa.int64()), [{"a": 1}, [("b", 2)]]),
    (pa.struct({"x": pa.int64()}), [{"x": 1}, {}]),
    (pa.decimal128(5, 2), [Decimal("1.50")]),
]
BAD: list[tuple[pa.DataType, Any, str]] = [
    (pa.int64(), 1.5, "1.5 is no whole number"),
    (pa.int64(), Decimal("1.5"), "is no whole number"),
    (pa.int64(), True, "True is of type bool, not a whole number"),
    (pa.int64(), "1", "'1' is of type str, not a whole number"),
    (pa.float64(), True, "True is of type bool, not a number"),
    (pa.string(), b"a", "b'a' is of type bytes, not text"),
    (pa.binary(), "a", "'a' is of type str, not bytes"),
    (pa.date32(), datetime(2020, 1, 1, tzinfo=UTC), "is of type datetime, not a date"),
    (pa.date32(), 5, "5 is of type int, not a date"),
    (pa.time64("us"), time(1, tzinfo=UTC), "has a time zone"),
    (
        pa.timestamp("us"),
        datetime(2020, 1, 1, tzinfo=EAST),
        "has a time zone, and the column has none",
    ),
    (pa.timestamp("us", tz="UTC"), datetime(2020, 1, 1), "has no time zone"),  # noqa: DTZ001
    (pa.timestamp("us"), 5, "5 is of type int, not a datetime"),
    (pa.duration("us"), 5, "5 is of type int, not a timedelta"),
    (pa.list_(pa.int64()), [1.5], "1.5 is no whole number"),
    (pa.list_(pa.int64()), (1,), r"\(1,\) is of type tuple, not a list"),
    (pa.map_(pa.string(), pa.int64()), {"a": 1.5}, "1.5 is no whole number"),
    (pa.map_(pa.string(), pa.int64()), {b"a": 1}, "not text"),
    (pa.struct({"x": pa.int64()}), {"x": 1.5}, "1.5 is no whole number"),
    (pa.struct({"x": pa.int64()}), {"y": 1}, "field 'y' is not in the schema, which has x"),
    (pa.struct({"x": pa.int64()}), 5, "5 is of type int, not a dict"),
    (pa.struct({"x": pa.int64()}), (1,), r"\(1,\) is of type tuple, not a dict"),
    (pa.list_(pa.string()), "ab", "'ab' is of type str, not a list"),
    (pa.list_(pa.int64()), {1}, "is of type set, not a list: a set has no order"),
    (pa.map_(pa.string(), pa.int64()), (("a", 1),), "is of type tuple, not a dict"),
    (pa.timestamp("us", tz="UTC"), 1_700_000_000_000, "a number is no time .* so map it, ms as in"),
    (pa.timestamp("us"), np.datetime64("2020-01-01"), "is of type datetime64, not a datetime"),
    (pa.timestamp("ms"), datetime(2020, 1, 1, microsecond=1), "is finer than ms: round it"),  # noqa: DTZ001
    (pa.timestamp("us"), pd.Timestamp(1), "is finer than us: round it"),
    (pa.time32("s"), time(1, microsecond=1), "is finer than s"),
    (pa.duration("ms"), timedelta(microseconds=1), "is finer than ms"),
    (pa.float32(), 1e300, "too large for float, where it is infinite"),
    (pa.float16(), 70_000.0, "too large for halffloat"),
    (pa.float32(), True, "True is of type bool, not a number"),
    (pa.string_view(), b"a", "not text: decode it"),
    (pa.binary(1), "a", "not bytes: encode it"),
    (pa.dictionary(pa.int8(), pa.string()), b"a", "b'a' is of type bytes, not text"),
]
#: Values of all kinds, most of which fit into few columns.
ODD: list[Any] = [
    *(
        True,
        0,
        2**53 + 1,
        1.5,
        2.0,
        0.1,
        float("inf"),
        Decimal("1.5"),
        np.int32(3),
        np.float32(0.5),
    ),
    *("x", "", b"x", bytearray(b"x"), memoryview(b"x")),
    *(date(2020, 1, 1), time(1, 2, 3, 4), time(1, tzinfo=UTC), timedelta(microseconds=1)),
    *(datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=zone) for zone in (None, UTC, EAST)),
    *([], [1], ["x"], (), (1,), {1}, {}, {"x": 1}, {"x": "y"}, [("x", 1)], np.array([1])),
    *(pd.Timestamp(1), np.datetime64("2020-01-01"), object()),
]
KINDS: list[pa.DataType] = list(dict.fromkeys([kind for kind, *_ in [*GOOD, *BAD]]))


@pytest.mark.parametrize(("kind", "values"), GOOD)
def test_value_that_a_column_keeps_passes(kind: pa.DataType, values: list[Any]) -> None:
    check_column(kind, values)

    kept = pa.array(values, kind).to_pylist(maps_as_pydicts="strict")
    assert kept[0] == values[0]


@pytest.mark.parametrize(("kind", "value", "text"), BAD)
def test_value_that_a_column_would_change_is_refused(
    kind: pa.DataType, value: Any, text: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        check_column(kind, [None, value])


@given(value=st.sampled_from(ODD), kind=st.sampled_from(KINDS))
def test_what_passes_comes_back_equal(value: Any, kind: pa.DataType) -> None:
    try:
        check_column(kind, [value])
        array = pa.array([value], kind)
    except (TypeError, ValueError, ArithmeticError, pa.ArrowException):
        return

    (kept,) = array.to_pylist(maps_as_pydicts="strict")
    if pa.types.is_struct(kind):
        value = {"x": None, **value}
    if pa.types.is_map(kind):
        value = dict(value)
    if kind in (pa.float16(), pa.float32()):
        assert kept == pytest.approx(value, rel=1e-3)  # The nearest number that it has.
    else:
        assert kept == value


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.uint8(), pa.int16()),
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.int64()),
        (pa.int64(), pa.decimal128(20, 0)),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.null(), pa.timestamp("us")),
        (pa.null(), pa.list_(pa.int64())),
        (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.list_(pa.int32()), pa.large_list(pa.int64())),
        (pa.struct({"x": pa.int8()}), pa.struct({"x": pa.int64(), "y": pa.string()})),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64())),
    ],
)
def test_a_column_of_the_same_kind_of_values_passes(given: pa.DataType, kind: pa.DataType) -> None:
    check_cast(given, kind)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (pa.int64(), pa.timestamp("us"), "has no times as long as nobody knows its unit: cast it"),
        (pa.string(), pa.timestamp("us"), "has no times"),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "has no time zone"),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), "has a time zone"),
        (pa.timestamp("us"), pa.int64(), "has other values than one of int64: cast it before"),
        (pa.timestamp("us"), pa.date32(), "has other values"),
        (pa.int64(), pa.string(), "has other values"),
        (pa.string(), pa.int64(), "has other values"),
        (pa.binary(), pa.string(), "has other values"),
        (pa.bool_(), pa.int64(), "has other values"),
        (pa.decimal128(5, 2), pa.float64(), "has other values"),
        (pa.int64(), pa.list_(pa.int64()), "has other values"),
        (pa.list_(pa.int64()), pa.list_(pa.timestamp("us")), "has no times"),
        (pa.struct({"y": pa.int8()}), pa.struct({"x": pa.int8()}), "has 'y', which is not in"),
    ],
)
def test_a_column_of_other_values_is_refused(
    given: pa.DataType, kind: pa.DataType, text: str
) -> None:
    """Also where Arrow would cast it."""
    with pytest.raises(ValueError, match=text):
        check_cast(given, kind)


def test_a_cast_keeps_all_or_nothing() -> None:
    assert cast_column(pa.array([1, None], pa.int8()), pa.int64()).to_pylist() == [1, None]
    with pytest.raises(pa.ArrowInvalid):
        cast_column(pa.array([1.5]), pa.int64())
    with pytest.raises(pa.ArrowInvalid):
        cast_column(pa.array([1], pa.timestamp("ns")), pa.timestamp("us"))


def test_records_inside_of_values_become_dicts() -> None:
    assert plain_cells([1, "x"]) == [1, "x"]
    assert plain_cells([{"a": (1, [{"b": 2}])}]) == [{"a": (1, [{"b": 2}])}]
