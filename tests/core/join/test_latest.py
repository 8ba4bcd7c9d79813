"""Joins with a table."""

from typing import Literal

from gearpy.core.join.latest import LatestJoin
from gearpy.core.join.sides import LEFT, RIGHT
from gearpy.ids import MIN_MS
from tests.core.join.join_build import Given, fed


def a_join(how: Literal["left", "inner"] = "left") -> LatestJoin:
    join = LatestJoin(how=how)
    join.resume(MIN_MS)
    return join


def test_a_left_record_finds_what_is_there_when_it_comes() -> None:
    run = fed(
        a_join(),
        [
            [Given(LEFT, 1, "early", 10), Given(RIGHT, 1, "r", 20), Given(LEFT, 1, "l", 5)],
            15,
            [Given(LEFT, 1, "late", 3)],
        ],
        is_promised=False,
    )

    assert run.results == [
        ((1, "early", None, 10, 11), 10),
        ((1, "l", "r", 5, 6), 5),
        ((1, "late", "r", 3, 4), 3),
    ]
    assert run.late == 0


def test_older_values_do_not_come_back() -> None:
    run = fed(
        a_join("inner"),
        [
            [Given(RIGHT, 1, None, 20), Given(RIGHT, 1, "old", 19), Given(LEFT, 1, "l1", 30)],
            [Given(RIGHT, 1, "same", 20), Given(LEFT, 1, "l2", 30)],
        ],
    )

    assert [row[1:3] for row, _ in run.results] == [("l2", "same")]
