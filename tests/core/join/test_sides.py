"""What the joins of all kinds have in common."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.join.asof import AsOfJoin
from gearpy.core.join.interval import IntervalJoin
from gearpy.core.join.latest import LatestJoin
from gearpy.core.join.session import SessionJoin
from gearpy.core.join.sides import LEFT, RIGHT, Group, How, Join, Pairing, Row, Rows
from gearpy.core.join.window import WindowJoin
from gearpy.core.window.windows import TumblingWindows
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.join.join_build import store

LISTS = st.lists(st.integers(), max_size=7)


def rows_of(pairing: Pairing, groups: list[Group]) -> list[Row]:
    return [row for rows, _ in pairing.rows(groups, 0, 10) for row in rows]


@given(
    st.lists(st.tuples(st.integers(), LISTS, LISTS), max_size=4),
    st.sampled_from(["inner", "left", "right", "outer"]),
    st.booleans(),
    st.integers(1, 4),
)
def test_portions_are_all_rows_in_their_order(
    groups: list[Group],
    how: How,
    gathers: bool,  # noqa: FBT001
    limit: int,
) -> None:
    """Property: no portion is empty or of more than twice the limit; times are the last ms."""
    portions = list(Pairing(how, gathers=gathers, limit=limit).rows(groups, 0, 10))

    whole = rows_of(Pairing(how, gathers=gathers, limit=1000), groups)
    assert [row for rows, _ in portions for row in rows] == whole
    assert all(0 < len(rows) < 2 * limit for rows, _ in portions)
    assert all(times == [9] * len(rows) for rows, times in portions)


JOINS: dict[str, Callable[[], Join]] = {
    "windows": lambda: WindowJoin(TumblingWindows(10), Pairing("outer", gathers=False, limit=3)),
    "sessions": lambda: SessionJoin(10, Pairing("outer", gathers=False, limit=3)),
    "interval": lambda: IntervalJoin(before_ms=5, after_ms=5, how="outer", limit=3),
    "nearest": lambda: AsOfJoin(direction="nearest", tolerance_ms=None, how="left", limit=3),
    "forward": lambda: AsOfJoin(direction="forward", tolerance_ms=9, how="left", limit=3),
    "latest": lambda: LatestJoin(how="left"),
}


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("passed_ms", [MIN_MS, 21])
def test_state_of_several_tasks_goes_on_in_one(name: str, passed_ms: int) -> None:
    """Although each has numbered its records, and keys cannot be compared."""
    one, wanted = JOINS[name](), list[Any]()
    stored: dict[Any, dict[Any, Any]] = {}
    for key in (None, "a", 1, ("a", 2)):
        task = JOINS[name]()
        task.resume(MIN_MS)
        records = [(LEFT, key, "l"), (RIGHT, key, "r"), (LEFT, key, "m"), (LEFT, key, "n")]
        list(task.on_records(records, [15, 16, 20, 33]))
        list(task.on_watermark(passed_ms))
        store(stored, list(task.changes()))
        wanted += flat(task.on_watermark(MAX_MS))
    for namespace, pairs in stored.items():
        one.load(namespace, pairs)

    one.resume(passed_ms)

    assert sorted(map(repr, flat(one.on_watermark(MAX_MS)))) == sorted(map(repr, wanted))
    assert one.hold_ms == MAX_MS


def flat(portions: Iterator[Rows]) -> list[Any]:
    return [pair for rows, times in portions for pair in zip(rows, times, strict=True)]
