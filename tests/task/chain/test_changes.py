"""What has changed in a dict: compared, or noted, the same reaches the store."""

from collections import Counter
from collections.abc import Iterator
from copy import copy
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
from gearpy.state.stores.store import Section
from gearpy.task.chain.step_state import Changes
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


@example(_NOTED_AND_BACK, dict, "atoms", 100, 0)
@example(_NOTED_AND_BACK, set, "tuples", 100, 0)
@example(_NOTED_AND_BACK, set, "changed in place", 100, 0)
@given(
    BATCHES,
    st.sampled_from([dict, set]),
    st.sampled_from(["atoms", "tuples", "lists", "changed in place"]),
    st.sampled_from([0, 2, 100]),
    st.sampled_from([0, 3, 100]),
)
def test_what_is_told_adds_up_to_the_dict(
    steps: list[Any], gathers: Any, kind: str, most: int, few_from: int
) -> None:
    """Invariant: all that was told so far gives the dict back, whatever its size and values."""
    life = Life(gathers, kind, copied_max=most, encoded_max=most, few_from=few_from)
    for step in [*steps, "tell", "restart"]:
        life.take(step)


@example([*_MANY, "tell", [0], 1, [0, 90], 99, [0, 91, 90], 1, [92]], dict, "atoms", 100, 100)
@example([*_NOTED_AND_BACK, 2, [1, 1, 99], 99, [3, 98], 2], set, "changed in place", 100, 0)
@example([*_MANY, "tell", [5], 30, [5, 6], 20, "tell"], dict, "changed in place", 100, 0)
@example([*_MANY, "tell", [5], 99, [5], "tell", [5], 1, "restart"], set, "no copies", 2, 0)
@given(
    st.lists(st.one_of(BATCHES, st.lists(st.integers(1, 40), max_size=1)), max_size=9).map(
        lambda parts: [step for part in parts for step in part]
    ),
    st.sampled_from([dict, set]),
    st.sampled_from(["atoms", "tuples", "lists", "changed in place", "no copies"]),
    st.sampled_from([0, 2, 100]),
    st.sampled_from([0, 3, 100]),
)
def test_what_changes_while_the_dict_is_copied_is_told_with_the_next_epoch(
    steps: list[Any], gathers: Any, kind: str, most: int, few_from: int
) -> None:
    """Invariant: the same holds where a copy takes many steps, and whatever comes between them."""
    sizes = {"copied_max": most, "encoded_max": most, "few_from": few_from}
    with (
        patch("gearpy.task.chain.step_state.CHUNK", 3),
        patch("gearpy.task.chain.held.MERGED_AT_ONCE", 2),
        patch("gearpy.state.kinds.steps.STEP", 1),
        patch("gearpy.task.chain.held.own", side_effect=TypeError if kind == "no copies" else own),
    ):
        life = Life(gathers, kind, **sizes, steps_from=4)
        for step in [*steps, "tell", "restart"]:
            life.take(step)


class Life:
    """A dict that changes, whose changes are told, and which is restored from them."""

    def __init__(self, gathers: Any, kind: str, **sizes: Any) -> None:
        self.gathers, self.kind, self.sizes = gathers, kind, sizes
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
        self.changes = Changes(
            restored, kept, 5, gathers=self.gathers, is_restored=bool(restored), **self.sizes
        )

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
        note = [(key, copy(kept.get(key))) for key in keys]
        self.changes.note(note if self.gathers is dict else keys)

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


@pytest.mark.parametrize("gathers", [dict, set])
@pytest.mark.parametrize("most", [0, 100])
def test_only_what_has_changed_is_told(gathers: Any, most: int) -> None:
    values = Counter(range(50))
    state, kept = a_bulk()
    changes = Changes(values, kept, gathers=gathers, copied_max=most)
    changes.note([])
    changes.tell()
    first = stored(state.snapshot())

    values[7] += 2
    changes.note([(7, 3)] if gathers is dict else [7])
    changes.tell()
    second = stored(state.snapshot())
    changes.tell()

    assert len(cells_in(first)) == 50
    assert cells_in(second) == [b"\x03"]
    assert state.snapshot() is None


@pytest.mark.parametrize("gathers", [dict, set])
def test_a_large_dict_of_which_little_changes_is_copied_no_more(gathers: Any) -> None:
    values = dict.fromkeys(range(100), 0)
    state, kept = a_bulk()
    changes = Changes(values, kept, gathers=gathers, few_from=50)
    copies: list[bool] = []
    isolated = BulkState.isolated
    copied: list[int] = []

    def counted(kept: BulkState, values: Any) -> tuple[list[Any], bool]:
        found = isolated(kept, values)
        copied.append(len(found[0]))
        return found

    def epoch(number: int, keys: range) -> list[bytes | None]:
        values.update(dict.fromkeys(keys, number))
        changes.note([(key, number) for key in keys] if gathers is dict else keys)
        copied.clear()
        with patch.object(BulkState, "isolated", autospec=True, side_effect=counted):
            changes.tell()
        copies.append(100 in copied)
        return cells_in(stored(state.snapshot()))

    told = [epoch(1, range(100)), *(epoch(number, range(1)) for number in range(2, 8))]
    told += [epoch(8, range(13)), epoch(9, range(13)), epoch(10, range(1))]

    assert copies == [True] * 4 + [False] * 3 + [True] * 3
    amounts = [100, *[1] * 6, 13, 13, 1]
    assert told == [[b"%c" % number] * many for number, many in enumerate(amounts, 1)]


@pytest.mark.parametrize("most", [0, 100])
def test_most_of_a_large_dict_is_told_as_a_whole(most: int) -> None:
    values = dict.fromkeys(range(10), 1)
    state, kept = a_bulk()
    changes = Changes(values, kept, gathers=set, copied_max=most)
    changes.note(range(10))
    changes.tell()
    stored(state.snapshot())

    values.update(dict.fromkeys(range(6), 2))
    changes.note(range(6))
    changes.tell()
    told = stored(state.snapshot())

    assert sorted(cells_in(told), key=repr) == [b"\x01"] * (4 if most == 0 else 0) + [b"\x02"] * 6


@pytest.mark.parametrize("most", [0, 100])
def test_end_takes_away_what_was_told(most: int) -> None:
    values = {"a": 1}
    state, kept = a_bulk()
    changes = Changes(values, kept, gathers=set, copied_max=most)
    changes.note(["a"])
    changes.tell()
    stored(state.snapshot())
    values["b"] = 1
    changes.note(["b"])
    changes.tell_end()

    assert cells_in(stored(state.snapshot())) == [None]


def test_noted_keys_with_nan_are_told() -> None:
    values: dict[Any, int] = {NAN: 1, "a": 1, "b": 1, "c": 1}
    state, kept = a_bulk()
    changes = Changes(values, kept, gathers=set, copied_max=0, encoded_max=0)
    changes.note(values)
    changes.tell()
    stored(state.snapshot())

    values[NAN] = 2
    changes.note([float("nan")])
    changes.tell()

    assert len(cells_in(stored(state.snapshot()))) == 1
