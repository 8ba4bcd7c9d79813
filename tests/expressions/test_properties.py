"""Random expressions over random records: columns, rows and DuckDB agree."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.expressions.binding import ROW_ERRORS
from gearpy.expressions.nodes import CallNode, ColumnNode, LiteralNode, Node

SCHEMA: Final = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("s", pa.string()),
    ]
)
EXTREMES: Final = [-(1 << 63), -(1 << 53) - 1, -1, 0, 1, 7, (1 << 53) + 1, (1 << 63) - 1]
INTS: Final = st.none() | st.sampled_from(EXTREMES) | st.integers(-9, 9)
FLOATS: Final = st.none() | st.sampled_from([0.0, -0.0, 0.5, -2.5, 1e300, math.inf, -math.inf])
TEXTS: Final = st.none() | st.sampled_from(["", "a", "Ada", "aä", "zz%", "ß"])
#: Makes two expressions one.
Two = Callable[[Any, Any], gp.Expr]


def tables(floats: st.SearchStrategy[Any]) -> st.SearchStrategy[pa.RecordBatch]:
    row = st.fixed_dictionaries(
        {"i": INTS, "j": INTS, "x": floats, "b": st.none() | st.booleans(), "s": TEXTS}
    )
    return st.lists(row, max_size=5).map(
        lambda rows: pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    )


def expressions(*, is_sql: bool) -> st.SearchStrategy[gp.Expr]:
    """Return expressions of any type; for SQL, of what means the same in DuckDB."""
    i, x, b, s = gp.col("i"), gp.col("x"), gp.col("b"), gp.col("s")
    ints: st.SearchStrategy[Any] = st.sampled_from([i, gp.col("j"), gp.lit(3), gp.lit(-1)])
    texts: st.SearchStrategy[Any] = st.sampled_from([s, gp.lit("a")])
    floats: st.SearchStrategy[Any] = st.sampled_from([x, gp.lit(0.5)])
    of_ints: list[Two] = [lambda a, c: a + c, lambda a, c: a - c, lambda a, c: a * c]
    of_floats: list[Two] = [*of_ints]
    if not is_sql:
        of_ints += [lambda a, c: a // c, lambda a, c: a % c, gp.greatest, gp.least]
        of_ints += [lambda a, c: a.quotient(c), lambda a, c: a.remainder(c)]
        of_floats += [lambda a, c: a / c, lambda a, c: a // c, lambda a, c: a % c, gp.greatest]
        of_floats += [lambda a, c: a.quotient(c), lambda a, c: a.remainder(c)]
    ints = st.recursive(ints, _joined(of_ints, [abs, lambda a: -a]), max_leaves=4)
    floats = st.recursive(floats, _joined(of_floats, [abs, lambda a: a.floor()]), max_leaves=4)
    texts = st.recursive(
        texts, _joined([gp.concat], [lambda a: a.str.replace("a", "bb")]), max_leaves=3
    )
    compared: list[Two] = [
        lambda a, c: a < c,
        lambda a, c: a >= c,
        lambda a, c: a == c,
        lambda a, c: a != c,
    ]
    same = st.one_of(*(st.tuples(each, each) for each in (ints, floats, texts)))
    mixed = same if is_sql else st.one_of(same, st.tuples(ints, floats), st.tuples(floats, ints))
    truths: st.SearchStrategy[Any] = st.one_of(
        st.just(b),
        st.builds(lambda two, of: of(*two), mixed, st.sampled_from(compared)),
        st.one_of(ints, floats, texts).map(lambda a: a.is_null()),
        texts.map(lambda a: a.str.contains("a")),
        ints.map(lambda a: a.is_in([1, 7])),
    )
    truths = st.recursive(
        truths, _joined([lambda a, c: a & c, lambda a, c: a | c], [lambda a: ~a]), max_leaves=4
    )
    choices = st.builds(lambda c, two: gp.when(c).then(two[0]).otherwise(two[1]), truths, same)
    filled = same.map(lambda two: gp.coalesce(*two))
    return st.one_of(ints, floats, texts, truths, choices, filled)


def _joined(two: list[Two], one: list[Callable[[Any], gp.Expr]]) -> Callable[[Any], Any]:
    return lambda parts: st.one_of(
        st.builds(lambda of, a, c: of(a, c), st.sampled_from(two), parts, parts),
        st.builds(lambda of, a: of(a), st.sampled_from(one), parts),
    )


def _plain(values: list[Any]) -> list[Any]:
    return ["NaN" if value != value else value for value in values]  # noqa: PLR0124


@given(tables(FLOATS | st.just(math.nan)), expressions(is_sql=False))
@settings(max_examples=150)
def test_columns_and_rows_agree(batch: pa.RecordBatch, expression: gp.Expr) -> None:
    function, bound = expression.row(), expression.bind(batch.schema)
    of_rows: list[Any] | None = None
    try:
        of_rows = [function(row) for row in batch.to_pylist()]
    except ROW_ERRORS:
        with pytest.raises(ROW_ERRORS):
            bound.columns(batch)
    else:
        of_columns = bound.columns(batch)
        assert of_columns.type == bound.type
        assert _plain(of_columns.to_pylist()) == _plain(of_rows)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@given(table=tables(FLOATS), expression=expressions(is_sql=True))
@settings(max_examples=60)
def test_columns_and_a_database_agree(
    database: duckdb.DuckDBPyConnection, table: pa.RecordBatch, expression: gp.Expr
) -> None:
    try:
        ours = expression.bind(table.schema).columns(table).to_pylist()
    except ROW_ERRORS:
        return
    if any(type(value) is float and math.isnan(value) for value in ours):
        return  # A database takes NaN for a number that is larger than all others.
    rows = pa.Table.from_batches([table]).append_column("n", pa.array(range(len(table))))
    database.register("rows", rows)
    try:
        found = database.execute(f"SELECT {_sql(expression.node)} FROM rows ORDER BY n").fetchall()  # noqa: S608 - made here
    except duckdb.OutOfRangeException:
        return  # It computes what is not chosen, too.
    theirs = [value for (value,) in found]
    if any(type(value) is float and math.isnan(value) for value in theirs):
        return
    assert ours == theirs


def _sql(node: Node) -> str:  # noqa: PLR0911 - a case for each function
    if isinstance(node, ColumnNode):
        return node.name
    if isinstance(node, LiteralNode):
        if node.kind is str:
            return f"'{node.value}'"
        return f"{node.value}::BIGINT" if node.kind is int else f"{node.value}::DOUBLE"
    args = [_sql(arg) for arg in node.args]
    match node.function:
        case "&" | "|":
            return f"({args[0]} {'AND' if node.function == '&' else 'OR'} {args[1]})"
        case "~":
            return f"(NOT {args[0]})"
        case "negate":
            return f"(0::BIGINT - {args[0]})"
        case "condition":
            return args[0]
        case "is_null":
            return f"({args[0]} IS NULL)"
        case "is_in":
            return f"({args[0]} IN (1, 7))"
        case "contains":
            return f"contains({args[0]}, {args[1]})"
        case "concat":
            return f"({' || '.join(args)})"
        case "replace":
            return f"replace({args[0]}, 'a', 'bb')"
        case "when":
            return f"(CASE WHEN {args[0]} THEN {args[1]} ELSE {args[2]} END)"
        case "abs" | "floor" | "coalesce":
            return f"{node.function}({', '.join(args)})"
    assert isinstance(node, CallNode)
    return f"({args[0]} {node.function} {args[1]})"
