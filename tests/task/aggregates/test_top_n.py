"""The records that are largest by something."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.accumulators import TOP_MAX
from gearpy.errors import ConfigError
from gearpy.task.aggregates.top_n import top_records

NAN = float("nan")
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers()), max_size=30)


def top(records: list[Any], n: int, by: Any = None) -> Any:
    aggregate = top_records(n, by)
    kept = aggregate.create()
    for record in records:
        kept = aggregate.add(kept, record)
    return aggregate.result(kept)


@given(PAIRS, st.integers(1, 6))
def test_they_are_those_of_a_stable_sort(records: list[tuple[int, int]], n: int) -> None:
    """The largest first; of equal ones those that came first."""
    expected = sorted(records, key=lambda pair: -pair[0])[:n]

    assert top(records, n, lambda pair: pair[0]) == expected


@given(PAIRS, PAIRS, st.integers(1, 6))
def test_parts_can_be_merged(
    some: list[tuple[int, int]], more: list[tuple[int, int]], n: int
) -> None:
    aggregate = top_records(n, lambda pair: pair[0])
    parts = []
    for records in (some, more):
        kept = aggregate.create()
        for record in records:
            kept = aggregate.add(kept, record)
        parts.append(kept)
    assert aggregate.merge is not None

    merged = aggregate.result(aggregate.merge(*parts))

    assert merged == top([*some, *more], n, lambda pair: pair[0])


@pytest.mark.parametrize(
    ("records", "by", "expected"),
    [
        ([1, 3, 2], None, [3, 2]),
        ([{"n": 1}, {"n": 3}], "n", [{"n": 3}, {"n": 1}]),
        (["a", "ccc", "bb"], len, ["ccc", "bb"]),
        ([{"n": None}, {"n": 3}], "n", [{"n": 3}]),
        ([("x", NAN), ("y", 1.0)], lambda pair: pair[1], [("y", 1.0), ("x", NAN)]),
        ([], None, []),
    ],
    ids=["itself", "field", "function", "nothing to compare", "not a number", "no record"],
)
def test_records_are_compared_by(records: list[Any], by: Any, expected: list[Any]) -> None:
    """A field, a function, or themselves; None is left out, NaN is last."""
    assert top(records, 2, by) == expected


def test_a_record_that_cannot_be_compared_changes_nothing() -> None:
    aggregate = top_records(2)
    kept = aggregate.add(aggregate.create(), 1)

    with pytest.raises(TypeError):
        aggregate.add(kept, "a")

    assert aggregate.result(kept) == [1]


@pytest.mark.parametrize("n", [0, -1, TOP_MAX + 1, True, 2.0, "2"])
def test_n_is_a_number_from_1(n: Any) -> None:
    """Told with what would be right."""
    with pytest.raises(ConfigError, match=r"top_n: n is .*from 1 to 10000, such as top_n\(10\)"):
        top_records(n)


def test_what_tells_nothing_of_a_record_is_refused() -> None:
    by: Callable[[Any], Any] = 3  # type: ignore[assignment]

    with pytest.raises(ConfigError, match="3 tells nothing about a record"):
        top_records(1, by)


@given(st.lists(st.integers() | st.floats() | st.just(None), max_size=30), st.integers(1, 5))
def test_numbers_are_compared_as_those_of_other_types(values: list[Any], n: int) -> None:
    """Property: the quick way for plain numbers is the way for all; the list changes with it."""
    quick, slow = top_records(n), top_records(n, lambda each: None if each is None else Own(each))
    kept, others = quick.create(), slow.create()
    for value in values:
        before, was = kept, ([*kept[0]], [*kept[1]], kept[2])
        kept, others = quick.add(kept, value), slow.add(others, value)
        assert before == was, "lists that were given do not change"
        assert (kept is before) == (len(kept) == len(was) and repr(kept) == repr(was))
        assert repr(quick.result(kept)) == repr(slow.result(others))


class Own(float):
    """A number of a type that is not known."""


def test_results_share_nothing_that_can_change() -> None:
    aggregate = top_records(2, "n")
    kept = aggregate.add(aggregate.create(), {"n": 1})
    kept = aggregate.add(kept, {"n": 2})

    aggregate.result(kept)[0]["n"] = 5

    assert aggregate.result(kept) == [{"n": 2}, {"n": 1}]
