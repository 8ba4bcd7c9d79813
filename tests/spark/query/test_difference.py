"""Answers are equal as records in no order, but for the last digits of floats."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.messages.data import Message
from gearpy.spark.query.difference import difference
from gearpy.task.api.window_result import WindowResult


@dataclass(frozen=True)
class Point:
    x: float
    name: str


def _messages(*values: Any) -> list[Message]:
    return [Message(value, 7) for value in values]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
    lambda of: st.lists(of) | st.tuples(of, of) | st.dictionaries(st.text(), of),
    max_leaves=5,
)


@given(st.lists(_VALUES, max_size=8), st.randoms())
def test_an_answer_equals_itself_in_any_order(values: list[Any], random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)

    found = difference(_messages(*values), _messages(*shuffled))

    assert found.is_empty
    assert found.same == len(values)


@given(st.lists(_VALUES, max_size=8), _VALUES)
def test_one_record_too_many_is_found(values: list[Any], more: Any) -> None:
    found = difference(_messages(*values), _messages(*values, more))
    turned = difference(_messages(*values, more), _messages(*values))

    assert (len(found.missing), len(found.extra)) == (0, 1)
    assert (len(turned.missing), len(turned.extra)) == (1, 0)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (0.1 + 0.2, 0.3),
        (1e300, 1e300 * (1 + 1e-12)),
        ({"a": 1e-12}, {"a": 0.0}),
        (Point(0.1 + 0.2, "p"), Point(0.3, "p")),
        ([1, (0.3, math.nan)], [1, (0.1 + 0.2, math.nan)]),
        (-math.inf, -math.inf),
        ({1, 2}, {2, 1}),
    ],
)
def test_the_last_digits_of_floats_do_not_count(mine: Any, theirs: Any) -> None:
    assert difference(_messages(mine), _messages(theirs)).is_empty


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [(1.0, 1.001), (10**20, 10**20 + 1), ("a", "b"), ([1], (1,)), (math.nan, 0.0), (1, 1.0)],
)
def test_everything_else_is_exact(mine: Any, theirs: Any) -> None:
    assert not difference(_messages(mine), _messages(theirs)).is_empty


def test_event_times_belong_to_records() -> None:
    found = difference([Message("a", 1)], [Message("a", 2)])

    assert (len(found.missing), len(found.extra)) == (1, 1)


def test_floats_are_paired_where_several_are_close() -> None:
    found = difference(_messages(1.0, 2.0, 3.0), _messages(3.0, 1.0, 2.5))

    assert [m.value for m in found.missing] == [2.0]
    assert [m.value for m in found.extra] == [2.5]
    assert found.same == 2


def test_results_of_one_window_that_differ_are_shown_side_by_side() -> None:
    mine = WindowResult("k", 1, 0, 10)
    theirs = WindowResult("k", 2, 0, 10)
    other = WindowResult("k", 1, 10, 20)

    found = difference(_messages(mine), _messages(theirs, other))

    assert [(a.value, b.value) for a, b in found.different] == [(mine, theirs)]
    assert [m.value for m in found.extra] == [other]
    assert not found.missing
