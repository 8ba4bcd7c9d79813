"""Steps whose state is copied in steps after an epoch, while records go on coming."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.fields import NAN
from gearpy.core.window.aggregates import collect, count
from gearpy.core.window.trigger import after_watermark, every
from gearpy.core.window.windows import (
    SlidingWindows,
    TumblingWindows,
    Windows,
    count_window,
    session,
    sliding,
)
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.state.stores.store import Section
from gearpy.task.aggregates.fold import Fold, RunningFold, WindowFold
from gearpy.task.aggregates.row_count import merging_counts
from gearpy.task.aggregates.rows import RunningAggregate, fold_of
from gearpy.task.aggregates.windows import WindowStage
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.task.chain.event_gate import EventGate, OrderedStage
from gearpy.task.joins.streams import JoinSpec, JoinStage
from tests.core.pieces import tiny_pieces
from tests.task.aggregates.test_fold import COUNT, JOIN, results_at
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of

GROWING: Final = Fold(
    kind="fold",
    first=lambda value: [value],
    add=lambda kept, value: kept.append(value) or kept,
    merge=lambda kept, other: kept + other,
    commutes=True,
)
BOTH: Final = fold_of({"all": collect(lambda value: value), "n": count()})
EARLY: Final = TumblingWindows(20).triggering(after_watermark(early=every(count=2)))
_KEYS: Final[list[Any]] = ["a", "b", "c", 7, (1, "x"), NAN, "d", "e"]

STAGES: Final[dict[str, Callable[[TaskContext], Any]]] = {
    "running count": lambda context: RunningFold(context, "fold", key_of, COUNT),
    "running join": lambda context: RunningFold(context, "fold", key_of, JOIN),
    "running list": lambda context: RunningFold(context, "fold", key_of, GROWING),
    "running rows": lambda context: RunningAggregate(context, "fold", key_of, BOTH),
    "count": lambda context: a_window(context, COUNT),
    "list": lambda context: a_window(context, GROWING),
    "rows": lambda context: a_window(context, BOTH),
    "pieces of counts": lambda context: WindowFold(
        context, "fold", SlidingWindows(40, 10), key_of, COUNT, limit=3
    ),
    "pieces of lists": lambda context: WindowFold(
        context, "fold", SlidingWindows(40, 10), key_of, GROWING, limit=3
    ),
    "early windows": lambda context: with_panes(context, EARLY.accumulating(), JOIN),
    "early windows of lists": lambda context: with_panes(context, EARLY.retracting(), GROWING),
    "early windows that begin anew": lambda context: with_panes(context, EARLY, GROWING),
    "sliding windows of lists": lambda context: with_panes(
        context, sliding("40ms", "20ms").allowed_lateness("20ms"), GROWING
    ),
    "sessions": lambda context: with_panes(context, session("10ms"), GROWING),
    "sessions that fire twice": lambda context: with_panes(
        context, session("10ms").allowed_lateness("20ms").accumulating(), GROWING
    ),
    "count windows": lambda context: with_panes(context, count_window(3), GROWING),
    "window join": lambda context: a_join(context, JoinSpec.over(TumblingWindows(20))),
    "session join": lambda context: a_join(context, JoinSpec.over(session("10ms"), how="outer")),
    "interval join": lambda context: a_join(
        context, JoinSpec.interval(before="5ms", after="20ms", how="outer")
    ),
    "as-of join": lambda context: a_join(
        context, JoinSpec.asof(direction="nearest", tolerance="9ms")
    ),
    "join with the latest": lambda context: a_join(context, JoinSpec.latest()),
    "waiting records": lambda context: OrderedStage(
        context,
        RunningFold(context, "fold", key_of, COUNT),
        EventGate(context, key_of, waits="all"),
    ),
}


def key_of(value: int) -> Any:
    key = _KEYS[value % len(_KEYS)]
    return float("nan") if key is NAN else key


def with_panes(context: TaskContext, windows: Windows, fold: Fold) -> WindowStage:
    return WindowStage(context, "fold", windows, key_of, fold, limit=3)


def a_join(context: TaskContext, spec: JoinSpec) -> "Joining":
    return Joining(context, "join", spec)


class Joining(JoinStage):
    def process(self, batch: Batch) -> Iterator[Batch]:
        values = [(each % 2, key_of(each // 2), each) for each in batch.values]
        return super().process(batch.giving(values, batch.timestamps))


def a_window(context: TaskContext, fold: Fold) -> WindowFold:
    return WindowFold(context, "fold", TumblingWindows(20), key_of, fold, limit=3)


@pytest.fixture(autouse=True, scope="module")
def tiny_steps() -> Iterator[None]:
    with (
        tiny_pieces(),
        patch("gearpy.core.base.key_copy.STEPS_FROM", 1),
        patch("gearpy.core.base.key_copy.PIECE", 1),
        patch("gearpy.state.kinds.changed.PIECE", 1),
        patch("gearpy.state.kinds.changed.STEPS_FROM", 4),
        patch("gearpy.core.join.changes.PIECE", 1),
        patch("gearpy.task.chain.event_gate.PIECE", 1),
    ):
        yield


class Life:
    """A stage whose task ends epochs; all snapshots are kept, as soon as they are whole."""

    def __init__(self, make: Callable[[TaskContext], Any]) -> None:
        self.make = make
        self.head: Any = None
        self.sections: list[Section] = []
        self.start()

    def start(self) -> None:
        self.context = a_context()
        assert self.context.keyed is not None
        self.context.keyed.load(self.sections)
        self.stage = self.make(self.context)
        self.stage.restore(self.head)
        self._steps: Iterator[bool] = iter(())
        self._delta: Any = None

    def end_epoch(self) -> None:
        assert self.context.keyed is not None
        self.go_on(None)
        self.head = decode_state(encode_state("fold", self.stage.snapshot()))
        self._delta, steps = self.context.keyed.begin_snapshot()
        self._steps = steps or iter(())

    def go_on(self, steps: int | None) -> None:
        for is_copying in islice(self._steps, steps):
            if not is_copying:
                self._store()
        if steps is None:
            self._store()

    def _store(self) -> None:
        if self._delta is not None:
            self.sections += self._delta.sections()
            self._delta.release()
        self._delta = None


@given(
    st.lists(
        st.one_of(
            st.lists(st.tuples(st.integers(0, 20), st.integers(-9, 60)), min_size=1, max_size=9),
            st.integers(-9, 80),
            st.sampled_from(["end", "end", "restart"]),
        ),
        max_size=16,
    ),
    st.integers(0, 4),
    st.sampled_from(sorted(STAGES)),
)
def test_nothing_tells_that_an_epoch_is_still_copied(
    events: list[Any], steps: int, name: str
) -> None:
    """Property: the same results, also after a restart from the snapshot; until then in order.

    So what is stored is the state at the end of the epoch, whatever came while it was copied.
    """
    check_results(events, steps, name)


_ALL: Final = [(number, number % 9) for number in range(20)]


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("name", STAGES)
def test_all_keys_may_change_while_they_are_copied(name: str, steps: int) -> None:
    later = [(value, time_ms + 12) for value, time_ms in _ALL]
    for passed in ([], [5], [21], [41, later]):
        check_results([_ALL, "end", _ALL, *passed, "restart", later], steps, name)
        check_results([_ALL, "end", _ALL, "end", later, *passed, _ALL, "restart"], steps, name)


def check_results(events: list[Any], steps: int, name: str) -> None:
    """See that a step gives what one gives that is never copied; ``steps`` after each event."""
    order: Callable[[Any], Any] = list
    life, plain = Life(STAGES[name]), Life(STAGES[name])
    since: list[tuple[Any, list[str]]] = []  # What a restart forgets: it comes again.
    reached_ms = MIN_MS
    for each in [*events, "end", MAX_MS, "restart", MAX_MS]:
        event = each
        if isinstance(each, int):
            event = reached_ms = max(reached_ms, each)
        elif name == "waiting records" and isinstance(each, list):  # None is late, but as marked.
            event = [(value, max(time_ms, reached_ms)) for value, time_ms in each]
        if event == "end":
            life.end_epoch()
            since = []
        elif event == "restart":
            life.go_on(None)
            life.start()
            order = sorted
            for past, results in since:
                assert sorted(outcome(life.stage, past)) == sorted(results)
        else:
            results = outcome(plain.stage, event)
            assert order(outcome(life.stage, event, partial(life.go_on, 1))) == order(results)
            since.append((event, results))
        life.go_on(steps)


def outcome(stage: Any, event: Any, between: Callable[[], None] = lambda: None) -> list[str]:
    """Return the output of a stage, for records or when event time moves; copies go on between."""
    if isinstance(event, int):
        portions = columns_of(stage.on_watermark(event))
    else:
        portions = results_of(stage, *map(list, zip(*event, strict=True)))
    results: list[str] = []
    for portion in portions:
        results += map(repr, zip(*portion, strict=True))
        between()
    return results


def test_parts_of_counts_are_merged_beside() -> None:
    life = Life(
        lambda context: WindowFold(
            context,
            "fold",
            TumblingWindows(20),
            lambda part: part[0],
            merging_counts(fold_of(count())),
            limit=3,
        )
    )
    parts = [(key, number) for number, key in enumerate(_KEYS)]
    list(results_of(life.stage, parts, [1] * len(parts)))
    life.end_epoch()
    list(results_of(life.stage, [*parts, ("new", 5)], [1] * (len(parts) + 1)))
    life.go_on(None)

    life.start()
    (result,) = [each.value for each in results_at(life.stage, 20) if each.value.key == "c"]
    assert result.value == 2
