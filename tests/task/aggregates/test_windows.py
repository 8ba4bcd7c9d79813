"""The stage for any windows: late and bad records, restarts, and what it leaves behind."""

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.window.trigger import after_watermark, every
from gearpy.core.window.windows import (
    Windows,
    count_window,
    global_window,
    session,
    sliding,
    tumbling,
)
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Message
from gearpy.task.aggregates.fold import Fold, WindowFold
from gearpy.task.aggregates.windows import WindowStage, window_stage
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.rejects import Rejects
from gearpy.task.api.sides import Side
from gearpy.task.api.window_result import WindowResult
from gearpy.task.time.late import WindowLate
from tests.core.window_cases import KINDS, TRIGGERS, random_steps, variants_of
from tests.task.aggregates.test_fold_restart import Life, cells_in
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of

COUNT = Fold(
    kind="count", first=lambda _: 1, add=lambda n, _: n + 1, merge=lambda a, b: a + b, commutes=True
)
TOTAL = Fold(
    kind="fold",
    first=lambda record: record[1],
    add=lambda total, record: total + record[1],
    merge=lambda a, b: a + b,
    commutes=True,
)
JOIN = Fold(
    kind="fold",
    first=lambda record: [record[1]],
    add=lambda kept, record: [*kept, record[1]],
    merge=lambda a, b: a + b,
    result=sorted,
)


def first_of(record: tuple[Any, Any]) -> Any:
    return record[0]


def a_stage(
    windows: Windows,
    fold: Fold = JOIN,
    context: TaskContext | None = None,
    *,
    late: WindowLate = "drop",
    key: Callable[[Any], Any] | None = first_of,
    limit: int = 100,
) -> WindowStage:
    stage = WindowStage(
        context or a_context(), "windows", windows, key, fold, limit=limit, late=late
    )
    stage.restore(None)
    return stage


def flat(portions: Any) -> list[Message]:
    return [Message(*pair) for portion in portions for pair in zip(*portion, strict=True)]


@pytest.mark.parametrize(
    ("windows", "fold", "is_quick"),
    [
        (tumbling("10ms"), JOIN, True),
        (global_window(), JOIN, True),
        (sliding("10ms", "5ms"), TOTAL, True),
        (sliding("10ms", "5ms"), Fold(kind="count", first=len, add=max), True),
        (sliding("10ms", "5ms"), JOIN, False),
        (session("10ms"), TOTAL, False),
        (count_window(3), TOTAL, False),
        (tumbling("10ms").triggering(every(count=3)), TOTAL, False),
        (tumbling("10ms").allowed_lateness("1ms"), TOTAL, False),
        (tumbling("10ms", clock="processing"), TOTAL, False),
    ],
)
def test_plain_windows_get_the_faster_stage(
    windows: Windows,
    fold: Fold,
    is_quick: bool,  # noqa: FBT001 - a table
) -> None:
    stage = window_stage(a_context(), "windows", windows, first_of, fold, limit=9)

    assert type(stage) is (WindowFold if is_quick else WindowStage)


@pytest.mark.parametrize("fold", [COUNT, TOTAL])
@pytest.mark.parametrize(
    "windows",
    [
        tumbling("10ms"),
        sliding("10ms", "5ms"),
        sliding("10ms", "3ms", "1ms"),
        sliding("60ms", "1ms"),
        global_window(),
    ],
)
def test_both_stages_give_the_same_at_the_ends_of_time(windows: Windows, fold: Fold) -> None:
    begin, end = range(MIN_MS, MIN_MS + 30, 4), range(MAX_MS - 30, MAX_MS, 3)
    stages = [
        window_stage(a_context(), "w", windows, first_of, fold, limit=3),
        a_stage(windows, fold),
    ]
    stages[0].restore(None)

    for stage in stages:
        assert flat(results_of(stage, [], [])) == []
        for times in (begin, end):
            flat(results_of(stage, [("a", time % 7) for time in times], list(times)))
    early, late = (
        [flat(columns_of(each.on_watermark(at))) for each in stages] for at in (0, MAX_MS)
    )

    assert type(stages[0]) is WindowFold
    assert early[0] == early[1]
    assert late[0] == late[1]
    assert [stage.hold_ms for stage in stages] == [MAX_MS, MAX_MS]


@pytest.mark.parametrize(
    "windows",
    [
        tumbling("10ms"),
        sliding("10ms", "5ms"),
        tumbling("10ms").allowed_lateness("1ms"),
        session("5ms"),
    ],
)
def test_result_that_cannot_be_made_fails_the_task(windows: Windows) -> None:
    fold = replace(TOTAL, result=lambda total: 1 // total)
    stage = window_stage(a_context(), "my window", windows, first_of, fold, limit=9)
    stage.restore(None)
    flat(results_of(stage, [("a", 0)], [3]))

    with pytest.raises(OperatorError, match="ZeroDivisionError") as raised:
        flat(columns_of(stage.on_watermark(MAX_MS)))

    assert (raised.value.operator, raised.value.record) == ("my window", "")


@given(
    st.lists(
        st.one_of(
            st.lists(
                st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(-20, 60)),
                min_size=1,
                max_size=5,
            ),
            st.integers(-20, 80),
        ),
        max_size=15,
    ),
    st.sampled_from(
        [tumbling("10ms"), sliding("10ms", "5ms"), sliding("10ms", "3ms", "1ms"), global_window()]
    ),
    st.sampled_from([COUNT, TOTAL]),
    st.sampled_from(["drop", "restamp"]),
)
def test_both_stages_give_the_same(
    steps: list[Any], windows: Windows, fold: Fold, late: WindowLate
) -> None:
    """Property: results, order of windows, late records; which keys come first does not count."""
    contexts = [a_context(), a_context()]
    stages = [
        window_stage(contexts[0], "w", windows, first_of, fold, limit=3, late=late),
        a_stage(windows, fold, contexts[1], late=late, limit=3),
    ]
    stages[0].restore(None)
    assert isinstance(stages[0], WindowFold)
    watermark_ms = MIN_MS

    for step in [*steps, MAX_MS]:
        if isinstance(step, list):
            values, times = [each[:2] for each in step], [each[2] for each in step]
            assert all(not flat(results_of(stage, values, times)) for stage in stages)
        elif step > watermark_ms:
            watermark_ms = step
            first, second = (flat(columns_of(stage.on_watermark(step))) for stage in stages)
            assert sorted(first, key=repr) == sorted(second, key=repr)
            assert [m.timestamp for m in first] == [m.timestamp for m in second]
    assert contexts[0].counters.late_records == contexts[1].counters.late_records


THIRD = 3
CASES = [
    pytest.param(kind, trigger, id=f"{kind}, {trigger}")
    for kind, trigger in product(sorted(KINDS), sorted(TRIGGERS))
    if kind != "count" or trigger == "default"
]


@pytest.mark.parametrize(("kind", "trigger"), CASES)
def test_restarts_change_nothing(kind: str, trigger: str) -> None:
    variants = [*enumerate(variants_of(KINDS[kind], TRIGGERS[trigger]))]
    begin = len(kind + trigger) % THIRD  # Other ones of each kind and trigger.
    for number, windows in variants[begin::THIRD]:
        check_restarts(windows, seed=number)


def check_restarts(windows: Windows, seed: int) -> None:
    """Play a stream to a stage whose task restarts, and to one whose task does not."""
    rng, now = Random(seed), [1000]

    def make(context: TaskContext) -> WindowStage:
        context.now_ms = lambda: now[0]
        return WindowStage(context, "windows", windows, first_of, JOIN, limit=2)

    life, plain = Life(make), Life(make)
    for step in random_steps(1000 + seed, 30):
        if step[0] == "pass":
            now[0] += step[1]
            continue
        results = [flat(played(each.stage, step, now[0])) for each in (life, plain)]
        assert results[0] == results[1]
        assert life.stage.hold_ms == plain.stage.hold_ms
        if rng.random() < 0.7:
            life.end_epoch()
            if rng.random() < 0.7:
                life.start()
    life.end_epoch()
    stored = cells_in([each for epoch in life.sections for each in epoch])
    assert not [value for value in stored.values() if value is not None]


def played(stage: WindowStage, step: tuple[Any, ...], now_ms: int) -> Any:
    if step[0] == "record":
        _, key, value, time = step
        return results_of(stage, [(key, value)], [time])
    return (
        columns_of(stage.on_watermark(step[1]))
        if step[0] == "watermark"
        else columns_of(stage.on_time(now_ms))
    )


def test_late_records_are_counted_and_dropped() -> None:
    context = a_context()
    stage = a_stage(tumbling("10ms").allowed_lateness("5ms"), context=context)
    flat(columns_of(stage.on_watermark(14)))

    late = flat(results_of(stage, [("k", 1), ("k", 2)], [3, 3]))
    flat(columns_of(stage.on_watermark(15)))
    dropped = flat(results_of(stage, [("k", 3)], [3]))

    assert [m.value for m in late] == [
        WindowResult("k", [1], 0, 10, 0, "late"),
        WindowResult("k", [2], 0, 10, 1, "late"),
    ]
    assert (dropped, context.counters.late_records) == ([], 1)


def test_late_records_go_to_a_side() -> None:
    sent: list[Message] = []
    context = a_context()
    context.output = sent.append
    stage = a_stage(session("5ms"), context=context, late="side")
    flat(columns_of(stage.on_watermark(30)))

    flat(results_of(stage, [("k", 1)], [3]))

    assert sent == [Message(Side("late", ("k", 1)), 3)]
    assert context.counters.late_records == 1


@pytest.mark.parametrize(
    "windows", [tumbling("10ms").allowed_lateness("1ms"), session("5ms"), count_window(3)]
)
@pytest.mark.parametrize("bad", [("k", None), ([], 1), (), 7])
def test_bad_record_is_blamed_and_changes_nothing(windows: Windows, bad: Any) -> None:
    context = a_context()
    context.rejects = Rejects("skip", context.counters)
    stage = a_stage(windows, TOTAL, context)

    flat(results_of(stage, [("k", 1), bad, ("k", 2)], [1, 2, 3]))

    assert context.counters.skipped_records == 1
    assert [m.value.value for m in flat(columns_of(stage.on_watermark(MAX_MS)))] == [3]


def test_bad_record_fails_the_task_by_default() -> None:
    stage = a_stage(session("5ms"), TOTAL)

    with pytest.raises(OperatorError) as raised:
        flat(results_of(stage, [("k", 1), ("k", None)], [1, 2]))

    assert (raised.value.operator, raised.value.event_time_ms) == ("windows", 2)


def test_many_results_are_given_in_portions() -> None:
    stage = a_stage(session("5ms"), COUNT, limit=4)
    flat(results_of(stage, [(key, 0) for key in range(10)], [3] * 10))

    portions = columns_of(stage.on_watermark(10))
    first = next(portions)
    held = stage.hold_ms
    rest = list(portions)

    assert len(first[0]) == 4
    assert held == 3
    assert [len(values) for values, _ in rest] == [4, 2]


def test_firings_of_records_are_given_in_portions() -> None:
    stage = a_stage(tumbling("5ms").triggering(every(count=1)), COUNT, limit=2)

    portions = list(results_of(stage, [("k", 0)] * 5, [3] * 5))

    assert [len(values) for values, _ in portions] == [2, 2, 1]


def test_wall_time_is_asked_for() -> None:
    context = a_context()
    context.now_ms = lambda: 1000
    stage = a_stage(
        tumbling("10ms").triggering(after_watermark(early=every("7ms"))), context=context
    )
    before = stage.wake_ms

    flat(results_of(stage, [("k", 1)], [3]))

    assert (before, stage.wake_ms) == (None, 1007)
    assert [m.value for m in flat(columns_of(stage.on_time(1007)))] == [
        WindowResult("k", [1], 0, 10, 0, "early")
    ]
    assert stage.wake_ms is None


@pytest.mark.parametrize(
    "windows", [session("5ms"), count_window(2), tumbling("5ms").allowed_lateness("3ms")]
)
@pytest.mark.parametrize("epochs", [False, True], ids=["no epochs", "epochs"])
def test_keys_that_come_and_go_leave_nothing(
    windows: Windows,
    epochs: bool,  # noqa: FBT001 - a table
) -> None:
    life = Life(lambda context: WindowStage(context, "w", windows, first_of, COUNT, limit=100))

    for step in range(200):
        keys = [(f"key {step} {number}", 0) for number in range(50)]
        flat(results_of(life.stage, keys * 2, [step * 10] * 100))
        flat(columns_of(life.stage.on_watermark(step * 10 + 9)))
        if epochs and step % 10 == 9:
            life.end_epoch()

    panes, store = life.stage._panes, life.stage._store  # noqa: SLF001 - nothing else shows it
    assert not panes.panes
    assert len(panes.touched) < 2000
    assert len(getattr(store, "_stored", ())) + len(getattr(store, "_changes", ())) < 600


def test_what_is_no_windows_is_refused() -> None:
    with pytest.raises(ConfigError, match="are no windows: take tumbling"):
        a_stage(Windows())


@pytest.mark.parametrize(
    ("windows", "fold"),
    [
        (tumbling("10ms"), COUNT),
        (sliding("10ms", "5ms"), TOTAL),
        (session("10ms"), TOTAL),
        (count_window(3), JOIN),
    ],
    ids=["tumbling", "sliding", "session", "count"],
)
def test_what_windows_keep_has_a_size(windows: Windows, fold: Fold) -> None:
    context = a_context()
    assert context.keyed is not None
    stage = window_stage(context, "windows", windows, first_of, fold, limit=100)
    stage.restore(None)
    sizes = [context.keyed.size_bytes]
    for keys in (1, 1000):
        flat(results_of(stage, [(f"key {key:4}", 1) for key in range(keys)], [5] * keys))
        sizes.append(context.keyed.size_bytes)
    flat(columns_of(stage.on_watermark(MAX_MS)))
    sizes.append(context.keyed.size_bytes)

    assert sizes[0] == 0 == sizes[3]
    assert 8 < sizes[1] < 200
    assert 8_000 < sizes[2] < 200_000
