"""Windows of columns whose partials are merged in columns, and whose results may be tables."""

from collections.abc import Callable
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.base.fields import key_getter
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.windows import SlidingWindows, TumblingWindows
from gearpy.dsl.plan.physical import physical
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import Table, Times
from gearpy.task.aggregates import merge_tables
from gearpy.task.aggregates.columns import ColumnGroups, PartialAggregateStage
from gearpy.task.aggregates.fold import WindowFold
from gearpy.task.aggregates.merge_tables import MergeTablesStage, mergeable
from gearpy.task.aggregates.rows import fold_of
from tests.task.aggregates.test_columns import (
    AGGREGATES,
    SCHEMA,
    AnyWindows,
    BothPaths,
    Life,
    a_table,
    assert_alike,
    programs,
)
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of

SALES = {"shop": str, "till": int, "price": int, "day": date | None, "at": int}
ROWS = [
    {
        "shop": "north" if at % 3 else "south",
        "till": at % 4,
        "price": at * 7 % 11,
        "day": date(2024, 1, 1 + at % 5) if at % 2 else None,
        "at": 1_700_000_000_000 + at * 700,
    }
    for at in range(60)
]
FIRED = {"firing": 0, "timing": "on-time", "retracts": False}
#: Windows, the key, and whether there is one aggregate, whose result has no name.
PROGRAMS: list[tuple[Any, tuple[str, ...], bool]] = [
    (gp.tumbling("10s"), ("shop",), False),
    (gp.tumbling("10s"), (), True),
    (gp.sliding("10s", every="4s"), ("shop", "till"), False),
    (gp.global_window(), ("day",), True),
    (gp.tumbling("10s", zone="Europe/Berlin"), ("shop",), False),
]


def in_one_order(stage: Any, watermark_ms: int) -> list[Any]:
    batches = columns_of(stage.on_watermark(watermark_ms))
    return [pair for values, times in batches for pair in zip(map(list, values), times)]  # noqa: B905


@given(
    programs([each for each in AGGREGATES if mergeable(each, SCHEMA)]), st.sampled_from([0, 4, 99])
)
def test_merged_tables_give_what_rows_give(
    program: tuple[AnyWindows, tuple[str, ...], list[Aggregate], list[Any]], cells: int
) -> None:
    """Property: the same results in the same order, also where tables are merged on the way.

    However sparse the keys are within windows.
    """
    windows, key, chosen, steps = program
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_MERGED_FROM": 3, "_CLOSED_ROWS": 4}.items():
            patch.setattr(merge_tables, name, value)
        for name, value in {"_CELLS_OF_ROW": cells, "_CELLS_AT_ONCE": 9}.items():
            patch.setattr(f"gearpy.task.aggregates.columns.{name}", value)
        both = BothPaths(windows, key, {f"a{at}": each for at, each in enumerate(chosen)})
        watermark_ms = MIN_MS
        for step in [*steps, MAX_MS]:
            if isinstance(step, list):
                both.take(a_table([row for row, _ in step]), [time for _, time in step])
            elif step == "epoch":
                both.end_epoch()
            elif step == "restart":
                both.restart()
            elif step > watermark_ms:
                watermark_ms = step
                stages = (both.rows.stage, both.columns.stage)
                rows, columns = (in_one_order(stage, watermark_ms) for stage in stages)
                assert_alike([list(each) for each in rows], [list(each) for each in columns])
            assert both.rows.stage.hold_ms == both.columns.stage.hold_ms
            assert both.rows.stage.open_windows == both.columns.stage.open_windows
        assert both.late[0] == both.late[1]


def written(
    folder: Path, windows: Any, key: tuple[str, ...], *, in_columns: bool, single: bool
) -> pa.Table:
    app = gp.StreamApp("sales")
    sales = app.read(gp.rows(ROWS, schema=SALES, time="at"))
    sales = sales if in_columns else sales.filter(lambda _: True)
    by_key = (sales.key_by(*key) if key else sales).window(windows)
    named = {
        "n": gp.agg.count(),
        "total": gp.agg.sum("price"),
        "mean": gp.agg.mean("price"),
        "first_day": gp.agg.min("day"),
        "shop": gp.agg.last("shop"),
        "till": gp.agg.arg_max("till", by="price"),
        "few": gp.agg.all("price"),
    }
    results = by_key.sum("price") if single else by_key.aggregate(**named)
    results.write(gp.parquet_folder(folder))
    gives = {
        each.kind_given("table") for each in physical(app.plan) if each.kind == "merge_partial"
    }
    assert gives == ({"table"} if in_columns else set())
    gp.run(app)
    return pa.concat_tables(map(pq.read_table, sorted(folder.glob("*.parquet"))))


@pytest.mark.parametrize(("windows", "key", "single"), PROGRAMS)
def test_files_are_the_same_from_columns_and_from_rows(
    tmp_path: Path,
    windows: Any,
    key: tuple[str, ...],
    single: Any,
) -> None:
    columns, rows = (
        written(tmp_path / form, windows, key, in_columns=form == "columns", single=single)
        for form in ("columns", "rows")
    )

    assert columns.num_rows > 0
    assert columns.schema == rows.schema
    assert columns.to_pylist() == rows.to_pylist()


def test_results_are_rows_where_rows_are_wanted() -> None:
    app, results = gp.StreamApp("sales"), list[Any]()
    sales = app.read(gp.rows(ROWS, schema=SALES, time="at"))
    totals = sales.key_by("shop").window(gp.global_window()).aggregate(n=gp.agg.count())
    totals.write(gp.to_list(results))
    gp.run(app)

    assert results == [
        gp.WindowResult("south", {"n": 20}, gp.MIN_MS, gp.MAX_MS),
        gp.WindowResult("north", {"n": 40}, gp.MIN_MS, gp.MAX_MS),
    ]


def test_functions_over_batches_get_the_columns_that_files_have() -> None:
    """Also where the aggregate is of rows."""
    for is_of_rows in (False, True):
        app, batches = gp.StreamApp("sales"), list[Any]()
        sales = app.read(gp.rows(ROWS, schema=SALES, time="at"))
        by_shop = sales.key_by(itemgetter("shop") if is_of_rows else "shop")
        totals = by_shop.window(gp.global_window()).aggregate(n=gp.agg.count())
        totals.map_batches(batches.append).write(gp.to_list([]))
        gp.run(app)
        (batch,) = batches

        assert not batch.schema.metadata
        assert batch.to_pylist() == [
            {"window_start": None, "window_end": None, "key": key, "n": n, **FIRED}
            for key, n in [("south", 20), ("north", 40)]
        ]


EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "a name of both forms": lambda totals: totals.filter(gp.col("key") == "north"),
    "a name of columns": lambda totals: totals.filter(gp.col("total") > 10),
    "a name of rows": lambda totals: totals.filter(gp.col("start") > 1_700_000_010_000),
    "select": lambda totals: totals.select("key", "total"),
    "with_columns": lambda totals: totals.with_columns(gp.col("total").cast("float").alias("f")),
    "rows behind": lambda totals: totals.filter(gp.col("total") > 10).map(str),
}


@pytest.mark.parametrize("step", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions_over_results_give_the_same_of_rows_and_columns(step: Any) -> None:
    found = []
    for is_of_rows in (False, True):
        app, results = gp.StreamApp("sales"), list[Any]()
        sales = app.read(gp.rows(ROWS, schema=SALES, time="at"))
        by_shop = sales.key_by(itemgetter("shop") if is_of_rows else "shop")
        totals = by_shop.window(gp.tumbling("10s")).aggregate(total=gp.agg.sum("price"))
        step(totals).write(gp.to_list(results))
        gp.run(app)
        found.append(results)

    assert found[0] == found[1] != []


@pytest.mark.parametrize("windows", [gp.tumbling("20s"), gp.tumbling("20s", zone="Asia/Tokyo")])
def test_results_that_meet_rows_are_rows_again(tmp_path: Path, windows: Any) -> None:
    """A sink that takes columns gets rows where one of its streams has these."""
    app = gp.StreamApp("both")
    sales = app.read(gp.rows(ROWS, schema=SALES, time="at"))
    columns = sales.key_by("shop", "till").window(windows).sum("price")
    rows = sales.filter(lambda _: True).key_by("shop", "till").window(windows).sum("price")
    columns.merge(rows).write(gp.parquet_folder(tmp_path))

    gp.run(app)

    found = pa.concat_tables(map(pq.read_table, tmp_path.glob("*.parquet"))).to_pylist()
    assert len(found) == 2 * len(set(map(repr, found))) > 0


def test_a_total_beyond_64_bits_is_refused_in_a_file(tmp_path: Path) -> None:
    app = gp.StreamApp("large")
    large = app.read(gp.rows([{"n": 2**63 - 1}] * 3, schema={"n": int}))
    large.window(gp.global_window()).sum("n").write(gp.parquet_folder(tmp_path))

    with pytest.raises(OperatorError, match="column 'value' is int64"):
        gp.run(app)


def test_many_keys_are_told_to_state_in_steps() -> None:
    windows, key, total = TumblingWindows(10), ("n",), agg.sum("n")
    table = pa.RecordBatch.from_pydict({"n": list(range(20_000))})
    schema = table.schema
    partial = PartialAggregateStage(a_context(), "partial", ColumnGroups(windows, key, total))
    context = a_context()
    merge = MergeTablesStage(context, "merge", ColumnGroups(windows, key, total), schema=schema)
    merge.restore(None)
    for values, times in results_of(partial, Table(table), Times.of([3] * 20_000)):
        list(results_of(merge, values, times))
    head = merge.snapshot()
    assert context.keyed is not None
    delta = context.keyed.snapshot()
    assert delta is not None
    sections = list(delta.sections())

    later = a_context()
    assert later.keyed is not None
    later.keyed.load(sections)
    again = MergeTablesStage(later, "merge", ColumnGroups(windows, key, total), schema=schema)
    again.restore(head)

    results = [value for values, _ in columns_of(again.on_watermark(10)) for value in values]
    assert sorted(result.value for result in results) == list(range(20_000))


@pytest.mark.parametrize("key", [(), ("user",), ("user", "shop")], ids=str)
def test_rows_and_tables_go_on_from_the_state_of_each_other(key: tuple[str, ...]) -> None:
    windows = TumblingWindows(10)
    aggregates = {
        "total": agg.sum("n"),
        "n": agg.count(),
        "mean": agg.mean("n"),
        "first": agg.first("text"),
        "users": agg.distinct("user"),
        "best": agg.arg_max("text", by="n"),
    }
    key_of = key_getter(*key) if key else None

    def rows(context: Any) -> Any:
        return WindowFold(context, "w", windows, key_of, fold_of(aggregates), limit=3)

    record = {"user": "a", "shop": 2, "n": 2**62, "text": "x"}
    life = Life(rows)
    list(results_of(life.stage, [record] * 3, [3, 4, 5]))
    life.end_epoch()
    life.make = lambda c: MergeTablesStage(
        c, "w", ColumnGroups(windows, key, aggregates), schema=SCHEMA
    )
    life.start()
    partial = PartialAggregateStage(a_context(), "partial", ColumnGroups(windows, key, aggregates))
    table = Table(a_table([{**record, "n": 6, "text": "y"}]))
    for values, times in results_of(partial, table, Times.of([2])):
        list(results_of(life.stage, values, times))
    life.end_epoch()
    life.make = rows
    life.start()

    ((values, _),) = columns_of(life.stage.on_watermark(10))

    total = 3 * 2**62 + 6
    (result,) = values
    assert result.value == {
        "total": total, "n": 4, "mean": total / 4, "first": "y", "users": 1, "best": "x"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("aggregate", "is_mergeable"),
    [
        (agg.count(), True),
        (agg.sum("price"), True),
        (agg.first("parts"), False),
        (agg.collect("n"), False),
        (agg.distinct("n"), True),
        (agg.mode("n"), False),
    ],
    ids=str,
)
def test_what_arrow_merges(aggregate: Aggregate, is_mergeable: Any) -> None:
    assert mergeable(aggregate, SCHEMA) is is_mergeable


def test_a_column_of_another_type_than_promised_is_refused() -> None:
    windows = SlidingWindows(10, 5)
    schema = pa.schema({"n": pa.int32()})
    merge = MergeTablesStage(
        a_context(), "merge", ColumnGroups(windows, (), agg.min("n")), schema=schema
    )
    partial = PartialAggregateStage(a_context(), "partial", ColumnGroups(windows, (), agg.min("n")))
    table = pa.RecordBatch.from_pydict({"n": [1.5]})

    ((values, times),) = results_of(partial, Table(table), Times.of([3]))
    with pytest.raises(OperatorError, match="merge"):
        list(results_of(merge, values, times))
