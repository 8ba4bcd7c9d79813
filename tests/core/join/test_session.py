"""Joins over sessions."""

from gearpy.core.join.session import SessionJoin
from gearpy.core.join.sides import LEFT, RIGHT, How, Pairing
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.join.join_build import Given, fed


def a_join(gap_ms: int, how: How = "outer", *, gathers: bool = False) -> SessionJoin:
    join = SessionJoin(gap_ms, Pairing(how, gathers=gathers, limit=3))
    join.resume(MIN_MS)
    return join


def test_sessions_are_of_both_sides() -> None:
    run = fed(
        a_join(10),
        [[Given(LEFT, 1, "l1", 0), Given(LEFT, 1, "l2", 18), Given(RIGHT, 1, "r", 9)], 28],
    )

    assert run.results == [((1, "l1", "r", 0, 28), 27), ((1, "l2", "r", 0, 28), 27)]


def test_record_is_late_if_what_came_of_it_has_closed() -> None:
    join = a_join(10)

    run = fed(
        join,
        [[Given(LEFT, 1, "l", 12)], 20, [Given(RIGHT, 1, "r", 5), Given(RIGHT, 2, "late", 10)], 22],
    )

    assert run.results == [((1, "l", "r", 5, 22), 21)]
    assert run.late == 1


def test_order_is_that_of_ends_starts_and_first_records() -> None:
    run = fed(
        a_join(10, gathers=True),
        [
            [Given(LEFT, "b", 1, 5), Given(LEFT, "a", 2, 5), Given(LEFT, "c", 3, 1)],
            [Given(LEFT, "d", 4, 0), Given(RIGHT, "d", 5, 5)],
            MAX_MS,
        ],
    )

    assert [row for row, _ in run.results] == [
        ("c", [3], [], 1, 11),
        ("d", [4], [5], 0, 15),
        ("b", [1], [], 5, 15),
        ("a", [2], [], 5, 15),
    ]
