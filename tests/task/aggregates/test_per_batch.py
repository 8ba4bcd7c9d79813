"""Running aggregates that give a result for each batch and key, of rows and of columns."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.columns.results import RunningSchema
from gearpy.columns.row_schema import as_table
from gearpy.core.base.fields import key_getter
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.windows import GlobalWindows
from gearpy.dsl.operators.groups import AggregateOperator
from gearpy.dsl.plan.physical import physical
from gearpy.errors import OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, rows_of
from gearpy.task.aggregates.columns import ColumnGroups, MergeRunningStage, PartialAggregateStage
from gearpy.task.aggregates.fold import PerBatchStage
from gearpy.task.aggregates.merge_tables import MergeRunningTables, merges_at_once
from gearpy.task.aggregates.rows import RunningAggregate, fold_of
from tests.task.aggregates.test_columns import (
    AGGREGATES,
    Life,
    a_table,
    assert_alike,
    end_epochs,
    programs,
)
from tests.task.aggregates.test_columns import SCHEMA as ALL_TYPES
from tests.task.build import a_context

SCHEMA = pa.schema({"user": pa.string(), "x": pa.float64(), "n": pa.int64()})
NAMED = {
    "n": agg.count(),
    "total": agg.sum("n"),
    "least": agg.min("n"),
    "mean": agg.mean("n", where="x"),
    "first": agg.first("n"),
    "different": agg.distinct("n"),
}
ROW = st.tuples(
    st.sampled_from(["ann", "bob", None]),
    st.sampled_from([0.0, -0.0, 1.5, None, float("nan")]),
    st.sampled_from([1, 2, None, 2**62]),
    st.integers(0, 20),
)
STEP = st.one_of(st.lists(ROW, min_size=1, max_size=8), st.sampled_from(["epoch", "restart"]))


@given(st.sampled_from([("user",), ("user", "x")]), st.lists(STEP, max_size=8))
def test_columns_give_what_rows_give(key: tuple[str, ...], steps: list[Any]) -> None:
    """Property: the same results of each batch, also where each goes on as the other form."""
    groups = ColumnGroups(GlobalWindows(), key, NAMED)

    def of_rows(context: Any) -> Any:
        return PerBatchStage(RunningAggregate(context, "run", key_getter(*key), fold_of(NAMED)))

    def of_columns(context: Any) -> Any:
        return MergeRunningStage(context, "run", groups)

    partial = PartialAggregateStage(a_context(), "partial", groups, is_running=True)
    lives = [Life(of_rows), Life(of_columns)]
    for step in steps:
        if isinstance(step, str):
            end_epochs(lives, restart=step == "restart")
            continue
        rows = [dict(zip(SCHEMA.names, row, strict=False)) for row in step]
        times = [time for *_, time in step]
        table = Batch(Table(pa.RecordBatch.from_pylist(rows, SCHEMA)), Times.of(times))
        found = [
            list(lives[0].stage.process(Batch(rows, times))),
            [r for each in partial.process(table) for r in lives[1].stage.process(each)],
        ]
        row, column = ([(e.values, list(e.timestamps)) for e in each] for each in found)
        assert repr(row) == repr(column)


def results_of_program(key: tuple[str, ...], named: dict[str, Aggregate]) -> Any:
    app = gp.StreamApp("types")
    source = gp.generate_tables(lambda: iter(()), schema=ALL_TYPES)
    step = app.read(source).key_by(*key).per_batch().aggregate("run", **named)
    step.write(gp.to_list([]))
    (operator,) = (each for each in app.plan if each.name == "run")
    assert isinstance(operator, AggregateOperator)
    return operator.results


def as_pairs(batches: Iterable[Batch], schema: RunningSchema) -> list[Any]:
    """Return results in rows or as tables, both as what fits tables."""
    found = list[Any]()
    for each in batches:
        is_table = type(each.values) is Table
        table = as_table(each.values).batch if is_table else schema.table(each.values)
        found.append((schema.rows(table), list(each.timestamps)))
    return found


@given(
    programs(
        [
            each
            for each in AGGREGATES
            if merges_at_once(each, ALL_TYPES) and results_of_program(("shop",), {"a": each})
        ]
    ),
    st.integers(0, 4),
)
def test_columns_that_grow_give_what_rows_give(program: Any, joined_at: int) -> None:
    """Property: the same results of each batch, also where each goes on as the other form.

    Two tables may have become one, so that a key is in several rows. Sums that no column holds
    fail in both.
    """
    _, key, chosen, steps = program
    key, named = key or ("shop",), {f"a{at}": each for at, each in enumerate(chosen)}
    schema = RunningSchema(results_of_program(key, named), tuple)
    groups = ColumnGroups(GlobalWindows(), key, named)

    def of_rows(context: Any) -> Any:
        return PerBatchStage(RunningAggregate(context, "run", key_getter(*key), fold_of(named)))

    def of_columns(context: Any) -> Any:
        return MergeRunningTables(context, "run", groups, schema=ALL_TYPES, results=schema.arrow)

    partial = PartialAggregateStage(a_context(), "partial", groups, is_running=True)
    lives = [Life(of_rows), Life(of_columns)]
    for step in steps:
        if isinstance(step, str):
            end_epochs(lives, restart=step == "restart")
        if not isinstance(step, list):
            continue
        rows = [{"shop": None} | row for row, _ in step]
        times = [time for _, time in step]
        parts = [slice(0, joined_at), slice(joined_at, len(rows))]
        partials = [
            each
            for part in parts
            if rows[part]
            for each in partial.process(Batch(Table(a_table(rows[part])), Times.of(times[part])))
        ]
        table = pa.concat_batches([as_table(each.values).batch for each in partials])
        stamps = [time for each in partials for time in each.timestamps]
        by_rows = lives[0].stage.process(Batch(rows_of(a_table(rows)), times))
        by_columns = lives[1].stage.process(Batch(Table(table), Times.of(stamps)))
        try:
            given_rows = as_pairs(by_rows, schema)
        except ValueError as error:
            with pytest.raises(OperatorError, match=re.escape(str(error))):
                list(by_columns)
            return
        given_columns = as_pairs(by_columns, schema)
        assert_alike(given_rows, given_columns)
        keys = [[repr(key) for key, _ in each[0][0]] for each in (given_rows, given_columns)]
        assert keys[0] == keys[1]


def test_results_of_late_rows_say_what_was_promised() -> None:
    key, named = ("user",), {"n": agg.sum("n")}
    groups, results = ColumnGroups(GlobalWindows(), key, named), results_of_program(key, named)
    partial = PartialAggregateStage(a_context(), "partial", groups, is_running=True)
    stage = MergeRunningTables(a_context(), "run", groups, schema=SCHEMA, results=results)
    table = pa.RecordBatch.from_pylist([{"user": "ann", "n": 1}, {"user": "bob", "n": 2}], SCHEMA)
    times = Times(pa.array([5, 9], pa.int64()), promised=pa.array([7, 7], pa.int64()))

    found = [
        (each.values[0], times.array.to_pylist(), times.promised and times.promised.to_pylist())
        for part in partial.process(Batch(Table(table), times))
        for each in stage.process(part)
        for times in (Times.of(each.timestamps),)
    ]

    assert found == [({"key": "bob", "n": 2}, [9], None), ({"key": "ann", "n": 1}, [5], [7])]


SALES = [{"shop": "north" if n % 3 else "south", "price": n, "at": n} for n in range(10)]


@pytest.mark.parametrize("in_columns", [False, True])
def test_a_program_says_which_results_it_wants(in_columns: Any) -> None:
    app, each, last = gp.StreamApp("sales"), list[Any](), list[Any]()
    read = app.read(gp.rows(SALES, schema={"shop": str, "price": int, "at": int}, time="at"))
    sales = read if in_columns else read.filter(lambda _: True)
    total = gp.agg.sum(gp.col("price") * 2)
    sales.key_by("shop").aggregate(total=total).write(gp.to_list(each))
    batches = sales.key_by("shop").per_batch()
    batches.aggregate("by batch", total=total).write(gp.to_list(last))
    names = {step.name for step in physical(app.plan)}
    gp.run(app)

    assert ("partial by batch" in names) is in_columns
    assert dict(each) == dict(last) == {"south": {"total": 36}, "north": {"total": 54}}
    assert len(last) <= len(each) == len(SALES)


def test_one_aggregate_and_those_that_see_order() -> None:
    """A list is as the records are in event time, so these come as rows."""
    app, counts, lists = gp.StreamApp("sales"), list[Any](), list[Any]()
    sales = app.read(gp.rows(SALES, schema={"shop": str, "price": int, "at": int}, time="at"))
    sales.key_by("shop").per_batch().count().write(gp.to_list(counts))
    by_shop = sales.key_by("shop").per_batch()
    by_shop.aggregate("lists", prices=gp.agg.collect("price")).write(gp.to_list(lists))
    (step,) = (each for each in app.plan if each.name == "lists")
    gp.run(app)

    assert dict(counts) == {"south": 4, "north": 6}
    assert dict(lists)["south"] == {"prices": [0, 3, 6, 9]}
    assert step.order == "event time"


def by_shop(app: gp.StreamApp, key: tuple[str, ...], *, in_columns: bool, single: bool) -> Any:
    read = app.read(gp.rows(SALES, schema={"shop": str, "price": int, "at": int}, time="at"))
    sales = read if in_columns else read.filter(lambda _: True)
    batches = sales.key_by(*key).per_batch()
    if single:
        return batches.count()
    return batches.aggregate(n=gp.agg.count(), mean=gp.agg.mean("price"), last=gp.agg.last("shop"))


@pytest.mark.parametrize("single", [False, True], ids=["named", "one"])
@pytest.mark.parametrize("key", [("shop",), ("shop", "price")], ids=["key", "keys"])
def test_results_of_batches_go_on_as_tables(tmp_path: Path, key: Any, single: Any) -> None:
    """Files of JSON have the same lines from rows; other sinks have columns of key and value."""
    found = {}
    for form in ("rows", "columns"):
        app = gp.StreamApp("sales")
        results = by_shop(app, key, in_columns=form == "columns", single=single)
        results.write(gp.jsonl_folder(tmp_path / form))
        gives = {each.kind_given("table") for each in physical(app.plan) if each.name == "rows"}
        gp.run(app)
        files = sorted((tmp_path / form).glob("part-*"))
        found[form] = [json.loads(line) for each in files for line in each.read_text().splitlines()]
        assert gives == ({"rows"} if form == "rows" else set()), "nothing becomes rows"
    app, table, listed = gp.StreamApp("sales"), gp.to_table(), list[Any]()
    results = by_shop(app, key, in_columns=True, single=single)
    results.write(table)
    results.filter(gp.col("value" if single else "n") > 0).write(gp.to_list(listed))
    results.write(gp.parquet_folder(tmp_path / "parquet"))
    gp.run(app)

    names = ["key"] if len(key) == 1 else ["key_1", "key_2"]
    names += ["value"] if single else ["n", "mean", "last"]
    last = {json.dumps(of): value for of, value in found["columns"]}
    assert last == {json.dumps(of): value for of, value in found["rows"]}
    assert table.to_arrow().schema.names == [*names, "event_time"]
    (file,) = (tmp_path / "parquet").glob("part-*")
    assert pq.read_table(file).schema.names == names
    assert {json.dumps(of): value for of, value in listed} == last


def test_what_is_kept_in_columns_moves_to_other_tasks(tmp_path: Path) -> None:
    total = dict[str, int]()
    for part, tasks in enumerate([2, 3, 1]):
        sales: list[dict[str, Any]] = [
            {"shop": f"s{n % 7}", "price": 1 + n * part} for n in range(50)
        ]
        for each in sales:
            total[each["shop"]] = total.get(each["shop"], 0) + each["price"]
        lines = "".join(f"{json.dumps(each)}\n" for each in sales)
        (tmp_path / f"{part}.jsonl").write_text(lines, encoding="utf-8")
        app = gp.StreamApp("sales")
        read = app.read(gp.jsonl(tmp_path / "*.jsonl", schema={"shop": str, "price": int}))
        batches = read.key_by("shop", parallelism=tasks).per_batch()
        batches.aggregate("run", n=gp.agg.sum("price")).write(gp.jsonl_folder(tmp_path / "out"))
        gp.run(app, until="caught-up", checkpoint=tmp_path / "kept")

        written = [
            json.loads(line)
            for file in (tmp_path / "out").glob("part-*")
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        last = dict(sorted((key, value["n"]) for key, value in written))
        assert last == total, part
