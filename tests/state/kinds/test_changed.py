"""What has changed in a dict: compared, or noted, the same reaches the store."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from unittest.mock import patch

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gearpy.core.base.copies import own
from gearpy.core.base.fields import NAN
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.kinds.changed import ChangedPairs
from gearpy.state.stores.store import Section
from tests.state.build import a_state, stored


def a_bulk(sections: list[Section] | None = None) -> tuple[KeyedState, BulkState]:
    state = a_state(sections=sections or [])
    return state, state.bulk("pairs", operator="fold")


def cells_in(sections: list[Section]) -> list[bytes | None]:
    return [value for section in sections for value in msgpack.unpackb(section.body).values()]


_MANY: list[Any] = [[*range(80)]]
_FEW: list[Any] = [each for key in range(5) for each in ([key], "tell")]
#: Keys of batches, and what happens between them.
BATCHES: st.SearchStrategy[list[Any]] = st.lists(
    st.one_of(
        st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=1, max_size=1),
        st.sampled_from([["tell"], ["restart"], _MANY, _FEW]),
    ),
    max_size=15,
).map(lambda parts: [step for part in parts for step in part])


_NOTED_AND_BACK = [*_MANY, *_FEW, "restart", *_FEW, *_MANY, "tell", *_FEW]


@contextmanager
def sizes(*, copied_max: int = 1 << 20, steps_from: int = 1 << 13) -> Iterator[None]:
    with (
        patch("gearpy.state.kinds.changed.COPIED_MAX", copied_max),
        patch("gearpy.state.kinds.changed.STEPS_FROM", steps_from),
        patch("gearpy.state.kinds.changed._FEW", 5),
    ):
        yield


@example(_NOTED_AND_BACK, "atoms", 100, 0)
@example(_NOTED_AND_BACK, "tuples", 100, 0)
@example(_NOTED_AND_BACK, "changed in place", 100, 0)
@given(
    BATCHES,
    st.sampled_from(["atoms", "tuples", "lists", "changed in place"]),
    st.sampled_from([0, 2, 100]),
    st.sampled_from([0, 3, 100]),
)
def test_what_is_told_adds_up_to_the_dict(
    steps: list[Any], kind: str, most: int, large: int
) -> None:
    """Invariant: all that was told so far gives the dict back, whatever its size and values."""
    with sizes(copied_max=most, steps_from=large):
        life = Life(kind)
        for step in [*steps, "tell", "restart"]:
            life.take(step)


@example([*_MANY, "tell", [0], 1, [0, 90], 99, [0, 91, 90], 1, [92]], "atoms", 100, 100)
@example([*_NOTED_AND_BACK, 2, [1, 1, 99], 99, [3, 98], 2], "changed in place", 100, 0)
@example([*_MANY, "tell", [5], 30, [5, 6], 20, "tell"], "changed in place", 100, 100)
@example([*_MANY, "tell", [5], 99, [5], "tell", [5], 1, "restart"], "no copies", 2, 0)
@given(
    st.lists(st.one_of(BATCHES, st.lists(st.integers(1, 40), max_size=1)), max_size=9).map(
        lambda parts: [step for part in parts for step in part]
    ),
    st.sampled_from(["atoms", "tuples", "lists", "changed in place", "no copies"]),
    st.sampled_from([0, 2, 100]),
    st.sampled_from([0, 3, 100]),
)
def test_what_changes_while_the_dict_is_copied_is_told_with_the_next_epoch(
    steps: list[Any], kind: str, most: int, large: int
) -> None:
    """Invariant: the same holds where a copy takes many steps, and whatever comes between them."""
    cannot = TypeError if kind == "no copies" else own
    with (
        sizes(copied_max=most, steps_from=large),
        patch("gearpy.core.base.key_copy.STEPS_FROM", 4),
        patch("gearpy.state.kinds.changed.PIECE", 2),
        patch("gearpy.state.kinds.changed.own", side_effect=cannot),
    ):
        life = Life(kind)
        for step in [*steps, "tell", "restart"]:
            life.take(step)


class Life:
    """A dict that changes, whose changes are told, and which is restored from them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.sections: list[Section] = []
        self.told: dict[int, Any] = {}
        self.values: dict[int, Any] = {}
        self.plain: dict[int, Any] = {}  # The same without any of it, to tell the order.
        self._copying: Iterator[bool] = iter(())
        self._delta: Any = None
        self.begin({})

    def begin(self, restored: dict[int, Any]) -> None:
        self.values, self.plain = restored, dict(restored)
        self.state, kept = a_bulk(self.sections)
        if self.sections:
            assert list(kept.restored()) == ([(5, restored)] if restored else [])
        self.changes = ChangedPairs(restored, kept, 5, is_restored=bool(restored))

    def take(self, step: Any) -> None:
        if isinstance(step, list):
            self.add(step)
        elif isinstance(step, int):
            self.go_on(step)
        elif step == "tell":
            self.go_on(None)
            self.changes.tell()
            self._delta = self.state.begin_snapshot()
            self._copying = self.state.copies.steps() or iter(())
            self.told = {key: added(value, None, self.kind) for key, value in self.all().items()}
        else:
            self.go_on(None)
            self.begin(self.restored())

    def add(self, keys: list[int]) -> None:
        kept: Any = self.changes.held or self.values
        for key in keys:
            kept[key] = added(kept.get(key), key, self.kind)
            self.plain[key] = None
        self.changes.note(keys, len(keys))

    def go_on(self, steps: int | None) -> None:
        """Copy some more, or all; the changes are stored as soon as they are whole."""
        for is_copying in islice(self._copying, steps):
            if not is_copying:
                self._store()
        if steps is None:
            self._store()

    def _store(self) -> None:
        if self._delta is not None:
            self.sections += stored(self._delta)
            self._delta = None

    def all(self) -> dict[int, Any]:
        held = self.changes.held
        found = self.values | ({} if held is None else held.changed)
        assert held is not None or list(self.values) == list(self.plain)
        return found

    def restored(self) -> dict[int, Any]:
        _, kept = a_bulk(self.sections)
        restored: dict[int, Any] = dict(kept.restored()).get(5, {})
        assert restored == self.told
        return restored


def added(before: Any, key: int | None, kind: str) -> Any:
    if kind == "atoms":
        return (before or 0) + (0 if key is None else key + 1)
    more = () if key is None else (key,)
    if kind == "tuples":
        return (*(before or ()), *more)
    if kind == "lists" or key is None or before is None:
        return [*(before or ()), *more]
    before.append(key)
    return before


@pytest.mark.parametrize("most", [0, 100])
def test_only_what_has_changed_is_told(most: int) -> None:
    values = Counter(range(50))
    state, kept = a_bulk()
    with sizes(copied_max=most):
        changes = ChangedPairs(values, kept)
        changes.note([], 1)
        changes.tell()
        first = stored(state.snapshot())

        values[7] += 2
        changes.note([7], 1)
        changes.tell()
        second = stored(state.snapshot())
        changes.tell()

    assert len(cells_in(first)) == 50
    assert cells_in(second) == [b"\x03"]
    assert state.snapshot() is None


def test_a_large_dict_of_which_little_changes_is_copied_no_more() -> None:
    values = dict.fromkeys(range(100), 0)
    state, kept = a_bulk()
    changes = ChangedPairs(values, kept)
    copies: list[bool] = []
    isolated = BulkState.isolated
    copied: list[int] = []

    def counted(kept: BulkState, values: Any) -> tuple[list[Any], bool]:
        copied.append(len(values))
        return isolated(kept, values)

    def epoch(number: int, keys: range) -> list[bytes | None]:
        values.update(dict.fromkeys(keys, number))
        changes.note(keys, len(keys))
        copied.clear()
        with (
            sizes(steps_from=50),
            patch.object(BulkState, "isolated", autospec=True, side_effect=counted),
        ):
            changes.tell()
        copies.append(100 in copied)
        return cells_in(stored(state.snapshot()))

    told = [epoch(1, range(100)), *(epoch(number, range(1)) for number in range(2, 5))]
    told += [epoch(5, range(41)), epoch(6, range(41)), epoch(7, range(1)), epoch(8, range(1))]

    assert copies == [True, True, False, False, True, True, True, False]
    amounts = [100, *[1] * 3, 41, 41, 1, 1]
    assert told == [[b"%c" % number] * many for number, many in enumerate(amounts, 1)]


@pytest.mark.parametrize("most", [0, 100])
def test_most_of_a_large_dict_is_told_as_a_whole(most: int) -> None:
    values = dict.fromkeys(range(10), 1)
    state, kept = a_bulk()
    with sizes(copied_max=most):
        changes = ChangedPairs(values, kept)
        changes.note(range(10), 10)
        changes.tell()
        stored(state.snapshot())

        values.update(dict.fromkeys(range(6), 2))
        changes.note(range(6), 6)
        changes.tell()
    told = stored(state.snapshot())

    assert sorted(cells_in(told), key=repr) == [b"\x01"] * (4 if most == 0 else 0) + [b"\x02"] * 6


@pytest.mark.parametrize("most", [0, 100])
def test_end_takes_away_what_was_told(most: int) -> None:
    values = {"a": 1}
    state, kept = a_bulk()
    with sizes(copied_max=most):
        changes = ChangedPairs(values, kept)
        changes.note(["a"], 1)
        changes.tell()
        stored(state.snapshot())
        values["b"] = 1
        changes.note(["b"], 1)
        changes.tell_end()

    assert cells_in(stored(state.snapshot())) == [None]


def test_noted_keys_with_nan_are_told() -> None:
    values: dict[Any, int] = {NAN: 1, "a": 1, "b": 1, "c": 1}
    state, kept = a_bulk()
    with sizes(copied_max=0):
        changes = ChangedPairs(values, kept)
        changes.note(values, 4)
        changes.tell()
        stored(state.snapshot())

        values[NAN] = 2
        changes.note([float("nan")], 1)
        changes.tell()

    assert len(cells_in(stored(state.snapshot()))) == 1
