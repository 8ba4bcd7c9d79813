"""Joins of records whose times are near each other."""

import pytest

from gearpy.core.join.interval import IntervalJoin
from gearpy.core.join.sides import LEFT, RIGHT, How
from gearpy.ids import MIN_MS
from tests.core.join.join_build import Given, Step, fed


def a_join(before_ms: int, after_ms: int, how: How = "inner", *, limit: int = 100) -> IntervalJoin:
    join = IntervalJoin(before_ms=before_ms, after_ms=after_ms, how=how, limit=limit)
    join.resume(MIN_MS)
    return join


@pytest.mark.parametrize(
    ("time", "is_pair"), [(94, False), (95, True), (100, True), (110, True), (111, False)]
)
@pytest.mark.parametrize("is_left_first", [True, False])
def test_both_ends_are_within(time: int, is_pair: bool, is_left_first: bool) -> None:  # noqa: FBT001
    """``left - before <= right <= left + after``; each is a pair whichever came first."""
    records = [Given(LEFT, 1, "l", 100), Given(RIGHT, 1, "r", time)]

    run = fed(a_join(5, 10), [[record] for record in (records if is_left_first else records[::-1])])

    start, newest = min(100, time), max(100, time)
    assert run.results == ([((1, "l", "r", start, newest + 1), newest)] if is_pair else [])


def test_pairs_come_at_once_and_by_time() -> None:
    """No watermark is needed; the partners of a record in the order of their times."""
    join = a_join(10, 10)

    run = fed(
        join,
        [
            [Given(RIGHT, 1, "r1", 8), Given(RIGHT, 1, "r2", 2), Given(RIGHT, 1, "r3", 8)],
            [Given(LEFT, 1, "l", 5), Given(RIGHT, 1, "r4", 0)],
        ],
    )

    assert [row[1:3] for row, _ in run.by_step[1]] == [
        ("l", "r2"),
        ("l", "r1"),
        ("l", "r3"),
        ("l", "r4"),
    ]


def test_records_come_alone_as_soon_as_no_partner_can_come() -> None:
    join = a_join(5, 10, "outer")
    steps: list[Step] = [[Given(LEFT, 1, "l", 100), Given(RIGHT, 2, "r", 100)], 105, 106, 110, 111]

    run = fed(join, steps)

    assert run.by_step == [
        [],
        [],
        [((2, None, "r", 100, 101), 100)],
        [],
        [((1, "l", None, 100, 101), 100)],
    ]


def test_each_side_is_kept_as_long_as_it_is_needed() -> None:
    join = a_join(0, 1_000_000)

    for second in range(100):
        time = second * 1000
        fed(join, [[Given(LEFT, second, "l", time), Given(RIGHT, second, "r", time)], time])

    kept = join._sides.values()  # noqa: SLF001
    assert sum(len(sides[LEFT]) for sides in kept) == 100
    assert sum(len(sides[RIGHT]) for sides in kept) <= 3
