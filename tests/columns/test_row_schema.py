"""From rows to columns and back, see `gearpy.columns.row_schema`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.row_schema import RowSchema, as_table, inferred_schema, row_schema_of
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.table import Table


@dataclass(frozen=True)
class Visit:
    user: str
    at: datetime
    seconds: float | None
    pages: list[str]


class Pair(NamedTuple):
    left: int
    right: str | None


@dataclass(kw_only=True)
class Named:
    x: int
    y: str


class Mapped(TypedDict):
    x: int


@dataclass
class Bare:
    """A row without columns."""


AWARE = st.datetimes(datetime(1980, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
FLOATS = st.floats(allow_nan=False)
ROWS: st.SearchStrategy[tuple[Any, list[Any]]] = st.one_of(
    st.tuples(
        st.just(Visit),
        st.lists(st.builds(Visit, st.text(), AWARE, st.none() | FLOATS, st.lists(st.text()))),
    ),
    st.tuples(
        st.just(Pair),
        st.lists(st.builds(Pair, st.integers(-(2**63), 2**63 - 1), st.none() | st.text())),
    ),
    st.tuples(
        st.just(Named), st.lists(st.builds(Named, x=st.integers(-9, 9), y=st.text(max_size=3)))
    ),
    st.tuples(st.just(Mapped), st.lists(st.fixed_dictionaries({"x": st.integers(0, 9)}))),
    st.tuples(st.just(Bare), st.lists(st.builds(Bare))),
    st.tuples(
        st.just({"a": int, "b": dict[str, int] | None}),
        st.lists(
            st.fixed_dictionaries(
                {
                    "a": st.integers(0, 9),
                    "b": st.none() | st.dictionaries(st.text(max_size=2), st.integers(0, 9)),
                }
            )
        ),
    ),
)


@given(ROWS)
def test_rows_come_back_equal(drawn: tuple[Any, list[Any]]) -> None:
    kind, rows = drawn
    schema = row_schema_of(kind)

    back = schema.rows(schema.table(rows))

    assert back == rows
    assert [type(row) for row in back] == [type(row) for row in rows]


def test_types_are_also_told_by_name() -> None:
    named = row_schema_of({"item": "string", "price": "int64", "at": "timestamp[us]"})
    meant = row_schema_of({"item": str, "price": pa.int64(), "at": pa.timestamp("us")})

    assert named.arrow == meant.arrow
    with pytest.raises(ConfigError, match=r"'price'.*'integer': .* such as 'string', 'int64'"):
        row_schema_of({"price": "integer"})


def test_schema_of_arrow_is_taken_as_it_is() -> None:
    arrow = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])

    schema = row_schema_of(arrow)

    assert schema == RowSchema(arrow)
    assert row_schema_of(schema) is schema
    assert schema.rows(schema.table([{"a": 1}])) == [{"a": 1, "b": None}]


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (5, "5 is no schema: give a pyarrow.Schema"),
        ("a", "'a' is no schema"),
        (int, "int is no schema: it is neither a dataclass"),
        ({"a": object}, "column 'a': there is no column type"),
        (pa.schema([("a", pa.int64()), ("a", pa.int64())]), "two columns 'a'"),
    ],
)
def test_what_is_no_schema_is_refused(what: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        row_schema_of(what)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ({"a": 1.5}, "column 'a' is int64, which 1.5 does not fit: 1.5 is no whole number"),
        ({"a": None}, "column 'a' .* None does not fit: a value is missing or None"),
        ({}, "column 'a' .* None does not fit: a value is missing or None"),
        ({"a": 2**70}, "column 'a' is int64, which 1180591620717411303424 does not fit"),
        ({"a": 1, "c": 2}, "field 'c' is not in the schema, which has a, b: leave it out"),
        ({"a": 1, "b": "\ud800"}, "column 'b' is string, which .* does not fit"),
        (5, "int is no dict: map it to one, or give the class of the rows"),
    ],
)
def test_dict_that_does_not_fit_is_named(bad: Any, text: str) -> None:
    schema = row_schema_of({"a": int, "b": str | None})

    with pytest.raises(OperatorError, match=text) as caught:
        schema.table([{"a": 1}, bad])

    assert caught.value.record == repr(bad)


_TEXT = pa.field("item", pa.string(), nullable=False)
_NESTED: dict[str, tuple[pa.DataType, Any, Any]] = {
    "list": (pa.list_(_TEXT), ["x"], [None]),
    "list of lists": (pa.list_(pa.list_(_TEXT)), [None, ["x"]], [["x"], ["x", None]]),
    "list of some": (pa.list_(_TEXT, 2), ["x", "y"], ["x", None]),
    "record": (pa.struct([_TEXT]), {"item": "x"}, {"item": None}),
    "field left out": (pa.struct([_TEXT]), {"item": "x"}, {}),
    "dict": (pa.map_(pa.int64(), _TEXT), {1: "x"}, {1: None}),
    "records in a list": (pa.list_(pa.struct([_TEXT])), [{"item": "x"}, None], [{"item": None}]),
}


@pytest.mark.parametrize("name", _NESTED)
def test_a_value_that_is_missing_inside_is_named(name: str) -> None:
    kind, good, bad = _NESTED[name]
    schema = RowSchema(pa.schema([pa.field("a", kind)]))

    assert schema.table([{"a": good}, {"a": None}]).num_rows == 2
    with pytest.raises(OperatorError, match=r"column 'a' .* is missing or None, .* make the type"):
        schema.table([{"a": None}, {"a": good}, {"a": bad}])


def test_instance_that_does_not_fit_is_named() -> None:
    schema = row_schema_of(Pair)

    with pytest.raises(OperatorError, match="column 'left' is int64, which 'x' does not fit"):
        schema.table([Pair("x", None)])  # type: ignore[arg-type] # that is the test
    with pytest.raises(OperatorError, match="int has no field 'left': rows are Pair"):
        schema.table([Pair(1, None), 5])


def test_columns_are_found_by_name() -> None:
    schema = row_schema_of(Pair)
    batch = pa.record_batch({"more": [1.5], "right": ["a"], "left": [1]})

    assert schema.rows(batch) == [Pair(1, "a")]
    with pytest.raises(OperatorError, match="no column 'right' for Pair: there are more, left"):
        schema.rows(batch.select(["more", "left"]))


def test_schema_is_found_in_the_rows() -> None:
    rows = [{"a": 1, "b": None}, {"a": 2, "c": "x"}]

    schema = inferred_schema(rows)

    assert schema.arrow == pa.schema({"a": pa.int64(), "b": pa.null(), "c": pa.string()})
    assert as_table(rows)[0] == {"a": 1, "b": None, "c": None}
    assert inferred_schema([Pair(1, "a")]) == row_schema_of(Pair)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([5], "int has no fields: map it to a dict, dataclass or NamedTuple"),
        ([{"a": 1}, 5], "int has no fields"),
        ([{"a": 1}, {"a": "x"}], "column 'a': values of one type are needed"),
    ],
)
def test_rows_without_a_common_schema_are_refused(rows: list[Any], text: str) -> None:
    with pytest.raises(OperatorError, match=text):
        inferred_schema(rows)


def test_table_is_a_table() -> None:
    table = Table(pa.record_batch({"a": [1]}))

    assert as_table(table, row_schema_of({"b": str})) is table
    assert as_table([{"a": 1}], row_schema_of({"a": int})) == Table(
        pa.RecordBatch.from_pylist([{"a": 1}], schema=row_schema_of({"a": int}).arrow)
    )
