"""Sessions of columns, whose parts are merged in columns."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.base.fields import key_getter
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.windows import SessionWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Origin
from gearpy.messages.late_time import late_time
from gearpy.messages.table import Table, Times
from gearpy.task.aggregates import merge_sessions
from gearpy.task.aggregates.columns import ColumnGroups, PartialAggregateStage
from gearpy.task.aggregates.merge_sessions import MergeSessionsStage
from gearpy.task.aggregates.rows import fold_of
from gearpy.task.aggregates.windows import WindowStage
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage
from tests.task.aggregates.test_columns import Life
from tests.task.build import a_context

SCHEMA = pa.schema({"user": pa.string(), "x": pa.float64(), "n": pa.int64()})
NAMED = {
    "n": agg.count(),
    "total": agg.sum("n"),
    "first": agg.first("n"),
    "last": agg.last("n"),
    "different": agg.distinct("n"),
    "best": agg.arg_max("n", by="x"),
    "few": agg.sum("n", where="x"),
}
ROW = st.tuples(
    st.sampled_from(["ann", "bob", None]),
    st.sampled_from([0.0, 1.5, None, float("nan")]),
    st.sampled_from([1, 2, None, 2**62]),
    st.integers(-30, 60),
)
STEP = st.one_of(
    st.lists(ROW, min_size=1, max_size=8),
    st.lists(ROW, min_size=1, max_size=8),
    st.integers(-30, 70),  # A watermark.
    st.sampled_from(["epoch", "restart", "other form"]),
)


class BothForms:
    """The same windows over rows and in columns, given the same records.

    Args:
        merging: makes the stage that merges parts.
    """

    def __init__(
        self,
        windows: Any,
        key: tuple[str, ...],
        merging: Callable[[TaskContext], Stage],
        named: Mapping[str, Aggregate] = NAMED,
    ) -> None:
        key_of = key_getter(*key) if key else None
        self.now_ms = 1000
        makes: list[Any] = [
            lambda c: WindowStage(c, "w", windows, key_of, fold_of(named), limit=3),
            merging,
        ]
        self.lives = [Life(partial(self._made, make)) for make in makes]
        self.in_columns = [False, True]
        self.partial = PartialAggregateStage(
            a_context(), "partial", ColumnGroups(windows, key, named)
        )
        self.late = [0, 0]
        self.taken = 0

    def _made(self, make: Callable[[TaskContext], Stage], context: TaskContext) -> Stage:
        context.now_ms = lambda: self.now_ms
        return make(context)

    def take(self, rows: list[dict[str, Any]], times: list[int]) -> list[list[Any]]:
        origin = Origin(0, 0, self.taken)
        self.taken += len(rows)
        has_late = any(type(time) is not int for time in times)
        found = []
        for life, in_columns in zip(self.lives, self.in_columns, strict=True):
            if not in_columns:
                batches = [Batch(rows, times, has_late, origin)]
            else:
                table = Table(pa.RecordBatch.from_pylist(rows, SCHEMA))
                batches = list(
                    self.partial.process(Batch(table, Times.of(times), has_late, origin))
                )
            found.append(results([r for each in batches for r in life.stage.process(each)]))
        return found

    def advance(self, watermark_ms: int) -> list[list[Any]]:
        return [results(list(life.stage.on_watermark(watermark_ms))) for life in self.lives]

    def wake(self, now_ms: int) -> list[list[Any]]:
        self.now_ms = now_ms
        return [results(list(life.stage.on_time(now_ms))) for life in self.lives]

    def end_epoch(self, *, restart: bool = False, swap: bool = False) -> None:
        for life in self.lives:
            life.end_epoch()
        for at, life in enumerate(self.lives if restart else []):
            self.late[at] += life.context.counters.late_records
        # What waits is partials in one form and records in the other.
        stages: list[Any] = [life.stage for life in self.lives]
        if swap and not any(len(stage._gate) for stage in stages):  # noqa: SLF001
            self.lives.reverse()
            self.late.reverse()
            makes = [life.make for life in reversed(self.lives)]
            for life, make in zip(self.lives, makes, strict=True):
                life.make = make
        for life in self.lives if restart else []:
            life.start()

    def check_late(self) -> None:
        counted = [life.context.counters.late_records for life in self.lives]
        assert self.late[0] + counted[0] == self.late[1] + counted[1]


def results(batches: list[Batch]) -> list[Any]:
    return [
        [*value, time]
        for each in batches
        for value, time in zip(each.values, each.timestamps, strict=True)
    ]


@given(
    st.sampled_from([(), ("user",), ("user", "x")]),
    st.lists(STEP, max_size=12),
    st.sampled_from([2, 1 << 16]),
)
def test_sessions_of_columns_are_those_of_rows(
    key: tuple[str, ...], steps: list[Any], merged_from: int
) -> None:
    """Property: the same results in the same order, also of late records.

    Wherever batches and epochs end, and tasks restart, in either form.
    """
    windows, watermark_ms = SessionWindows(7), MIN_MS
    both = BothForms(
        windows,
        key,
        lambda c: MergeSessionsStage(c, "w", ColumnGroups(windows, key, NAMED), schema=SCHEMA),
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_MERGED_FROM": merged_from}.items():
            patch.setattr(merge_sessions, name, value)
        for step in [*steps, MAX_MS]:
            found: list[list[Any]] = [[], []]
            if isinstance(step, list):
                rows = [dict(zip(SCHEMA.names, row, strict=False)) for row in step]
                times = [late_time(time, max(watermark_ms, -(2**40))) for *_, time in step]
                found = both.take(rows, times)
            elif isinstance(step, str):
                both.end_epoch(restart=step != "epoch", swap=step == "other form")
            elif step > watermark_ms:
                watermark_ms = step
                found = both.advance(watermark_ms)
            assert repr(found[0]) == repr(found[1])
            stages = [life.stage for life in both.lives]
            assert stages[0].hold_ms == stages[1].hold_ms
            if merged_from == 2 or step == MAX_MS:  # To count them merges them.
                assert stages[0].open_windows == stages[1].open_windows
    both.check_late()


def test_a_close_looks_at_what_closes_and_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each close of many open sessions would take as long as they are many."""
    windows, context = SessionWindows(1000), a_context()
    named = {"n": agg.count()}
    parts = PartialAggregateStage(context, "partial", ColumnGroups(windows, ("n",), named))
    stage = MergeSessionsStage(context, "w", ColumnGroups(windows, ("n",), named), schema=SCHEMA)
    stage.restore(None)

    def take(times: range) -> None:
        rows = [{"n": at} for at in times]
        table = Table(pa.RecordBatch.from_pylist(rows, SCHEMA))
        for each in parts.process(Batch(table, Times.of(times))):
            list(stage.process(each))

    take(range(1000))
    assert stage.open_windows == 1000
    looked, codes = list[int](), stage._codes  # noqa: SLF001 - what it costs is not seen

    def counted(table: pa.RecordBatch) -> Any:
        looked.append(len(table))
        return codes(table)

    monkeypatch.setattr(stage, "_codes", counted)
    take(range(1000, 1005))
    closed = [result for each in stage.on_watermark(1010) for result in each.values]

    assert [result.key for result in closed] == list(range(11))
    assert looked == [11 + 5]


@pytest.mark.parametrize("single", [False, True], ids=["named", "one"])
def test_results_of_sessions_are_a_table_where_columns_are_wanted(single: Any) -> None:
    rows = [{"user": "ann", "n": at, "at": at * 400} for at in [1, 2, 3, 9, 10]]
    app, batches, found = gp.StreamApp("sessions"), list[Any](), list[Any]()
    visits = app.read(gp.rows(rows, schema={"user": str, "n": int, "at": int}, time="at"))
    windows = visits.key_by("user").window(gp.session("1s"))
    sums = windows.sum("n") if single else windows.aggregate(total=gp.agg.sum("n"))
    sums.map_batches(batches.append).write(gp.to_list([]))
    sums.write(gp.to_list(found))
    gp.run(app)

    name = "value" if single else "total"
    assert [row[name] for each in batches for row in each.to_pylist()] == [6, 19]
    assert [each.end - each.start for each in found] == [1800, 1400]
