"""Late records, of a source and of windows: which they are, and what becomes of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.windows import DisjointWindows, GlobalWindows, TumblingWindows
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message, Promise
from gearpy.task.aggregates.fold import Fold, WindowFold
from gearpy.task.api.interfaces import TaskContext, TaskCounters
from gearpy.task.api.sides import Side
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.stage import Stage
from gearpy.task.time.late import (
    SOURCE_LATE,
    WINDOW_LATE,
    LateRecords,
    SourceLate,
    WindowLate,
    check_late,
)
from gearpy.wire.values.payload import encode_value
from tests.task.build import Bench
from tests.task.stage_build import Bounded, mapped


def a_batch(*times: int, before: int, after: int, bound: int | None = None) -> Batch:
    promise = Promise(before, after, bound)
    return Batch(list("abcdefgh"[: len(times)]), list(times), promise=promise)


@pytest.mark.parametrize(
    ("policy", "values", "times", "counted"),
    [
        ("keep", ["a", "b", "c", "d"], [10, 7, 20, 12], 0),
        ("drop", ["a", "c"], [10, 20], 2),
        ("restamp", ["a", "b", "c", "d"], [10, 8, 20, 18], 2),
        ("side", ["a", Side("late", "b"), "c", Side("late", "d")], [10, 7, 20, 12], 2),
    ],
)
def test_policy_decides(
    policy: SourceLate, values: list[Any], times: list[int], counted: int
) -> None:
    counters = TaskCounters()
    late = LateRecords(policy, counters)

    judged = late.judge(a_batch(10, 7, 20, 12, before=5, after=18, bound=2))

    assert (judged.values, judged.timestamps) == (values, times)
    assert counters.late_records == counted
    assert late.sets_aside == (policy == "side")


def test_record_as_old_as_the_promise_is_in_time() -> None:
    judged = LateRecords("drop", TaskCounters()).judge(a_batch(8, 7, before=8, after=8, bound=0))

    assert judged.values == ["a"]


RECORDS = st.lists(st.integers(0, 40), max_size=40)


def judged_in(
    times: list[int], sizes: list[int], *, policy: SourceLate, bound: int
) -> tuple[list[tuple[Any, int]], int]:
    """Return what passes, read so many at a time, and how many records were late."""
    reader = Bounded(list(enumerate(times)), out_of_order_ms=bound)
    counters = TaskCounters()
    late = LateRecords(policy, counters)
    out: list[tuple[Any, int]] = []
    turn = 0
    while not reader.finished:
        before_ms = reader.watermark_ms
        batch = reader.read_batch(sizes[turn % len(sizes)])
        turn += 1
        if batch is None:
            break
        batch.promise = Promise(before_ms, reader.watermark_ms, bound)
        judged = late.judge(batch)
        out += zip(judged.values, judged.timestamps, strict=True)
    return out, counters.late_records


def expected(times: list[int], *, policy: SourceLate, bound: int) -> list[tuple[Any, int]]:
    newest, out = MIN_MS, list[tuple[Any, int]]()
    for value, time in enumerate(times):
        promised = newest - bound
        if time >= promised or policy == "keep":
            out.append((value, time))
        elif policy == "restamp":
            out.append((value, promised))
        elif policy == "side":
            out.append((Side("late", value), time))
        newest = max(newest, time)
    return out


@given(
    times=RECORDS,
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=8),
    policy=st.sampled_from(SOURCE_LATE),
    bound=st.integers(0, 10),
)
def test_lateness_does_not_depend_on_batches(
    times: list[int], sizes: list[int], policy: SourceLate, bound: int
) -> None:
    """Invariant: a record is late by those before it in its partition alone."""
    out, counted = judged_in(times, sizes, policy=policy, bound=bound)
    _, counted_one_by_one = judged_in(times, [1], policy=policy, bound=bound)

    assert out == expected(times, policy=policy, bound=bound)
    assert counted == counted_one_by_one


@given(times=RECORDS, bound=st.integers(0, 10))
def test_what_passes_under_its_own_time_keeps_the_promise(times: list[int], bound: int) -> None:
    """Invariant: no record that is dropped or restamped is behind the promise any more."""
    policies: list[SourceLate] = ["drop", "restamp"]
    for policy in policies:
        out, _ = judged_in(times, [5], policy=policy, bound=bound)
        newest = MIN_MS
        for _, time in out:
            assert time >= newest - bound
            newest = max(newest, time)


@pytest.mark.parametrize("allowed", [SOURCE_LATE, WINDOW_LATE])
def test_policy_that_is_none_is_refused(allowed: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"late='ignore' is unknown: use one of .*'drop'"):
        check_late("ignore", allowed)
    for policy in allowed:
        check_late(policy, allowed)


COUNT = Fold(kind="count", first=lambda _: 1, add=lambda total, _: total + 1)


TEN = TumblingWindows(10)


def windows(late: WindowLate, assigner: DisjointWindows = TEN) -> Bench:
    def stages(context: TaskContext) -> list[Stage]:
        fold = WindowFold(
            context, "count", assigner, None, COUNT, limit=4, late=late, late_tag="late@0"
        )
        return [fold, mapped(lambda result: (result.start, result.value))]

    return Bench(lambda context: ChainTask(context, stages)).open()


@pytest.mark.parametrize(
    ("late", "values"),
    [
        ("drop", [(0, 1), (20, 1)]),
        ("restamp", [(0, 1), (20, 3)]),
        ("side", [(0, 1), Side("late@0", "b"), Side("late@0", "c"), (20, 1)]),
    ],
)
def test_record_whose_window_has_closed(late: WindowLate, values: list[Any]) -> None:
    bench = windows(late)

    bench.send(Message("a", 5), watermark_ms=20)
    bench.send(Message("b", 3), Message("c", 12), Message("d", 21), watermark_ms=30)
    bench.run()

    assert bench.target.values == values
    assert bench.runner.clock().late_records == 2
    sides = [m.timestamp for m in bench.target.messages if isinstance(m.value, Side)]
    assert sides == ([3, 12] if late == "side" else [])


@pytest.mark.parametrize("assigner", [TEN, GlobalWindows()])
def test_record_behind_the_end_of_time_has_no_window(assigner: DisjointWindows) -> None:
    bench = windows("restamp", assigner)
    bench.send(watermark_ms=MAX_MS)
    bench.run()

    bench.runner.inject(encode_value("x"), 5)
    bench.run()

    assert bench.target.values == []
    assert bench.runner.clock().late_records == 1
