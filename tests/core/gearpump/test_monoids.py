"""Whatever is added up may be grouped at will, and what was added can be taken away."""

from copy import deepcopy
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.monoids import (
    CountsGroup,
    Group,
    MapGroup,
    MapMonoid,
    MaxMonoid,
    MinMonoid,
    Monoid,
    SumGroup,
    UnionMonoid,
)

NUMBERS = st.integers(-5, 5)
KEYS = st.sampled_from("abc")
COUNTS = st.dictionaries(KEYS, st.integers(-3, 3).filter(bool))

GROUPS: dict[str, tuple[Group[Any], st.SearchStrategy[Any]]] = {
    "sum": (SumGroup(), NUMBERS),
    "durations": (SumGroup(timedelta()), st.timedeltas(timedelta(-9), timedelta(9))),
    "map group": (MapGroup(SumGroup()), COUNTS),
    "map of maps": (MapGroup(MapGroup(SumGroup())), st.dictionaries(KEYS, COUNTS.filter(bool))),
    "counts": (CountsGroup(), COUNTS),
}
MONOIDS: dict[str, tuple[Monoid[Any], st.SearchStrategy[Any]]] = {
    **GROUPS,
    "max": (MaxMonoid(), st.none() | NUMBERS),
    "min": (MinMonoid(), st.none() | NUMBERS),
    "union": (UnionMonoid(), st.sets(NUMBERS)),
    "map": (MapMonoid(MaxMonoid()), st.dictionaries(KEYS, NUMBERS)),
    "map of sets": (MapMonoid(UnionMonoid()), st.dictionaries(KEYS, st.sets(NUMBERS))),
}


def added(monoid: Monoid[Any], *values: Any) -> Any:
    """Return the sum of copies, as `plus` may change what it is given first."""
    total = monoid.zero()
    for value in values:
        total = monoid.plus(total, deepcopy(value))
    return total


@pytest.mark.parametrize("name", MONOIDS)
@given(data=st.data())
def test_sums_may_be_grouped_at_will(name: str, data: st.DataObject) -> None:
    """Property: otherwise left and right could not be put together later."""
    monoid, values = MONOIDS[name]
    a, b, c = (data.draw(values) for _ in range(3))

    grouped = monoid.plus(deepcopy(a), added(monoid, b, c))

    assert added(monoid, a, b, c) == grouped


@pytest.mark.parametrize("name", MONOIDS)
@given(data=st.data())
def test_zero_changes_nothing(name: str, data: st.DataObject) -> None:
    """Property: from both sides; a key without value is no key."""
    monoid, values = MONOIDS[name]
    value = data.draw(values)

    assert monoid.plus(monoid.zero(), deepcopy(value)) == value
    assert monoid.plus(deepcopy(value), monoid.zero()) == value


@pytest.mark.parametrize("name", MONOIDS)
@given(data=st.data())
def test_what_is_added_stays_as_it_is(name: str, data: st.DataObject) -> None:
    """Property: also when the sum is changed afterwards, as the same value goes into two sums."""
    monoid, values = MONOIDS[name]
    a, b, c = (data.draw(values) for _ in range(3))
    b_before = deepcopy(b)

    total = monoid.plus(monoid.zero(), b)
    monoid.plus(total, deepcopy(c))
    monoid.plus(deepcopy(a), b)

    assert b == b_before


@pytest.mark.parametrize("name", GROUPS)
@given(data=st.data())
def test_what_was_added_can_be_taken_away(name: str, data: st.DataObject) -> None:
    """Property: a window that has left a piece of time is as if it had never been there."""
    group, values = GROUPS[name]
    a, b = data.draw(values), data.draw(values)
    b_before = deepcopy(b)

    left = group.minus(added(group, a, b), b)

    assert left == added(group, a)
    assert b == b_before


def test_sums_of_fractions_are_exact() -> None:
    """Where floats would leave a trace."""
    group = SumGroup()

    assert group.minus(group.plus(Fraction(1, 3), Fraction(1, 10)), Fraction(1, 10)) == Fraction(
        1, 3
    )


@given(COUNTS, COUNTS)
def test_counts_are_a_map_group_of_numbers(a: dict[str, int], b: dict[str, int]) -> None:
    counts: CountsGroup[str] = CountsGroup()
    slow: MapGroup[str, int] = MapGroup(SumGroup())

    assert counts.plus(dict(a), b) == slow.plus(dict(a), b)
    assert counts.minus(dict(a), b) == slow.minus(dict(a), b)
