"""Pairs that a part of a task keeps by itself: what is stored of them, and given back."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import key_group
from gearpy.errors import OperatorError, ProtocolError
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.stores.store import Section
from tests.state.build import a_state, changes_of, put


def a_bulk(
    sections: Iterable[Section] = (), *, is_keyed: bool = True
) -> tuple[KeyedState, BulkState]:
    state = a_state(sections=sections)
    return state, state.scope("stage").bulk("pairs", operator="my fold", is_keyed=is_keyed)


def restored(sections: Iterable[Section]) -> dict[Any, dict[Any, Any]]:
    return dict(a_bulk(sections)[1].restored())


KEYS = st.one_of(
    st.text(),
    st.integers(),
    st.none(),
    st.booleans(),
    st.binary(),
    st.tuples(st.integers(), st.text()),
    st.floats(allow_nan=False),
    st.dates(),
)
VALUES = st.one_of(
    st.integers(),
    st.text(),
    st.none(),
    st.floats(allow_nan=False),
    st.binary(),
    st.decimals(allow_nan=False),
    st.tuples(st.integers(), st.binary()),
    st.lists(st.integers()),
    st.just(1 << 80),
)


@given(st.dictionaries(KEYS, VALUES, max_size=8), st.sampled_from([None, 5, ("a", 1)]))
def test_pairs_come_back_as_they_were(pairs: dict[Any, Any], namespace: Any) -> None:
    """Keys and values with their types; under their namespace."""
    state, kept = a_bulk()
    put(kept, pairs, namespace)

    found = restored(changes_of(state)).get(namespace, {})

    assert found == pairs
    assert set(map(repr, found.items())) == set(map(repr, pairs.items()))


def test_what_was_told_last_counts() -> None:
    state, kept = a_bulk()
    put(kept, {"a": 1, "b": 1, "c": 1})
    sections = changes_of(state)
    put(kept, {"a": 2})
    kept.delete({"b": 1, "a": 9}, count=1)
    kept.delete(["c"])
    put(kept, {"c": 3})
    sections += changes_of(state)

    assert restored(sections) == {None: {"a": 2, "c": 3}}


def test_with_what_was_before_only_differences_are_stored() -> None:
    state, kept = a_bulk()
    big = 10**12
    now, before = [big, b"\x91\x01", 1, 2], [big, b"\x91" + b"\x01", True]
    kept.put_all(["a", "b", "c", "d", "later"], now, before=before)

    assert restored(changes_of(state)) == {None: {"c": 1, "d": 2}}


def test_delta_can_be_read_again_until_it_is_released() -> None:
    state, kept = a_bulk()
    kept.put_all(["a"], [1])
    delta = state.snapshot()
    assert delta is not None
    first, second = list(delta.sections()), list[Section]()

    thread = threading.Thread(target=lambda: second.extend(delta.sections()))
    thread.start()
    thread.join()
    delta.release()

    assert first == second
    assert first


def test_release_frees_what_was_before_and_leaves_what_is_needed() -> None:
    state, kept = a_bulk()
    keys, before, now, closed = ["a"], [1], [2], {"x": 1}
    kept.put_all(keys, now, before=before, is_last=False)
    kept.delete(closed, 7, count=1)

    changes_of(state)

    assert (keys, before, now, closed) == (["a"], [], [2], {})


def test_nothing_told_is_nothing_stored() -> None:
    assert a_bulk()[0].snapshot() is None


def test_other_state_lives_beside_it() -> None:
    state, kept = a_bulk()
    visits = state.value("visits")
    state.key = "ada"
    visits.set(5)
    put(kept, {"ada": 1}, 3)
    bodies = [msgpack.unpackb(section.body) for section in changes_of(state)]
    together = Section(
        key_group("ada"), msgpack.packb({k: v for b in bodies for k, v in b.items()})
    )

    after, pairs = a_bulk([together])
    visits = after.value("visits")
    after.key = "ada"

    assert dict(pairs.restored()) == {3: {"ada": 1}}
    assert visits.get() == 5
    assert list(after.keys("visits")) == ["ada"]
    assert after.snapshot() is None, "nothing has changed"


def test_pairs_that_nobody_asks_for_are_not_lost() -> None:
    state, kept = a_bulk()
    put(kept, {"a": 1})
    sections = changes_of(state)

    between = a_state(sections=sections)
    sections += changes_of(between)

    assert restored(sections) == {None: {"a": 1}}


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, b"x", ([1],), (1, ((2, [3]),)), (((((1,),),),),), (1, {2})]
)
def test_what_may_change_is_encoded_at_once(value: Any) -> None:
    """Bytes too: else nobody could tell them from what was encoded."""
    isolated, can_change = a_bulk()[1].isolated([value, 1])

    assert can_change
    assert set(map(type, isolated)) == {bytes}


def test_given_values_are_encoded_when_they_are_stored() -> None:
    _, kept = a_bulk()
    keys, given = ["a", "c"], [[1, {"b": [2]}], [None]]
    put(kept, {"a": 1, "c": [2]})
    kept.put_all(keys, given)
    delta = kept.snapshot()
    assert delta is not None

    sections = list(delta.sections())
    delta.release()

    assert restored(sections) == {None: {"a": [1, {"b": [2]}], "c": [None]}}
    assert not keys
    assert not given


def unknown_key() -> object:
    """Return a key of a class that other processes would not find."""

    @dataclass(frozen=True)
    class UnknownKey:
        number: int

    return UnknownKey(1)


def test_value_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(OperatorError, match="snapshot cannot be stored") as raised:
        a_bulk()[1].isolated([object()])
    assert raised.value.operator == "my fold"


def test_given_value_that_cannot_be_stored_is_refused_when_it_is_encoded() -> None:
    state, kept = a_bulk()
    kept.put_all(["a"], [[object()]])

    with pytest.raises(OperatorError, match="snapshot cannot be stored") as raised:
        changes_of(state)
    assert raised.value.operator == "my fold"


def test_key_that_cannot_be_stored_is_refused_when_it_is_encoded() -> None:
    state, kept = a_bulk()
    put(kept, {unknown_key(): 1})

    with pytest.raises(OperatorError, match="at the top of its module") as raised:
        changes_of(state)
    assert raised.value.operator == "my fold"


def test_malformed_value_is_refused() -> None:
    state, kept = a_bulk()
    put(kept, {1.0: 1})
    (section,) = changes_of(state)
    ((cell, _),) = msgpack.unpackb(section.body).items()
    broken = Section(section.group, msgpack.packb({cell: b"\xc1\x00"}))

    with pytest.raises(ProtocolError, match="malformed value of bulk state"):
        restored([broken])
