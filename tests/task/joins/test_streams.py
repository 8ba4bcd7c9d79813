"""The stage that joins two streams."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.join.sides import LEFT, PAIR, RIGHT
from gearpy.core.window.trigger import every
from gearpy.core.window.windows import count_window, global_window, session, sliding, tumbling
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Message
from gearpy.state.stores.store import Section
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.rejects import Midway, Rejects
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.task.api.window_result import CoGroup, JoinResult
from gearpy.task.chain.chain import ChainTask
from gearpy.task.joins.streams import JoinSpec, JoinStage, as_left, as_right, join_key
from gearpy.wire.values.payload import decode_value
from tests.core.join.join_build import STEPS, Step, columns
from tests.task.build import Bench, a_context
from tests.task.stage_build import columns_of, mapped, results_of

SPECS: dict[str, Callable[[], JoinSpec]] = {
    "tumbling": lambda: JoinSpec.over(tumbling("10ms"), how="outer"),
    "sliding": lambda: JoinSpec.over(sliding("10ms", "5ms"), how="left"),
    "session": lambda: JoinSpec.over(session("6ms"), how="right"),
    "global": lambda: JoinSpec.over(global_window()),
    "cogroup": lambda: JoinSpec.cogroup(tumbling("10ms")),
    "interval": lambda: JoinSpec.interval(before="5ms", after="10ms", how="outer"),
    "interval, inner": lambda: JoinSpec.interval(before="5ms", after="10ms"),
    "backward": lambda: JoinSpec.asof(tolerance="10ms"),
    "forward": lambda: JoinSpec.asof(tolerance="10ms", direction="forward"),
    "nearest": lambda: JoinSpec.asof(direction="nearest", how="inner"),
    "latest": JoinSpec.latest,
}


class Life:
    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec
        self.head: Any = None
        self.sections: list[Section] = []
        self.late = 0
        self.start()

    def start(self) -> None:
        self.context = a_context(batch=3)
        assert self.context.keyed is not None
        self.context.keyed.load(self.sections)
        self.stage = JoinStage(self.context, "join", self.spec)
        self.stage.restore(self.head)

    def end_epoch(self) -> None:
        assert self.context.keyed is not None
        self.late += self.context.counters.late_records
        self.context.counters.late_records = 0
        self.head = decode_state(encode_state("join", self.stage.snapshot()))
        delta = self.context.keyed.snapshot()
        if delta is not None:
            self.sections += delta.sections()
            delta.release()

    def take(self, step: Step) -> list[tuple[Any, int]]:
        if isinstance(step, int):
            portions = columns_of(self.stage.on_watermark(step))
        else:
            portions = results_of(self.stage, *columns(step))
        return [pair for portion in portions for pair in zip(*portion, strict=True)]


@given(STEPS, st.sampled_from(sorted(SPECS)), st.integers(1, 3))
def test_restarts_change_nothing(steps: list[Step], name: str, each: int) -> None:
    """Property: same results in the same order, same hold, same late records.

    Wherever epochs end, and whether the task is restarted at each end or only at some.
    """
    life, plain = Life(SPECS[name]()), Life(SPECS[name]())
    for number, step in enumerate(steps):
        assert life.take(step) == plain.take(step)
        life.end_epoch()
        if number % each == 0:
            life.start()
        assert life.stage.hold_ms == plain.stage.hold_ms
    plain.end_epoch()
    assert life.late == plain.late


@given(STEPS, st.sampled_from(sorted(SPECS)), st.randoms(use_true_random=False))
def test_interleaving_makes_no_difference(steps: list[Step], name: str, rng: Any) -> None:
    """Property: the same results, however the records between two watermarks come.

    Not for the latest value, which is that of the moment. Nor for two right records of one time as
    an as-of join takes the last of them, or the first one: those stay in their order.
    """
    if name == "latest":
        return
    results = []
    for is_shuffled in (False, True):
        life, found, merged = Life(SPECS[name]()), Counter[str](), list[Any]()
        for step in steps:
            if isinstance(step, list):
                merged += step
                continue
            if is_shuffled:
                lefts = [given for given in merged if given.side == LEFT]
                rights = [given for given in merged if given.side == RIGHT]
                merged = [(lefts if s == LEFT else rights).pop(0) for s in _order(merged, rng)]
            for begin in range(0, len(merged), 3):
                found.update(map(_text, life.take(merged[begin : begin + 3])))
            found.update(map(_text, life.take(step)))
            merged = []
        # A session may close with or without a late record, by which of them came first.
        if name == "session" and life.context.counters.late_records:
            return
        results.append(found)
    assert results[0] == results[1]


def _order(records: list[Any], rng: Any) -> list[int]:
    sides = [given.side for given in records]
    rng.shuffle(sides)
    return sides


def _text(result: tuple[Any, int]) -> str:
    value, time = result
    if isinstance(value, CoGroup):
        value = value._replace(left=sorted(value.left), right=sorted(value.right))
    return repr((value, time))


# -- as a task -------------------------------------------------------------------------------


def a_bench(spec: JoinSpec, **kwargs: Any) -> Bench:
    """Return a task that joins two inputs, with a step before and one behind it."""

    def make(context: TaskContext) -> ChainTask:
        before, behind = mapped(lambda v: v), mapped(lambda v: v)
        return ChainTask(context, lambda c: [before, JoinStage(c, "join", spec), behind])

    return Bench(make, upstream=2, key=join_key, **kwargs).open()


LEFT_OF, RIGHT_OF = as_left(lambda word: word[0]), as_right(lambda word: word[0])


def left(word: str, time: int) -> Message:
    """Return a word as the left input sends it; the key is its first letter."""
    return Message(LEFT_OF(word), time)


def right(word: str, time: int) -> Message:
    return Message(RIGHT_OF(word), time)


def test_the_input_that_is_behind_decides_when_windows_close() -> None:
    bench = a_bench(JoinSpec.over(tumbling("10ms")))

    bench.send(left("a1", 1), left("a2", 12), source=0, watermark_ms=20)
    bench.send(right("a3", 2), source=1, watermark_ms=9)
    bench.run()
    assert bench.target.messages == []

    bench.send(right("a4", 9), right("a5", 11), source=1, watermark_ms=10)
    bench.run()
    assert bench.target.messages == [
        Message(JoinResult("a", "a1", "a3", 0, 10), 9),
        Message(JoinResult("a", "a1", "a4", 0, 10), 9),
    ]

    bench.send(source=0, watermark_ms=MAX_MS)
    bench.send(source=1, watermark_ms=MAX_MS)
    bench.run()
    assert bench.target.messages[2:] == [Message(JoinResult("a", "a2", "a5", 10, 20), 19)]
    assert bench.runner.clock().late_records == 0


@pytest.mark.parametrize(
    "spec",
    [
        JoinSpec.interval(before="5ms", after="50ms", how="left"),
        JoinSpec.asof(tolerance="50ms", direction="forward"),
        JoinSpec.asof(tolerance="50ms", direction="nearest"),
    ],
)
def test_records_without_a_partner_are_not_late_behind_the_join(spec: JoinSpec) -> None:
    bench = a_bench(spec)

    def promise(watermark_ms: int) -> None:
        for source in (0, 1):
            bench.send(source=source, watermark_ms=watermark_ms)
        bench.run()
        bench.pass_time(10)
        bench.run()

    bench.send(left("a1", 7), left("b1", 20))
    promise(40)
    assert bench.target.watermark_ms == 7
    bench.send(right("a2", 45), source=1)
    promise(46)
    assert bench.target.watermark_ms == 20

    promise(100)

    assert bench.target.watermark_ms == 100
    assert bench.target.values == [
        JoinResult("a", "a1", "a2", 7, 46),
        JoinResult("b", "b1", None, 20, 21),
    ]
    assert bench.target.late == []


def test_late_records_are_counted_and_dropped() -> None:
    bench = a_bench(JoinSpec.interval(before="5ms", after="5ms"))

    for source in (0, 1):
        bench.send(source=source, watermark_ms=10)
    bench.send(left("a1", 9), right("a2", 10), left("a3", 10), watermark_ms=10)
    bench.run()

    assert bench.target.values == [JoinResult("a", "a3", "a2", 10, 11)]
    assert bench.runner.clock().late_records == 1


def test_cogroup_yields_groups() -> None:
    bench = a_bench(JoinSpec.cogroup(tumbling("10ms")))

    bench.send(left("a1", 1), right("b1", 1), left("a2", 0), watermark_ms=MAX_MS)
    bench.send(source=1, watermark_ms=MAX_MS)
    bench.run()

    assert bench.target.values == [
        CoGroup("a", ["a1", "a2"], [], 0, 10),
        CoGroup("b", [], ["b1"], 0, 10),
    ]


# -- bad records -----------------------------------------------------------------------------


def joined(a: str | None, b: str | None) -> str:
    assert a is not None
    return a + b  # type: ignore[operator]


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_a_pair_on_which_combine_raises_is_rejected_alone(policy: Any) -> None:
    bench = a_bench(JoinSpec.over(tumbling("10ms"), how="left", combine=joined), on_error=policy)

    bench.send(left("a1", 1), left("b1", 2), right("a2", 3), left("c1", 4), watermark_ms=MAX_MS)
    bench.send(source=1, watermark_ms=MAX_MS)
    bench.run()

    assert bench.target.messages == [Message("a1a2", 9)]
    counters = bench.runner.context.counters
    assert counters.skipped_records + counters.quarantined_records == 2


def test_a_pair_from_quarantine_is_combined_again() -> None:
    """It is what stands there, not one of its records; those would be late by now."""
    is_broken = True

    def combine(a: str, b: str) -> str:
        if is_broken:
            raise ValueError("broken")
        return a + b

    bench = a_bench(JoinSpec.over(tumbling("10ms"), combine=combine), on_error="quarantine")
    bench.send(left("a1", 1), right("a2", 3), watermark_ms=10)
    bench.send(source=1, watermark_ms=10)
    bench.run()
    (rejected,) = bench.runner.context.rejects.records
    assert rejected.error.operator == "join"
    assert rejected.error.cause == "ValueError: broken"
    assert rejected.error.record == "JoinResult(key='a', left='a1', right='a2', start=0, end=10)"
    value = decode_value(rejected.value)
    assert value == Midway(1, (PAIR, "a", ("a1", "a2", 0, 10)))

    is_broken = False
    bench.send(Message(value, rejected.event_time_ms), watermark_ms=10)
    bench.run()

    assert bench.target.messages == [Message("a1a2", 9)]


def test_a_pair_that_fails_ends_the_task_where_that_is_the_policy() -> None:
    bench = a_bench(JoinSpec.interval(before="5ms", after="5ms", how="left", combine=joined))
    bench.send(left("a1", 1), watermark_ms=MAX_MS)
    bench.send(source=1, watermark_ms=MAX_MS)

    with pytest.raises(OperatorError, match="TypeError") as raised:
        bench.run()

    assert raised.value.operator == "join"
    assert raised.value.source_line.startswith("return a + b")
    assert raised.value.event_time_ms == 1


@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_record_whose_key_cannot_be_hashed_is_rejected_alone(name: str) -> None:
    """The others of its batch are joined as if it had not come."""
    context = a_context()
    context.rejects = Rejects("skip", context.counters)
    stage = JoinStage(context, "join", SPECS[name]())
    stage.restore(None)
    values = [(RIGHT, "a", "r"), (LEFT, [], "bad"), (LEFT, "a", "l")]

    found = [*results_of(stage, values, [1, 1, 1]), *columns_of(stage.on_watermark(MAX_MS))]

    assert [value for values, _ in found for value in values] == [
        CoGroup("a", ["l"], ["r"], *bounds)
        if name == "cogroup"
        else JoinResult("a", "l", "r", *bounds)
        for bounds in BOUNDS.get(name, [(1, 2)])
    ]
    assert context.counters.skipped_records == 1
    assert list(results_of(stage, [(LEFT, [], "bad")], [1])) == []


@pytest.mark.parametrize("name", sorted(SPECS))
def test_keys_that_never_meet_fail_the_join(name: str) -> None:
    values = [(RIGHT, "7", "r"), (LEFT, 7, "l")] * 20
    context, tolerant = a_context(), a_context()
    tolerant.rejects = Rejects("skip", tolerant.counters)
    strict, lax = (JoinStage(each, "join", SPECS[name]()) for each in (context, tolerant))
    strict.restore(None)
    lax.restore(None)
    for stage in (strict, lax):
        _ = list(results_of(stage, values, [1] * 40))

    with pytest.raises(OperatorError, match=r"left stream are a number, such as 7, .* right text"):
        _ = list(columns_of(strict.on_watermark(MAX_MS)))
    _ = list(columns_of(lax.on_watermark(MAX_MS)))
    assert tolerant.counters.skipped_records == 0


def test_a_few_keys_that_do_not_meet_are_only_told_of(caplog: pytest.LogCaptureFixture) -> None:
    stage = JoinStage(a_context(), "join", SPECS["cogroup"]())
    stage.restore(None)

    _ = list(results_of(stage, [(RIGHT, "7", "r"), (LEFT, 7, "l")], [1, 1]))
    _ = list(columns_of(stage.on_watermark(MAX_MS)))

    assert "so no two records can ever meet" in caplog.text


#: Of the results of two records at 1 ms.
BOUNDS = {
    "tumbling": [(0, 10)],
    "cogroup": [(0, 10)],
    "sliding": [(-5, 5), (0, 10)],
    "session": [(1, 7)],
    "global": [(MIN_MS, MAX_MS)],
}


# -- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: JoinSpec.over(count_window(3)), "a join has no CountWindows: use tumbling"),
        (lambda: JoinSpec.over("10s"), r"a join takes windows such as .*, not '10s'"),  # type: ignore[arg-type]
        (
            lambda: JoinSpec.cogroup(tumbling("5ms").triggering(every(count=2))),
            "leave out the trigger",
        ),
        (lambda: JoinSpec.over(tumbling("5ms").accumulating()), r"leave out accumulating\(\)"),
        (
            lambda: JoinSpec.over(session("5ms").allowed_lateness("1s")),
            r"leave out allowed_lateness\(...\)",
        ),
        (
            lambda: JoinSpec.over(tumbling("5ms", clock="processing")),
            "leave out clock='processing'",
        ),
        (lambda: JoinSpec.over(tumbling("5ms"), how="full"), "how='full' is unknown: use one of"),  # type: ignore[arg-type]
        (lambda: JoinSpec.over(tumbling("5ms"), combine=3), "combine=3 is no function"),  # type: ignore[arg-type]
        (lambda: JoinSpec.interval(before="x", after="1ms"), "before: duration 'x'"),
        (
            lambda: JoinSpec.interval(before="1ms", after="-1ms"),
            "after: duration '-1ms' is negative",
        ),
        (lambda: JoinSpec.asof(direction="up"), "direction='up' is unknown: use one of 'back"),  # type: ignore[arg-type]
        (lambda: JoinSpec.asof(how="outer"), "how='outer' is unknown: use one of 'left', 'inner'"),  # type: ignore[arg-type]
        (lambda: JoinSpec.asof(tolerance="soon"), "tolerance: duration 'soon'"),
        (lambda: JoinSpec.latest(how="right"), "how='right' is unknown"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_are_found_when_the_join_is_made(make: Callable[[], JoinSpec], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        JoinSpec.over(
            tumbling("5ms").allowed_lateness("1ms").retracting(),
            how="all",  # type: ignore[arg-type]
            combine=1,  # type: ignore[arg-type]
        )

    assert len(raised.value.mistakes) == 4


def test_a_snapshot_of_another_join_is_refused() -> None:
    """Its records would be in other windows than they were."""
    life = Life(JoinSpec.over(tumbling("10ms")))
    life.end_epoch()
    life.spec = JoinSpec.over(tumbling("20ms"))

    with pytest.raises(
        ConfigError, match="snapshot is of: inner join, TumblingWindows, size 10 ms"
    ):
        life.start()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sliding", "left join, SlidingWindows, size 10 ms, every 5 ms"),
        ("session", "right join, session windows, 6 ms"),
        ("global", "inner join, GlobalWindows"),
        ("cogroup", "cogroup, TumblingWindows, size 10 ms"),
        ("interval", "outer interval join, 5 ms before to 10 ms after"),
        ("backward", "left as-of join, backward, 10 ms"),
        ("nearest", "inner as-of join, nearest, any distance"),
        ("latest", "left join with the latest"),
    ],
)
def test_joins_say_what_they_are(name: str, text: str) -> None:
    assert SPECS[name]().description == text


def test_stages_close() -> None:
    Life(JoinSpec.latest()).stage.close(completed=True)


@pytest.mark.parametrize("kind", sorted(SPECS))
@given(st.lists(STEPS, min_size=2, max_size=4))
def test_what_is_stored_is_as_it_was_when_the_epoch_ended(
    kind: str, epochs: list[list[Step]]
) -> None:
    """Although it is encoded beside the task, which has gone on and is then restarted."""
    life, plain = Life(SPECS[kind]()), Life(SPECS[kind]())
    for steps, later in pairwise(epochs):
        for step in steps:
            assert Counter(map(repr, life.take(step))) == Counter(map(repr, plain.take(step)))
        head = decode_state(encode_state("join", life.stage.snapshot()))
        assert life.context.keyed is not None
        delta = life.context.keyed.snapshot()
        for step in later:  # What comes of it is taken back.
            life.take(step)
        life.sections += [] if delta is None else delta.sections()

        life.head = head
        life.start()

    results = [life.take(MAX_MS), plain.take(MAX_MS)]
    assert Counter(map(repr, results[0])) == Counter(map(repr, results[1]))


@pytest.mark.parametrize("name", sorted(SPECS))
def test_what_a_join_keeps_has_a_size(name: str) -> None:
    """Far more with a thousand large records than with one; nothing without any."""
    life = Life(SPECS[name]())
    keyed = life.context.keyed
    assert keyed is not None
    nothing = keyed.size_bytes
    take(life, "a", "x")
    few = keyed.size_bytes
    for key in range(1000):
        take(life, key, "x" * 100)
    many = keyed.size_bytes
    life.end_epoch()
    stored = keyed.size_bytes

    assert nothing == 0
    assert 0 < few < 1000
    assert 100_000 < many < 2_000_000
    assert stored == pytest.approx(many, rel=0.1), "others of them may be looked at"


def take(life: Life, key: Any, value: str) -> None:
    for _ in results_of(life.stage, [(LEFT, key, value), (RIGHT, key, value)], [3, 3]):
        pass
