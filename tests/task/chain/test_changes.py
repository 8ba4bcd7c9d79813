"""What has changed in a dict: compared, or noted, the same reaches the store."""

from collections import Counter
from typing import Any
from unittest.mock import patch

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gearpy.core.base.fields import NAN
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.stores.store import Section
from gearpy.task.chain.step_state import Changes
from tests.state.build import a_state, stored


def a_bulk(sections: list[Section] | None = None) -> tuple[KeyedState, BulkState]:
    """Return the state of a task, and pairs in it."""
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
    values: dict[int, Any] = {}
    state, kept = a_bulk()
    sizes: dict[str, Any] = {"copied_max": most, "encoded_max": most, "few_from": few_from}
    changes = Changes(values, kept, 5, gathers=gathers, **sizes)
    sections: list[Section] = []
    told: dict[int, Any] = {}

    for step in [*steps, "tell", "restart"]:
        if isinstance(step, list):
            for key in step:
                values[key] = added(values.get(key), key, kind)
            changes.note([(key, values[key]) for key in step] if gathers is dict else step)
        elif step == "tell":
            changes.tell()
            sections += stored(state.snapshot())
            told = {key: added(value, None, kind) for key, value in values.items()}
        else:
            state, kept = a_bulk(sections)
            restored = list(kept.restored())
            assert restored == ([(5, told)] if told else [])
            values = dict(restored[0][1]) if restored else {}
            changes = Changes(values, kept, 5, gathers=gathers, is_restored=bool(restored), **sizes)


def added(before: Any, key: int | None, kind: str) -> Any:
    """Return a value with a key added to it; for None a copy."""
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
    """One key of many is one cell, whether all are compared or each change is noted."""
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
    """Until much of it changes again; each change reaches the store in its epoch."""
    values = dict.fromkeys(range(100), 0)
    state, kept = a_bulk()
    changes = Changes(values, kept, gathers=gathers, few_from=50)
    copies: list[bool] = []

    def epoch(number: int, keys: range) -> list[bytes | None]:
        values.update(dict.fromkeys(keys, number))
        changes.note([(key, number) for key in keys] if gathers is dict else keys)
        with patch.object(BulkState, "isolated", autospec=True, side_effect=isolated) as copied:
            changes.tell()
        copies.append(any(len(each.args[1]) == 100 for each in copied.call_args_list))
        return cells_in(stored(state.snapshot()))

    isolated = BulkState.isolated
    told = [epoch(1, range(100)), *(epoch(number, range(1)) for number in range(2, 8))]
    told += [epoch(8, range(13)), epoch(9, range(13)), epoch(10, range(1))]

    assert copies == [True] * 4 + [False] * 3 + [True] * 3
    amounts = [100, *[1] * 6, 13, 13, 1]
    assert told == [[b"%c" % number] * many for number, many in enumerate(amounts, 1)]


@pytest.mark.parametrize("most", [0, 100])
def test_most_of_a_large_dict_is_told_as_a_whole(most: int) -> None:
    """A copy is quicker than to look up each."""
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
    """And nothing that was never told."""
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
    """Records have NaNs of their own in their keys; the dict has one."""
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
