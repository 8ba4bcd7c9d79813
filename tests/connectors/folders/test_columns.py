"""Records as Arrow columns: what fits is kept whole, what does not is refused by name."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.log_columns import LogColumns
from gearpy.connectors.folders.columns import ColumnsOf
from gearpy.errors import OperatorError
from gearpy.task.api.window_result import JoinResult, WindowResult


@dataclass
class Sale:
    item: str
    at: datetime


class Point(NamedTuple):
    x: int
    sale: Sale | None


class Named(NamedTuple):
    x: int


@dataclass
class Other:
    x: int


def rows_of(values: list[Any], schema: pa.Schema | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ColumnsOf("op", schema).batch_of(values).to_pylist()
    return found


def refusal(values: list[Any], schema: pa.Schema | None = None) -> OperatorError:
    with pytest.raises(OperatorError) as caught:
        rows_of(values, schema)
    return caught.value


def of_type(kind: Any) -> pa.Schema:
    return pa.schema([("v", kind)])


# -- records ---------------------------------------------------------------------------------


def test_all_records_with_names_become_rows() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)

    for record, row in [
        ({"a": [1], "b": [{"c": 2}]}, {"a": [1], "b": [{"c": 2}]}),
        (Sale("tea", at), {"item": "tea", "at": at}),
        (Point(1, Sale("tea", at)), {"x": 1, "sale": {"item": "tea", "at": at}}),
        ({"p": [Point(1, None)]}, {"p": [{"x": 1, "sale": None}]}),
    ]:
        assert rows_of([record]) == [row]


def test_records_of_several_classes_share_a_schema() -> None:
    schema = pa.schema({"item": pa.string(), "x": pa.int64(), "n": pa.int64()})
    point = {"item": None, "x": 1, "n": None}

    assert rows_of([{"item": "tea"}, {"n": 2}, {"x": 1}], schema)[2] == point
    mixed = [{"x": 1}, Named(2), Other(3)]
    assert rows_of(mixed, pa.schema({"x": pa.int64()})) == [{"x": 1}, {"x": 2}, {"x": 3}]


@pytest.mark.parametrize("record", [1, "a", (1, 2, 3), [1], None, Sale])
def test_what_has_no_names_is_refused(record: Any) -> None:
    assert "has no fields: map it to a dict" in refusal([record]).cause


# -- schemas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "record"),
    [
        ([{"a": 1}, {"a": "x"}, {"a": 2}], "{'a': 'x'}"),
        ([{"a": 1}, {"a": True}], "{'a': True}"),
        ([{"a": 2**70}], f"{{'a': {2**70}}}"),
        ([{1: 1}], "{1: 1}"),
        ([{}], "{}"),
    ],
)
def test_records_without_a_common_schema_are_refused(values: list[Any], record: str) -> None:
    """The first one decides; what does not fit to it is named."""
    assert refusal(values).record == record


def test_a_truth_value_is_no_number() -> None:
    """Arrow would write it as 1.0 into a column of fractions."""
    assert refusal([{"a": 1.5}, {"a": True}]).record == "{'a': True}"


# -- what fits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (pa.int64(), 3.0, 3),
        (pa.int64(), np.int32(3), 3),
        (pa.int64(), None, None),
        (pa.float64(), 1, 1.0),
        (pa.decimal128(5, 2), Decimal("1.2"), Decimal("1.20")),
        (pa.date32(), date(2026, 1, 2), date(2026, 1, 2)),
        (pa.timestamp("s"), datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2, 3, 4, 5)),  # noqa: DTZ001
        (pa.duration("ms"), timedelta(milliseconds=3), timedelta(milliseconds=3)),
        (pa.list_(pa.int64()), [1, None], [1, None]),
        (pa.map_(pa.string(), pa.int64()), {"a": 1}, [("a", 1)]),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 1)]),
        (pa.struct([("x", pa.int64()), ("y", pa.string())]), {"x": 1}, {"x": 1, "y": None}),
        (pa.dictionary(pa.int8(), pa.string()), "a", "a"),
    ],
)
def test_a_value_that_fits_is_kept(kind: Any, value: Any, kept: Any) -> None:
    assert rows_of([{"v": value}], of_type(kind)) == [{"v": kept}]


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"i": st.integers(-(2**63), 2**63 - 1), "t": st.text(), "b": st.binary()},
            optional={"f": st.floats(allow_nan=False), "l": st.lists(st.booleans())},
        ),
        max_size=5,
    )
)
def test_rows_come_back_as_they_were(rows: list[dict[str, Any]]) -> None:
    schema = pa.schema(
        {
            "i": pa.int64(),
            "t": pa.string(),
            "b": pa.binary(),
            "f": pa.float64(),
            "l": pa.list_(pa.bool_()),
        }
    )

    assert rows_of(rows, schema) == [{"f": None, "l": None, **row} for row in rows]


# -- what does not ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "cause"),
    [
        (pa.int64(), 1.5, "1.5 is no whole number"),
        (pa.int64(), Decimal("1.5"), "is no whole number"),
        (pa.int64(), np.float32(1.5), "is no whole number"),
        (pa.int64(), float("nan"), "nan is no whole number"),
        (pa.int64(), float("inf"), "inf is no whole number"),
        (pa.int64(), Decimal("sNaN"), "field 'v' is int64"),
        (pa.int64(), "1", "of type str, not a whole number"),
        (pa.int64(), True, "of type bool, not a whole number"),
        (pa.uint8(), 300, "too large"),
        (pa.uint8(), -1, "negative"),
        (pa.string(), 1, "field 'v' is string"),
        (pa.string(), "\ud800", "half a character"),
        (pa.date32(), datetime(2026, 1, 2), "has more than the date"),  # noqa: DTZ001
        (pa.timestamp("us"), 1.5, "a number is no time"),
        (pa.decimal128(5, 1), Decimal("1.25"), "or 1 behind it"),
        (pa.list_(pa.int64()), [1, 2.5], "2.5 is no whole number"),
        (pa.map_(pa.string(), pa.int64()), {"a": 2.5}, "2.5 is no whole number"),
        (pa.struct([("x", pa.int64())]), {"x": 2.5}, "2.5 is no whole number"),
        (pa.struct([("x", pa.int64())]), {"y": 2}, "field 'y' is not in the schema"),
        (pa.list_(pa.struct([("x", pa.date32())])), [{"x": datetime(2026, 1, 2)}], "the date"),  # noqa: DTZ001
    ],
)
def test_a_value_that_does_not_fit_is_refused(kind: Any, value: Any, cause: str) -> None:
    """Also where pyarrow would take a part of it without a word; the record is named."""
    error = refusal([{"v": None}, {"v": value}], of_type(kind))

    assert cause in error.cause
    assert error.record == repr({"v": value})


def test_a_field_that_is_not_in_the_schema_is_refused() -> None:
    error = refusal([{"v": 1}, {"v": 1, "w": 2}], of_type(pa.int64()))

    assert "field 'w' is not in the schema, which has v: leave it out" in error.cause
    assert error.record == "{'v': 1, 'w': 2}"


@pytest.mark.parametrize("record", [{}, {"v": None}])
def test_a_field_that_must_be_there_is_asked_for(record: dict[str, Any]) -> None:
    schema = pa.schema([pa.field("v", pa.int64(), nullable=False)])

    error = refusal([{"v": 1}, record], schema)

    assert "field 'v' is int64: a value is missing or None" in error.cause
    assert error.record == repr(record)


# -- results of windows and joins


NOON_MS = 1_767_268_800_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def a_result(key: Any, value: Any) -> WindowResult[Any, Any]:
    return WindowResult(key, value, NOON_MS, NOON_MS + 60_000)


def test_results_of_windows_have_the_columns_of_window_logs() -> None:
    """One way for all files: times are times, and the fields of a value are columns."""
    results = [a_result("ann", {"n": 2, "total": 0.5}), a_result("bob", {"n": 1, "total": 2.0})]
    columns = ColumnsOf("op", None)

    batch = columns.batch_of(results)

    assert batch.schema == LogColumns("log").batch_of(results).schema == columns.schema
    assert batch.to_pylist()[0] == {
        "window_start": NOON,
        "window_end": NOON + MINUTE,
        "key": "ann",
        "n": 2,
        "total": 0.5,
        "firing": 0,
        "timing": "on-time",
        "retracts": False,
    }


def test_results_of_joins_have_the_fields_of_both_sides() -> None:
    joined: JoinResult[str, dict[str, int], dict[str, int] | None]
    joined = JoinResult("ann", {"id": 1}, None, NOON_MS, NOON_MS + 1)
    (row,) = rows_of([joined, joined._replace(right={"id": 2})])[1:]
    times = {"window_start": NOON, "window_end": NOON + timedelta(milliseconds=1)}
    assert row == times | {"key": "ann", "left_id": 1, "right_id": 2}


def test_a_schema_of_results_names_keys_and_values() -> None:
    schema = pa.schema({"key": pa.string(), "value": pa.int32()})
    (row,) = rows_of([a_result("ann", 2)], schema)
    assert list(row) == [
        "window_start",
        "window_end",
        *schema.names,
        "firing",
        "timing",
        "retracts",
    ]
    assert "is int32" in refusal([a_result("ann", "two")], schema).cause


def test_a_schema_with_the_fields_of_results_is_kept_to() -> None:
    kinds = {"key": pa.string(), "value": pa.int64(), "start": pa.int64(), "end": pa.int64()}
    ends = {"firing": pa.int64(), "timing": pa.string(), "retracts": pa.bool_()}
    schema = pa.schema(kinds | ends)
    restored = ColumnsOf("op", None)
    restored.restore(schema.serialize().to_pybytes())

    result = a_result("ann", 2)
    rows = [*rows_of([result], schema), *restored.batch_of([result]).to_pylist()]

    assert rows == [result._asdict()] * 2


def test_results_keep_to_the_schema_of_earlier_files() -> None:
    before = ColumnsOf("op", None)
    before.batch_of([a_result("ann", {"n": 1, "best": 0.5})])
    after = ColumnsOf("op", None)
    after.restore(before.snapshot())

    batch = after.batch_of([a_result("bob", {"n": 2, "best": None})])

    assert batch.schema == before.schema
