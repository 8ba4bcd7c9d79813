"""Folds by key over restarts: what they store, and how they go on from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.aggregates import collect, count
from gearpy.core.window.windows import GlobalWindows, SessionWindows, TumblingWindows
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS
from gearpy.state.stores.store import Section
from gearpy.task.aggregates.fold import Fold, RunningFold, WindowFold
from gearpy.task.aggregates.row_count import PartialCount, key_of_part, merging_counts
from gearpy.task.aggregates.rows import fold_of
from gearpy.task.aggregates.windows import WindowStage
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.task.chain.event_gate import Waits
from gearpy.task.joins.streams import JoinSpec, JoinStage, as_left, as_right
from gearpy.wire.values.payload import decode_value, encode_value
from gearpy.wire.values.records import register_record
from tests.task.aggregates.test_fold import COUNT, FOLDS, JOIN, by_three, results_at
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of


class Life:
    """A stage whose task ends epochs and is restarted; all snapshots of it are kept."""

    def __init__(self, make: Callable[[TaskContext], Any]) -> None:
        self.make = make
        self.head: Any = None
        self.sections: list[list[Section]] = []
        self.start()

    def start(self) -> None:
        """Begin, or go on from the last snapshot, with whatever was put out or counted gone."""
        self.context = a_context()
        assert self.context.keyed is not None
        self.context.keyed.load([each for epoch in self.sections for each in epoch])
        self.stage = self.make(self.context)
        self.stage.restore(self.head)

    def end_epoch(self) -> list[Section]:
        """Take a snapshot, store it; return what is new in it."""
        assert self.context.keyed is not None
        self.head = decode_state(encode_state("fold", self.stage.snapshot()))
        delta = self.context.keyed.snapshot()
        new = [] if delta is None else list(delta.sections())
        if delta is not None:
            delta.release()
        self.sections.append(new)
        return new


def cells_in(sections: list[Section]) -> dict[bytes, bytes | None]:
    return {
        cell: value for section in sections for cell, value in msgpack.unpackb(section.body).items()
    }


@given(
    st.lists(st.one_of(st.lists(st.integers(0, 20), min_size=1, max_size=9), st.just(None))),
    st.sampled_from(sorted(FOLDS)),
)
def test_restarted_running_fold_goes_on(epochs: list[list[int] | None], name: str) -> None:
    """Property: the same updates, wherever epochs end and tasks restart."""

    def make(context: TaskContext) -> RunningFold:
        return RunningFold(context, "fold", by_three, FOLDS[name][0])

    life, plain = Life(make), Life(make)
    for values in epochs:
        if values is None:
            life.start()
            continue
        updates = [list(results_of(each.stage, values, values)) for each in (life, plain)]
        assert updates[0] == updates[1]
        life.end_epoch()


def test_an_epoch_stores_what_has_changed() -> None:
    life = Life(lambda context: RunningFold(context, "fold", lambda value: value, COUNT))
    list(results_of(life.stage, list(range(50)), [0] * 50))

    first = life.end_epoch()
    list(results_of(life.stage, [7, 7], [0, 0]))
    second = life.end_epoch()
    third = life.end_epoch()

    assert len(cells_in(first)) == 50
    assert list(cells_in(second).values()) == [b"\x03"]
    assert third == []


@pytest.mark.parametrize("fold", [COUNT, JOIN], ids=["count", "join"])
def test_closed_window_deletes_its_cells(fold: Fold) -> None:
    windows = TumblingWindows(10)
    life = Life(lambda context: WindowFold(context, "fold", windows, by_three, fold, limit=9))
    list(results_of(life.stage, [0, 1], [5, 6]))
    stored = cells_in(life.end_epoch())
    list(results_of(life.stage, [2, 2], [7, 17]))
    results_at(life.stage, 20)

    deleted = cells_in(life.end_epoch())

    assert len(stored) == 2
    assert deleted == dict.fromkeys(stored)


class Point(NamedTuple):
    x: int
    y: int


register_record(Point, "tests.aggregate.Point")


@pytest.mark.parametrize("key", ["ada", 7, 2.0, True, None, b"x", (1, "a"), Point(1, 2), 2.5])
def test_window_results_have_the_keys_that_records_had(key: Any) -> None:
    """After a restart too: equal is not enough for who reads the results."""
    life = Life(
        lambda context: WindowFold(context, "fold", GlobalWindows(), lambda _: key, COUNT, limit=9)
    )
    list(results_of(life.stage, ["record"], [5]))
    life.end_epoch()
    life.start()

    ((result,),) = [portion for portion, _ in columns_of(life.stage.on_watermark(MAX_MS))]

    assert (result.key, type(result.key)) == (key, type(key))
    assert result.value == 1


def add_in_place(kept: list[int], value: int) -> list[int]:
    kept.append(value)
    return kept


def test_values_changed_in_place_are_noticed() -> None:
    fold = Fold(kind="fold", first=lambda value: [value], add=add_in_place)
    life = Life(lambda context: RunningFold(context, "fold", by_three, fold))
    list(results_of(life.stage, [3, 1], [0, 0]))
    life.end_epoch()
    list(results_of(life.stage, [6], [0]))

    changed = cells_in(life.end_epoch())

    assert [decode_value(value or b"") for value in changed.values()] == [[3, 6]]


def test_value_that_cannot_be_stored_fails_the_task() -> None:
    fold = Fold(kind="fold", first=lambda _: object(), add=lambda kept, _: kept)
    life = Life(lambda context: RunningFold(context, "my fold", by_three, fold))
    life.stage.name = "my fold"
    list(results_of(life.stage, [3], [0]))

    with pytest.raises(OperatorError, match=r"its snapshot cannot be stored: .*object") as raised:
        life.end_epoch()
    assert raised.value.operator == "my fold"


# -- NaN in keys -----------------------------------------------------------------------------


def a_nan_key(value: int) -> Any:
    return (float("nan"), "a") if value % 2 else float("nan")


NAN_STAGES: dict[str, Callable[[TaskContext], Any]] = {
    "count": lambda context: WindowFold(
        context, "fold", GlobalWindows(), a_nan_key, COUNT, limit=9
    ),
    "fold": lambda context: WindowFold(
        context,
        "fold",
        GlobalWindows(),
        a_nan_key,
        Fold(kind="fold", first=lambda _: 1, add=lambda total, _: total + 1),
        limit=9,
    ),
    "aggregate": lambda context: WindowFold(
        context,
        "fold",
        GlobalWindows(),
        a_nan_key,
        Fold(
            kind="fold",
            first=lambda _: (1, 0),
            add=lambda total, _: total,
            loop=fold_of({"n": count(), "all": collect()}).loop,
            result=lambda kept: kept[0],
        ),
        limit=9,
    ),
    "session": lambda context: WindowStage(
        context,
        "fold",
        SessionWindows(100),
        a_nan_key,
        Fold(
            kind="fold",
            first=lambda _: 1,
            add=lambda total, _: total + 1,
            merge=lambda total, other: total + other,
        ),
        limit=9,
    ),
}


@pytest.mark.parametrize("name", NAN_STAGES)
def test_every_nan_in_keys_is_one_key_over_restarts(name: str) -> None:
    """A NaN equals nothing, so each would be a key of a dict, and all of them one stored cell."""
    life = Life(NAN_STAGES[name])
    for _ in range(3):
        list(results_of(life.stage, [1, 2, 3, 4, 5], [5] * 5))
        list(results_of(life.stage, [1, 2], [6] * 2))
        life.end_epoch()
        life.start()

    results = [message.value for message in results_at(life.stage, MAX_MS)]

    assert sorted((repr(each.key), each.value) for each in results) == [
        ("(nan, 'a')", 12),
        ("nan", 9),
    ]


def test_keys_of_sets_are_counted_once() -> None:
    """They may have a NaN inside, so they are looked at once more; others stay as they are."""
    life = Life(
        lambda context: WindowFold(
            context, "fold", GlobalWindows(), lambda n: frozenset([n % 2, "a"]), COUNT, limit=9
        )
    )
    list(results_of(life.stage, [1, 2, 3, 4, 5], [5] * 5))
    list(results_of(life.stage, [1, 2], [6] * 2))

    results = [message.value for message in results_at(life.stage, MAX_MS)]

    assert {each.key: each.value for each in results} == {
        frozenset([1, "a"]): 4,
        frozenset([0, "a"]): 3,
    }


def test_nan_in_parts_that_have_travelled_is_one_key() -> None:
    part = PartialCount(a_context(), "part", GlobalWindows(), a_nan_key, limit=9)
    life = Life(
        lambda context: WindowFold(
            context, "fold", GlobalWindows(), key_of_part, merging_counts(COUNT), limit=9
        )
    )
    for _ in range(3):
        list(results_of(part, [1, 2, 3, 4], [5] * 4))
        ((parts, times),) = columns_of(part.drain())
        assert len(parts) == 2
        list(results_of(life.stage, decode_value(encode_value(parts)), times))
        life.end_epoch()
        life.start()

    results = [message.value for message in results_at(life.stage, MAX_MS)]

    assert sorted((repr(each.key), each.value) for each in results) == [
        ("(nan, 'a')", 6),
        ("nan", 6),
    ]


@pytest.mark.parametrize("waits", ["late", "all"])
def test_join_finds_partners_of_nan_over_restarts(waits: Waits) -> None:
    spec = JoinSpec.over(TumblingWindows(10))
    life = Life(lambda context: JoinStage(context, "join", spec, waits=waits))
    left, right = as_left(a_nan_key), as_right(a_nan_key)
    list(results_of(life.stage, [left(2), left(4)], [5, 5]))
    life.end_epoch()
    life.start()
    out = list(results_of(life.stage, [right(6)], [6])) + list(
        columns_of(life.stage.on_watermark(MAX_MS))
    )

    assert sorted((each.left, each.right) for rows, _ in out for each in rows) == [(2, 6), (4, 6)]
