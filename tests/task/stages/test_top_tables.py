"""Of the largest records rows of columns are left out, and nothing else changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.columns.results import TIME, results_schema, running_schema
from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.fields import key_getter
from gearpy.core.window.windows import AlignedWindows, LocalWindows
from gearpy.dsl.plan.physical import physical
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.late_time import LateTime, late_time
from gearpy.messages.table import Table, Times
from gearpy.sql.plan.records import OverColumn, OverRows, Rank, moment
from gearpy.task.aggregates.fold import WindowFold
from gearpy.task.aggregates.rows import RunningAggregate, fold_of
from gearpy.task.aggregates.top_n import top_records
from gearpy.task.api.window_result import rows_in
from gearpy.task.stages import top_tables
from gearpy.task.stages.top_tables import (
    BestRowsStage,
    PlacesStage,
    RunningTop,
    TopTablesStage,
    order_by,
)
from tests.task.aggregates.test_columns import Life, end_epochs
from tests.task.build import a_context

SCHEMA = RowSchema(pa.schema([("k", pa.string()), ("v", pa.float64()), ("id", pa.int64())]))
KEY = key_getter("k")
NAN = float("nan")

VALUES = st.sampled_from([*map(float, range(6)), 2.5, 2.5, -float("inf"), None, NAN])
ROWS = st.lists(
    st.tuples(st.sampled_from("aab"), VALUES, st.integers(0, 40), st.just(0) | st.integers(0, 44)),
    min_size=1,
    max_size=12,
)
WINDOWS = [
    gp.tumbling("10ms"),
    gp.sliding("20ms", every="15ms"),
    gp.global_window(),
    gp.calendar("day"),
]


#: By the column alone, or by others where it is alike; None comes first or last.
RANKINGS = st.none() | st.builds(
    lambda *first: Rank((("v", *first), ("id", True, False))), st.booleans(), st.booleans()
)
#: Whole numbers that are compared, the least of which has no negative.
WHOLE = RowSchema(pa.schema([("k", pa.string()), ("v", pa.int64()), ("id", pa.int64())]))
LEAST = -(1 << 63)
TEXTS = RowSchema(pa.schema([("k", pa.string()), ("v", pa.string()), ("id", pa.int64())]))


class Row(NamedTuple):
    k: str
    v: float | None
    id: int


#: Of which rows are instances of a class.
FLOATS = RowSchema(SCHEMA.arrow, Row)


def best(
    n: int, rows: list[tuple[Any, int]], windows: AlignedWindows, ranking: Rank | None
) -> dict[Any, Any]:
    """Return the ids of the largest records of each window and key, of some in their order."""
    found: dict[Any, Any] = {}
    top = top_records(n, ranking or "v")
    for row, time in rows:
        for start in windows.starts_of(time):
            kept = found.get((start, row["k"]), top.create())
            found[start, row["k"]] = top.add(kept, row)
    return {at: [row["id"] for row in top.result(kept)] for at, kept in found.items()}


@given(st.lists(ROWS, max_size=8), st.integers(1, 3), st.sampled_from(WINDOWS), RANKINGS)
def test_rows_that_are_left_out_are_not_among_the_largest(
    batches: list[Any], n: int, windows: AlignedWindows, ranking: Rank | None
) -> None:
    """Whether late records count or not, and in which order those of one time come."""
    stage = BestRowsStage(
        a_context(),
        "best",
        key=KEY,
        windows=windows,
        n=n,
        by="v",
        ranking=ranking,
    )
    came, passed = list[tuple[Any, int]](), list[tuple[Any, int]]()
    for listed in batches:
        times = [late_time(time, promised) for *_, time, promised in listed]
        rows = [{"k": k, "v": v, "id": len(came) + at} for at, (k, v, *_) in enumerate(listed)]
        came += zip(rows, times, strict=True)
        batch = Batch(as_table(rows, SCHEMA), Times.of(times), has_late=True)
        for left in stage.process(batch):
            assert type(left.values) is Table
            passed += zip(SCHEMA.rows(left.values.batch), left.timestamps, strict=True)

    for turn in (1, -1):
        for takes_late in (True, False):
            all_of, some = (
                sorted(
                    [each for each in of if takes_late or type(each[1]) is not LateTime],
                    key=lambda each: (
                        getattr(each[1], "promised_ms", each[1]),
                        turn * each[0]["id"],
                    ),
                )
                for of in (came, passed)
            )
            assert best(n, some, windows, ranking) == best(n, all_of, windows, ranking)


@given(
    steps=st.lists(ROWS | st.sampled_from(["epoch", "restart"]), max_size=8),
    n=st.integers(1, 3),
    ranking=RANKINGS,
    of=st.sampled_from([SCHEMA, WHOLE, FLOATS]),
    is_table=st.booleans(),
    few=st.sampled_from([1, 99]),
    only_changed=st.booleans(),
)
def test_changes_of_the_largest_are_those_of_rows(
    *,
    steps: list[Any],
    n: int,
    ranking: Rank | None,
    of: RowSchema,
    is_table: bool,
    few: int,
    only_changed: bool,
) -> None:
    """Also behind a restart in the other form."""
    fold = fold_of(top_records(n, ranking or "v"), only_changed=only_changed)
    schema = RowSchema(of.arrow) if ranking or is_table else of
    are_whole = of is WHOLE
    kind = pa.list_(pa.struct(list(schema.arrow)))
    results = running_schema([pa.string()], {"value": kind}, is_single=True)
    assert results is not None
    given: dict[str, Any] = {
        "only_changed": only_changed,
        "schema": schema,
        "results": results.arrow if is_table else None,
    }

    def of_rows(context: Any) -> Any:
        return RunningAggregate(context, "top", KEY, fold)

    def of_columns(context: Any) -> Any:
        return RunningTop(context, "top", KEY, fold, n=n, by="v", ranking=ranking, **given)

    lives = [Life(of_rows), Life(of_columns)]
    number = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_tables, "_ROWS_MIN", few)
        patch.setattr(top_tables, "_FIRST_PART", few)
        for step in steps:
            if isinstance(step, str):
                end_epochs(lives, restart=step == "restart")
                continue
            rows = [
                {"k": k, "v": _whole(v) if are_whole else v, "id": number + at}
                for at, (k, v, *_) in enumerate(step)
            ]
            number += len(rows)
            times = [time for *_, time, _ in step]
            table = as_table(rows, RowSchema(schema.arrow))
            batches = Batch(schema.rows(table.batch), times), Batch(table, Times.of(times))
            found = [
                [
                    each
                    for out in life.stage.process(batch)
                    for each in zip(rows_in(out.values), out.timestamps, strict=True)
                ]
                for life, batch in zip(lives, batches, strict=True)
            ]
            assert repr(found[0]) == repr(found[1])


STEPS = ROWS | st.sampled_from(["epoch", "restart"]) | st.integers(0, 60)


@given(
    steps=st.lists(STEPS, max_size=9),
    n=st.integers(1, 3),
    windows=st.sampled_from(WINDOWS),
    ranking=RANKINGS,
    of=st.sampled_from([(FLOATS, "v"), (WHOLE, "v"), (FLOATS, "id"), (TEXTS, "v")]),
    waits=st.sampled_from(["all", "late"]),
    is_table=st.booleans(),
)
def test_windows_have_the_largest_of_rows(
    *, steps: list[Any], n: int, windows: Any, ranking: Any, of: Any, waits: Any, is_table: bool
) -> None:
    """Property: the same results in the same order, also behind a restart in the other form."""
    schema, by = of
    if ranking or is_table:
        schema, by = RowSchema(schema.arrow), "v"
    fold = fold_of(top_records(n, ranking or by))

    def of_rows(context: Any) -> Any:
        return WindowFold(context, "top", windows, KEY, fold, limit=3, waits=waits)

    def of_columns(context: Any) -> Any:
        given = {"windows": windows, "n": n, "by": by, "ranking": ranking, "schema": schema}
        kind = pa.list_(pa.struct(list(schema.arrow)))
        local = isinstance(windows, LocalWindows)
        results = results_schema([pa.string()], {"value": kind}, is_local=local, is_single=True)
        given |= {"results": results if is_table else None}
        return TopTablesStage(context, "top", key=("k",), waits=waits, **given)

    lives = [Life(of_rows), Life(of_columns)]
    number = watermark_ms = 0
    for step in [*steps, MAX_MS]:
        if isinstance(step, str):
            end_epochs(lives, restart=step == "restart")
            for life in lives if step == "restart" else []:
                _ = [*life.stage.on_watermark(watermark_ms)]
            continue
        if isinstance(step, int):
            watermark_ms = max(step, watermark_ms)
            found = [[*life.stage.on_watermark(watermark_ms)] for life in lives]
        else:
            times = [late_time(time, promised) for *_, time, promised in step]
            rows = [
                {"k": k, "v": _of_type(v, schema), "id": number + at}
                for at, (k, v, *_) in enumerate(step)
            ]
            number += len(rows)
            table = as_table(rows, RowSchema(schema.arrow))
            batches = (
                Batch(schema.rows(table.batch), times, has_late=True),
                Batch(table, Times.of(times), has_late=True),
            )
            found = [
                [*life.stage.process(batch)] for life, batch in zip(lives, batches, strict=True)
            ]
        results = [[each for out in some for each in rows_in(out.values)] for some in found]
        assert repr(results[0]) == repr(results[1])
        ends = [[each for out in some for each in out.timestamps] for some in found]
        assert ends[0] == ends[1]
        assert lives[0].stage.hold_ms == lives[1].stage.hold_ms
        late = [life.context.counters.late_records for life in lives]
        assert late[0] == late[1]


@given(
    lists=st.lists(st.lists(st.tuples(VALUES, st.integers(0, 9)), max_size=4), max_size=5),
    in_windows=st.booleans(),
)
def test_rows_of_lists_are_those_of_results(lists: list[Any], in_windows: Any) -> None:
    """Property: each with its place, its window, if any, and the time of its result."""
    listed = [[{"k": "a", "v": v, "id": at} for v, at in rows] for rows in lists]
    kind = {"value": pa.list_(pa.struct(list(SCHEMA.arrow)))}
    starts = [MIN_MS if at % 3 == 2 else at * 10 for at in range(len(lists))]
    if in_windows:
        schema: pa.Schema | None = results_schema(
            [pa.string()], kind, is_local=False, is_single=True
        )
        moments = [None if start == MIN_MS else moment(start) for start in starts]
        around = {"window_start": moments, "window_end": moments}
        same: dict[str, list[Any]] = {"firing": [0], "timing": ["on-time"], "retracts": [False]}
        cells = {"key": ["a"] * len(lists), "value": listed, **around}
        cells |= {name: each * len(lists) for name, each in same.items()}
        bounds: tuple[str, ...] = ("begin", "end")
    else:
        running = running_schema([pa.string()], kind, is_single=True)
        assert running is not None
        schema, bounds = running.arrow, ()
        cells = {"key": ["a"] * len(lists), "value": listed}
    assert schema is not None
    results = pa.RecordBatch.from_pydict(cells, schema)
    gives = pa.schema(
        [pa.field("place", pa.int64()), *SCHEMA.arrow, *(pa.field(name, TIME) for name in bounds)]
    )
    context = a_context()
    context.limits = replace(context.limits, columnar_batch_records=3)
    stage = PlacesStage(context, "places", gives, "place", bounds)
    place = OverColumn(
        field="place", name="row_number", of="", offset=1, default="", aggregate=None,
        rank=Rank((("v", True, False),)), is_range=False, start=None, end=0,
    )  # fmt: skip
    rows = OverRows((place,), tuple(gives.names), *(bounds if in_windows else ("", "")))

    batches = [*stage.process(Batch(Table(results), Times.of(starts)))]
    found = [pair for each in batches for pair in zip(each.values, each.timestamps, strict=True)]
    wanted = [
        (row, time)
        for result, time in zip(rows_in(Table(results)), starts, strict=True)
        for row in rows(result)
    ]
    as_table = Table(pa.RecordBatch.from_pylist([row for row, _ in wanted], gives))

    assert all(len(each.values) <= 3 for each in batches)
    assert [repr(row) for row, _ in found] == [*map(repr, as_table)]
    assert [time for _, time in found] == [time for _, time in wanted]


WORDS = st.sampled_from([np.int8, np.uint16, np.int64, np.uint64, np.float64, np.bool_])


@given(st.data(), st.integers(0, 9), st.lists(WORDS, min_size=1, max_size=4))
def test_rows_are_put_in_order(data: Any, rows: int, kinds: list[Any]) -> None:
    """Property: of equal rows the first comes first, whether 64 bits hold all of a row or not."""
    keys = []
    for kind in kinds:
        ends = [0, 1] if kind is np.bool_ else [-1, 7]
        if kind not in (np.bool_, np.float64):
            ends += [np.iinfo(kind).min, np.iinfo(kind).max]
        numbers = st.sampled_from([each for each in ends if each >= 0 or "u" not in kind.__name__])
        keys.append(np.array(data.draw(st.lists(numbers, min_size=rows, max_size=rows)), kind))

    assert order_by(keys).tolist() == np.lexsort(keys[::-1]).tolist()


def _of_type(value: float | None, schema: RowSchema) -> Any:
    if schema.arrow is TEXTS.arrow:
        return None if value is None else "aé\U0001f600"[: int(value) if abs(value) < 6 else 1]
    return _whole(value) if schema.arrow is WHOLE.arrow else value


def _whole(value: float | None) -> int | None:
    """Return a whole number instead, the least one of all for what has none."""
    return value if value is None else int(value) if abs(value) < 6 else LEAST


SALES = [{"shop": f"s{at % 3}", "price": at * 7 % 11, "at": at * 100} for at in range(60)]


@pytest.mark.parametrize(
    ("make", "in_windows"),
    [(gp.jsonl_folder, True), (gp.parquet_folder, True), (gp.jsonl_folder, False)],
    ids=["windows in jsonl", "windows in parquet", "running in jsonl"],
)
def test_sinks_have_the_same_of_columns_and_of_rows(
    tmp_path: Path, make: Any, in_windows: Any
) -> None:
    """Property: results stay columns up to the sink, and its files are the same ones."""
    found = []
    for form in ("columns", "rows"):
        app = gp.StreamApp("best")
        read = app.read(gp.rows(SALES, schema={"shop": str, "price": int, "at": int}, time="at"))
        sales = read if form == "columns" else read.filter(lambda _: True)
        by_shop = sales.key_by("shop")
        best: gp.Stream[Any]
        if in_windows:
            best = by_shop.window(gp.tumbling("1s")).top_n(2, "price")
        else:
            best = by_shop.top_n(2, gp.col("price"), when="changed")
        best.write(make(tmp_path / form))
        assert ("rows" in {each.name for each in physical(app.plan)}) == (form == "rows")
        gp.run(app)
        files = sorted((tmp_path / form).glob("*.parquet")) or [*(tmp_path / form).glob("part-*")]
        read_all = pq.read_table if make is gp.parquet_folder else Path.read_text
        found.append([read_all(each) for each in files])
    assert found[0]
    assert found[0] == found[1]
