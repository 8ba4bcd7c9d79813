"""As-of joins."""

from collections import Counter
from typing import Literal

import pytest

from gearpy.core.join.asof import AsOfJoin, Direction
from gearpy.core.join.sides import LEFT, RIGHT
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.join.join_build import Given, fed


def a_join(
    direction: Direction,
    tolerance_ms: int | None = None,
    how: Literal["left", "inner"] = "left",
    *,
    limit: int = 100,
) -> AsOfJoin:
    join = AsOfJoin(direction=direction, tolerance_ms=tolerance_ms, how=how, limit=limit)
    join.resume(MIN_MS)
    return join


LEFTS = [Given(LEFT, 1, "l", 100)]


@pytest.mark.parametrize(
    ("direction", "rights", "found"),
    [
        ("backward", {"a": 90, "b": 99, "c": 101}, "b"),
        ("backward", {"a": 90, "b": 100, "c": 100}, "c"),
        ("backward", {"c": 101}, None),
        ("forward", {"a": 99, "b": 101, "c": 102}, "b"),
        ("forward", {"a": 99, "b": 100, "c": 100}, "b"),
        ("forward", {"a": 99}, None),
        ("nearest", {"a": 97, "b": 102}, "b"),
        ("nearest", {"a": 98, "b": 102}, "a"),
        ("nearest", {"a": 99, "b": 100, "c": 100, "d": 101}, "c"),
        ("nearest", {"b": 102}, "b"),
        ("nearest", {}, None),
    ],
)
def test_nearest_of_each_direction(
    direction: Direction, rights: dict[str, int], found: str | None
) -> None:
    """Equal times match; of two that are as near, which one is said in the class."""
    records = [Given(RIGHT, 1, value, time) for value, time in rights.items()]

    run = fed(a_join(direction), [records, LEFTS, MAX_MS] if records else [LEFTS, MAX_MS])

    assert [row[2] for row, _ in run.results] == [found]


@pytest.mark.parametrize(
    ("direction", "rights", "before_ms", "at_ms"),
    [
        ("backward", [], 100, 101),
        ("backward", [90], 100, 101),
        ("forward", [], 130, 131),
        ("forward", [110], 110, 111),
        ("nearest", [], 130, 131),
        ("nearest", [100], 100, 101),
        ("nearest", [95], 104, 105),
        ("nearest", [95, 103], 103, 104),
    ],
)
def test_comes_out_when_nothing_nearer_can_come(
    direction: Direction, rights: list[int], before_ms: int, at_ms: int
) -> None:
    records = [*LEFTS, *(Given(RIGHT, 1, "r", time) for time in rights)]

    run = fed(a_join(direction, 30), [records, before_ms, at_ms])

    assert [len(results) for results in run.by_step] == [0, 0, 1]


def test_what_is_too_old_is_forgotten() -> None:
    """Keys that come and go, told or not; what was told is told to be gone."""
    join = a_join("nearest", 2000)
    told: Counter[str] = Counter()

    for second in range(1000):
        fed(join, [[Given(second % 2, second // 2, "v", second * 1000)], second * 1000])
        if second % 100 == 50:
            for change in join.changes():
                told[change.namespace[0]] += len(change.keys) * (-1 if change.values is None else 1)

    assert len(join._newest) < 10  # noqa: SLF001
    assert len(join._log.fresh) < 10  # noqa: SLF001
    assert max(told.values()) < 10
    fed(join, [MAX_MS])
    assert all(change.values is None for change in join.changes())
    assert not any([join._newest, join._waiting, join._log.fresh, join._ends])  # noqa: SLF001


def test_left_records_that_wait_for_one_right_record_come_in_parts() -> None:
    join = a_join("forward", limit=10)
    list(join.on_records([(LEFT, 1, each) for each in range(35)], [100] * 35))
    list(join.on_watermark(101))
    list(join.on_records([(RIGHT, 1, "r")], [200]))

    parts = [rows for rows, _ in join.on_watermark(300) if rows]

    assert [len(rows) for rows in parts] == [10, 10, 10, 5]
    assert [row[1] for rows in parts for row in rows] == [*range(35)]
