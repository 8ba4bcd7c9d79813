"""What joins keep, and what of it they tell."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.join.changes import Kept, KeyCells, RecordLog
from gearpy.core.join.sides import LEFT
from gearpy.errors import ProtocolError
from tests.core.join.join_build import store


def added(log: RecordLog, span: int, key: Any, *, is_waiting: bool = False) -> Kept:
    log.seq += 1
    kept = Kept(log.seq, LEFT, 100 + log.seq, f"v{log.seq}", is_waiting, key)
    fresh = log.fresh.get(span)
    (log.open(span) if fresh is None else fresh).append(kept)
    return kept


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("match"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("tell"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_what_was_told_is_what_is_there(steps: list[tuple[str, int, int]]) -> None:
    """Invariant: put together, it gives all records that were not dropped, as they are."""
    log, cells = RecordLog(), dict[Any, dict[Any, Any]]()
    there: list[tuple[int, Kept]] = []
    for what, number, key in [*steps, ("tell", 0, 0)]:
        if what == "add":
            there.append((number, added(log, number, key, is_waiting=True)))
        elif what == "match" and number < len(there):
            log.match(*there[number])
        elif what == "drop":
            there = [each for each in there if each[0] != number]
            log.drop(number)
        elif what == "tell":
            store(cells, list(log.changes()))

    again = RecordLog()
    assert all(
        again.load(namespace, pairs) for namespace, pairs in reversed(cells.items()) if pairs
    )
    assert again.resume() == there


def test_each_record_is_told_once() -> None:
    """However long it is kept, and however many others come for its key."""
    log = RecordLog()
    added(log, 7, "a")
    first = list(log.changes())
    added(log, 7, "a")
    added(log, 7, "b")

    second = list(log.changes())

    assert [each[1:] for each in first] == [(["a"], [[1, LEFT, 101, "v1", False]], None)]
    assert [each[1:] for each in second] == [
        (["b", "a"], [[3, LEFT, 103, "v3", False], [2, LEFT, 102, "v2", False]], None)
    ]
    assert list(log.changes()) == []


def test_a_record_that_finds_a_partner_while_it_is_copied_is_told_as_it_was() -> None:
    log, cells = RecordLog(), dict[Any, dict[Any, Any]]()
    kept = added(log, 7, "a", is_waiting=True)
    with patch("gearpy.core.base.key_copy.STEPS_FROM", 1):
        first = list(log.changes())
    log.match(7, kept)

    store(cells, first)
    assert list(cells.values()) == [{"a": [1, LEFT, 101, "v1", True]}]
    assert [each[1:] for each in log.changes()] == [(["a"], [[1]], None)]


def test_malformed_records_are_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed records of a join: 4 fields"):
        RecordLog().load(("records", 1, 1), {"a": [1, 2, 3, 4]})


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 3), st.booleans())), max_size=30))
def test_cells_are_what_the_keys_have(steps: list[tuple[int, bool] | None]) -> None:
    """Property: also where keys come and go, told in between or not; None is a time to tell."""
    values: dict[Any, Any] = {}
    keys, cells = KeyCells("table", values.get), dict[Any, dict[Any, Any]]()
    for number, step in enumerate([*steps, None]):
        if step is None:
            store(cells, list(keys.changes()))
            continue
        key, is_set = step
        if is_set:
            keys.touch(key)
            values[key] = number
        elif key in values:
            keys.remove(key)
            del values[key]

    assert cells.get(("table",), {}) == values
    again = KeyCells("table", values.get)
    again.load(("table",), cells.get(("table",), {}))
    assert again.resume() == values
