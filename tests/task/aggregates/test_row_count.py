"""Counts of rows in two parts, beside counts in one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window import aggregates as agg
from gearpy.core.window.windows import GlobalWindows, TumblingWindows
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch
from gearpy.task.aggregates.fold import Fold, WindowFold
from gearpy.task.aggregates.row_count import PartialCount, key_of_part, merging_counts
from gearpy.task.aggregates.rows import fold_of
from gearpy.task.api.interfaces import TaskCounters
from gearpy.task.api.rejects import Rejects
from gearpy.task.chain.chain import ChainTask
from tests.task.build import a_context
from tests.task.stage_build import Columns, columns_of, results_of

COUNT = fold_of(agg.count())
TEN = TumblingWindows(10)


def by_three(value: int) -> int:
    return value % 3


def a_partial(windows: TumblingWindows | GlobalWindows = TEN, limit: int = 100) -> PartialCount:
    return PartialCount(a_context(), "partial", windows, by_three, limit=limit)


def a_merge(
    windows: TumblingWindows | GlobalWindows = TEN, fold: Fold = COUNT
) -> tuple[WindowFold, TaskCounters]:
    context, merging = a_context(), merging_counts(fold)
    merge = WindowFold(context, "merge", windows, key_of_part, merging, limit=100)
    return merge, context.counters


def give(stage: Any, pairs: list[tuple[int, int]]) -> list[Columns]:
    """Let a stage take some numbers with their times; return what it yields."""
    values, times = [value for value, _ in pairs], [time for _, time in pairs]
    return list(results_of(stage, values, times))


def rows(portions: Any) -> list[tuple[Any, int]]:
    return [pair for portion in portions for pair in zip(*portion, strict=True)]


@given(
    st.sampled_from([TEN, GlobalWindows()]),
    st.lists(
        st.one_of(
            st.lists(st.tuples(st.integers(0, 8), st.integers(0, 60)), max_size=12),
            st.integers(1, 30),
            st.just("epoch"),
        ),
        max_size=12,
    ),
)
def test_two_parts_count_as_one(windows: TumblingWindows | GlobalWindows, steps: list[Any]) -> None:
    context = a_context()
    whole = WindowFold(context, "whole", windows, by_three, COUNT, limit=100)
    partial, (merge, counters) = a_partial(windows), a_merge(windows)
    watermark_ms, expected, results = 0, [], []
    for step in [*steps, MAX_MS]:
        if isinstance(step, list):
            give(whole, step)
            for portion in give(partial, step):
                give(merge, list(zip(*portion, strict=True)))
            continue
        for portion in columns_of(partial.drain()):
            give(merge, list(zip(*portion, strict=True)))
        if step == "epoch":
            partial.snapshot()
            partial = a_partial(windows)
            partial.restore(None)
            rows(columns_of(partial.on_watermark(watermark_ms)))
            continue
        watermark_ms = min(MAX_MS, watermark_ms + step)
        assert rows(columns_of(partial.on_watermark(watermark_ms))) == []
        expected += rows(columns_of(whole.on_watermark(watermark_ms)))
        results += rows(columns_of(merge.on_watermark(watermark_ms)))

    assert sorted(results, key=str) == sorted(expected, key=str)
    assert counters.late_records == context.counters.late_records


def test_numbers_wait_for_event_time() -> None:
    partial = a_partial(limit=2)

    assert give(partial, [(1, 8), (4, 7), (0, 9), (2, 11), (5, 3)]) == []
    assert partial.hold_ms == 3
    assert list(columns_of(partial.on_watermark(5))) == [
        ([(1, 2), (0, 1)], [3, 3]),
        ([(2, 1)], [3]),
        ([(2, 1)], [11]),
    ]
    assert partial.hold_ms == MAX_MS


def test_records_without_a_key_are_left_out() -> None:
    context = a_context()
    context.rejects = Rejects("skip", context.counters, "1.0")
    partial = PartialCount(context, "partial", TEN, lambda value: 6 // value, limit=10)

    assert give(partial, [(0, 1)]) == []
    assert partial.hold_ms == MAX_MS
    give(partial, [(2, 3), (0, 1), (3, 2)])
    assert rows(columns_of(partial.drain())) == [((3, 1), 1), ((2, 1), 1)]
    assert context.counters.skipped_records == 2


def test_chain_sends_what_waits_before_a_snapshot() -> None:
    task = ChainTask(a_context(), lambda _: [a_partial()])
    task.on_start(0)
    list(task.on_batch(Batch([1, 4, 2], [1, 2, 3])))

    assert [batch.values for batch in task.before_snapshot()] == [[(1, 2), (2, 1)]]
    assert list(task.before_snapshot()) == []
    task.snapshot()
