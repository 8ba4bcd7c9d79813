"""Running aggregates with a result after each row, of rows and of columns."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.columns.results import RunningSchema, running_schema
from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.fields import key_getter
from gearpy.core.window import aggregates as agg
from gearpy.dsl.plan.physical import physical
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.aggregates.rows import RunningAggregate, fold_of
from gearpy.task.aggregates.running_tables import RunningTables
from gearpy.task.api.window_result import rows_in
from tests.task.aggregates.test_columns import Life, end_epochs

SCHEMA = pa.schema({"user": pa.string(), "x": pa.float64(), "n": pa.int64(), "s": pa.string()})
FLOAT, WHOLE = pa.float64(), pa.int64()
AGGREGATES = {
    "count": (agg.count(), WHOLE),
    "total": (agg.sum("n"), WHOLE),
    "float total": (agg.sum("x"), FLOAT),
    "mean": (agg.mean("n"), FLOAT),
    "float mean": (agg.mean("x", where="n"), FLOAT),
    "least": (agg.min("x"), FLOAT),
    "most": (agg.max("x"), FLOAT),
    "least text": (agg.min("s", where="x"), pa.string()),
    "most number": (agg.max("n"), WHOLE),
    "first": (agg.first("n"), WHOLE),
    "last": (agg.last("s"), pa.string()),
    "few": (agg.count(where="s"), WHOLE),
    "some": (agg.sum("n", where="x"), WHOLE),
    "any": (agg.any("x", where="n"), pa.bool_()),
    "all": (agg.all("s"), pa.bool_()),
    "different": (agg.distinct("x", where="n"), WHOLE),
    "different texts": (agg.distinct("s"), WHOLE),
    "of the least": (agg.arg_min("s", by="x"), pa.string()),
    "of the most": (agg.arg_max("n", by="x", where="s"), WHOLE),
    "of the last text": (agg.arg_max("x", by="s"), FLOAT),
}
ROW = st.tuples(
    st.sampled_from(["ann", "bob", "", None]),
    st.sampled_from([0.0, -0.0, 0.1, 1e17, -3.5, None, float("nan"), float("inf"), -float("inf")]),
    st.sampled_from([1, 2, -7, None, 2**53, 2**60]),
    st.sampled_from(["", "a", "é", None]),
    st.integers(0, 20),
)
STEP = st.one_of(st.lists(ROW, min_size=1, max_size=12), st.sampled_from(["epoch", "restart"]))


@given(
    st.sampled_from([("user",), ("x",), ("user", "x")]),
    st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=6, unique=True),
    st.lists(STEP, max_size=6),
)
def test_columns_give_what_rows_give(
    key: tuple[str, ...], chosen: list[str], steps: list[Any]
) -> None:
    """Property: the same result after each record, to the digit, and each goes on as the other."""
    named = {name: AGGREGATES[name][0] for name in chosen}
    types = {name: AGGREGATES[name][1] for name in chosen}
    results = running_schema([SCHEMA.field(each).type for each in key], types, is_single=False)
    assert isinstance(results, RunningSchema)

    def of_rows(context: Any) -> Any:
        return RunningAggregate(context, "run", key_getter(*key), fold_of(named))

    def of_columns(context: Any) -> Any:
        given = context, "run", key_getter(*key), fold_of(named), named
        return RunningTables(*given, schema=RowSchema(SCHEMA), results=results.arrow)

    lives = [Life(of_rows), Life(of_columns)]
    for step in steps:
        if isinstance(step, str):
            end_epochs(lives, restart=step == "restart")
            continue
        rows = [dict(zip(SCHEMA.names, row, strict=False)) for row in step]
        times = [time for *_, time in step]
        table = Batch(Table(pa.RecordBatch.from_pylist(rows, SCHEMA)), Times.of(times))
        found = [
            [pair for each in life.stage.process(batch) for pair in rows_in(each.values)]
            for life, batch in zip(lives, (Batch(rows, times), table), strict=True)
        ]
        assert repr(found[0]) == repr(found[1])


WHOLE = {"k": str, "n": int}
SALES = [{"shop": "north" if n % 3 else "south", "price": n, "at": n} for n in range(30)]


def jsonl(folder: Path, *, in_columns: bool, single: bool) -> list[Any]:
    app = gp.StreamApp("sales")
    read = app.read(gp.rows(SALES, schema={"shop": str, "price": int, "at": int}, time="at"))
    sales = read if in_columns else read.filter(lambda _: True)
    by_shop = sales.key_by(gp.col("shop") if single else gp.col("price") % 3)
    named = {"n": gp.agg.count(), "double": gp.agg.sum(gp.col("price") * 2)}
    results = by_shop.count() if single else by_shop.aggregate(**named)
    results.write(gp.jsonl_folder(folder))
    assert {"rows"} & {each.name for each in physical(app.plan)} == (
        set() if in_columns else {"rows"}
    )
    gp.run(app)
    files = sorted(folder.glob("part-*"))
    return [json.loads(line) for each in files for line in each.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("single", [False, True], ids=["named", "one"])
def test_files_have_the_same_lines_from_columns_and_from_rows(tmp_path: Path, single: Any) -> None:
    columns = jsonl(tmp_path / "columns", in_columns=True, single=single)
    assert len(columns) == len(SALES)
    assert columns == jsonl(tmp_path / "rows", in_columns=False, single=single)


def test_results_go_on_as_columns() -> None:
    app, table, listed = gp.StreamApp("sales"), gp.to_table(), list[Any]()
    read = app.read(gp.rows(SALES, schema={"shop": str, "price": int, "at": int}, time="at"))
    totals = read.key_by("shop").aggregate(n=gp.agg.count(), most=gp.agg.max("price"))
    totals.write(table)
    totals.filter(gp.col("n") == 10).write(gp.to_list(listed))
    gp.run(app)

    assert listed == [("north", {"n": 10, "most": 14}), ("south", {"n": 10, "most": 27})]
    assert table.to_arrow().schema.names == ["key", "n", "most", "event_time"]
    assert table.to_arrow().num_rows == len(SALES)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (lambda by_key: by_key.aggregate(total=gp.agg.sum("n")), "total"),
        (lambda by_key: by_key.sum("n"), "value"),
        (lambda by_key: by_key.rolling(9, total=gp.agg.sum("n")), "total"),
    ],
    ids=["named", "one", "rolling"],
)
def test_sums_that_no_column_can_have_are_rows(tmp_path: Path, step: Any, name: str) -> None:
    """A sink of tables says which column it is."""

    def totals(app: gp.StreamApp) -> Any:
        return step(app.read(gp.rows([{"k": "a", "n": 1 << 62}] * 3, schema=WHOLE)).key_by("k"))

    app, listed = gp.StreamApp("large"), list[Any]()
    totals(app).write(gp.to_list(listed))
    gp.run(app)
    sums = [value if name == "value" else value[name] for _, value in listed]
    assert sums == [n << 62 for n in (1, 2, 3)]

    app = gp.StreamApp("large")
    totals(app).write(gp.parquet_folder(tmp_path))
    with pytest.raises(gp.OperatorError, match=f"column '{name}' is int64: .* more than 64 bits"):
        gp.run(app)
