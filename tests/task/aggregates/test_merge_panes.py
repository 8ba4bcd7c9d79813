"""Windows of columns that fire early, again for what is late, or by wall time."""

from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.window import aggregates as agg
from gearpy.dsl.plan.physical import physical
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.late_time import late_time
from gearpy.task.aggregates.columns import ColumnGroups
from gearpy.task.aggregates.merge_panes import MergePanesStage
from tests.core.window_cases import KINDS, TRIGGERS, variants_of
from tests.task.aggregates.test_merge_sessions import NAMED, ROW, SCHEMA, BothForms

AGGREGATES = {**NAMED, "mode": agg.mode("n"), "spread": agg.quantile([0.5], "n")}
WINDOWS = [
    windows
    for kind, trigger in product(KINDS.values(), TRIGGERS.values())
    if kind != KINDS["count"]
    for windows in variants_of(kind, trigger)
    if not windows.is_plain
]
STEP = st.one_of(
    st.lists(ROW, min_size=1, max_size=8),
    st.lists(ROW, min_size=1, max_size=8),
    st.integers(-30, 70),  # A watermark.
    st.sampled_from([1, 3, 9]).map(lambda ms: ("pass", ms)),
    st.sampled_from(["epoch", "restart", "other form"]),
)


@given(
    st.sampled_from(WINDOWS),
    st.sampled_from([(), ("user",), ("user", "x")]),
    st.lists(STEP, max_size=12),
    st.booleans(),
)
def test_panes_of_columns_are_those_of_rows(
    windows: Any, key: tuple[str, ...], steps: list[Any], merges: Any
) -> None:
    """Property: the same results in the same order, taken back and given again as over rows.

    For any trigger, lateness and clock, wherever batches and epochs end, and tasks restart, in
    either form.
    """
    named = NAMED if merges else AGGREGATES
    both = BothForms(
        windows,
        key,
        lambda c: MergePanesStage(c, "w", ColumnGroups(windows, key, named), schema=SCHEMA),
        named,
    )
    watermark_ms = MIN_MS
    for step in [*steps, MAX_MS]:
        found: list[list[Any]] = [[], []]
        if isinstance(step, list):
            rows = [dict(zip(SCHEMA.names, row, strict=False)) for row in step]
            times = [late_time(time, max(watermark_ms, -(2**40))) for *_, time in step]
            found = both.take(rows, times)
        elif isinstance(step, tuple):
            wakes_ms = [life.stage.wake_ms for life in both.lives]
            found = both.wake(both.now_ms + step[1])
            # Of records that have fired since, rows may be woken in vain.
            assert not found[0] or all(at is not None and at <= both.now_ms for at in wakes_ms)
        elif isinstance(step, str):
            both.end_epoch(restart=step != "epoch", swap=step == "other form")
        elif step > watermark_ms:
            watermark_ms = step
            found = both.advance(watermark_ms)
        assert repr(found[0]) == repr(found[1])
        stages: list[Any] = [life.stage for life in both.lives]
        assert stages[0].hold_ms == stages[1].hold_ms
        assert stages[0].open_windows == stages[1].open_windows
    both.check_late()


CORRECTED = gp.after_watermark(early=gp.every(count=5), late=gp.every(count=2))
#: None fires early by event time: how often that is depends on how many records come at once.
PROGRAMS: list[tuple[Any, tuple[str, ...], bool]] = [
    (gp.tumbling("10s").allowed_lateness("20s").accumulating(), ("shop",), False),
    (gp.tumbling("10s").triggering(CORRECTED).retracting(), (), True),
    (gp.sliding("10s", every="4s").allowed_lateness("20s").retracting(), ("shop", "till"), False),
    (gp.session("3s").retracting().allowed_lateness("1m"), ("till",), False),
    (gp.global_window().triggering(gp.every(count=7)).accumulating(), ("shop",), True),
    (gp.tumbling("10s", zone="Europe/Berlin").allowed_lateness("20s"), ("till",), False),
]
ROWS = [
    {"shop": "north" if at % 3 else "south", "till": at % 4, "price": at * 7 % 11, "at": time}
    for at in range(90)
    for time in [1_700_000_000_000 + at * 700 - (at % 9 == 8) * 17_000]
]
SALES = {"shop": str, "till": int, "price": int, "at": int}


@pytest.mark.parametrize(("windows", "key", "single"), PROGRAMS)
def test_files_are_the_same_from_columns_and_from_rows(
    tmp_path: Path, windows: Any, key: tuple[str, ...], single: Any
) -> None:
    """Results are a table from their step to their file, and rows where these are wanted."""
    tables = {}
    for form in ("columns", "rows"):
        app = gp.StreamApp("sales")
        sales = app.read(gp.rows(ROWS, schema=SALES, time="at"))
        sales = sales if form == "columns" else sales.filter(lambda _: True)
        by_key = (sales.key_by(*key) if key else sales).window(windows)
        named = {"n": gp.agg.count(), "total": gp.agg.sum("price"), "last": gp.agg.last("shop")}
        results = by_key.sum("price") if single else by_key.aggregate(**named)
        results.write(gp.parquet_folder(tmp_path / form))
        gives = {
            each.kind_given("table") for each in physical(app.plan) if each.kind == "merge_partial"
        }
        assert gives == ({"table"} if form == "columns" else set())
        gp.run(app)
        files = sorted((tmp_path / form).glob("*.parquet"))
        tables[form] = pa.concat_tables(map(pq.read_table, files))

    assert tables["columns"].num_rows > 0
    assert tables["columns"].schema == tables["rows"].schema
    assert tables["columns"].to_pylist() == tables["rows"].to_pylist()
