"""Joins over sessions."""

from gearpy.core.join.session import SessionJoin
from gearpy.core.join.sides import LEFT, RIGHT, How, Pairing
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.join.join_build import (
    Given,
    Step,
    fed,
    with_restarts,
)


def a_join(gap_ms: int, how: How = "outer", *, gathers: bool = False) -> SessionJoin:
    """Return a join that has begun."""
    join = SessionJoin(gap_ms, Pairing(how, gathers=gathers, limit=3))
    join.resume(MIN_MS)
    return join


def test_sessions_are_of_both_sides() -> None:
    """A right record joins two left ones that are too far from each other."""
    run = fed(
        a_join(10),
        [[Given(LEFT, 1, "l1", 0), Given(LEFT, 1, "l2", 18), Given(RIGHT, 1, "r", 9)], 28],
    )

    assert run.results == [((1, "l1", "r", 0, 28), 27), ((1, "l2", "r", 0, 28), 27)]


def test_sessions_that_only_touch_are_two() -> None:
    """The end of a window is not part of it. Gearpump: `SessionWindowFunction`."""
    run = fed(a_join(10), [[Given(LEFT, 1, "l", 0), Given(RIGHT, 1, "r", 10)], MAX_MS])

    assert run.results == [((1, "l", None, 0, 10), 9), ((1, None, "r", 10, 20), 19)]


def test_record_is_late_if_what_came_of_it_has_closed() -> None:
    """One that is old enough to be late, but overlaps an open session, is not."""
    join = a_join(10)

    run = fed(
        join,
        [[Given(LEFT, 1, "l", 12)], 20, [Given(RIGHT, 1, "r", 5), Given(RIGHT, 2, "late", 10)], 22],
    )

    assert run.results == [((1, "l", "r", 5, 22), 21)]
    assert run.late == 1


def test_clock_is_held_at_the_last_ms_of_the_session_that_ends_first() -> None:
    """It grows with the session."""
    join = a_join(10)

    assert join.hold_ms == MAX_MS
    fed(join, [[Given(LEFT, 1, "l", 0), Given(LEFT, 2, "l", 3)]])
    assert join.hold_ms == 9
    fed(join, [[Given(RIGHT, 1, "r", 9)]])
    assert join.hold_ms == 12
    fed(join, [13])
    assert join.hold_ms == 18


def test_sessions_that_became_one_hold_the_clock_once() -> None:
    """The one that was absorbed is forgotten."""
    join = a_join(10)

    run = fed(
        join,
        [[Given(LEFT, 1, "l1", 0), Given(LEFT, 1, "l2", 15)], [Given(RIGHT, 1, "r", 8)], MAX_MS],
    )

    assert [row for row, _ in run.results] == [(1, "l1", "r", 0, 25), (1, "l2", "r", 0, 25)]
    assert join.hold_ms == MAX_MS


def test_order_is_that_of_ends_starts_and_first_records() -> None:
    """A replay gives the same results in the same order."""
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


def test_closed_sessions_leave_nothing_behind() -> None:
    """Keys that come and go, told or not."""
    join = a_join(10)

    for start in range(0, 1000, 10):
        fed(join, [[Given(LEFT, start, "l", start)], start])
        if start == 500:
            assert [set(change.pairs) for change in join.changes()] == [{500}]
    fed(join, [MAX_MS])

    assert [(set(change.pairs), change.is_deleted) for change in join.changes()] == [({500}, True)]
    assert not any([join._sessions, join._ends])  # noqa: SLF001


def test_order_of_first_records_is_known_over_restarts() -> None:
    """A session that began before a restart came before one that begins behind it."""
    steps: list[Step] = [[Given(LEFT, key, key, 5)] for key in "cab"]

    run = with_restarts(
        lambda: SessionJoin(10, Pairing("left", gathers=False, limit=3)), [*steps, 15], every=1
    )

    assert [row[0] for row, _ in run.results] == ["c", "a", "b"]


def test_what_was_told_does_not_grow() -> None:
    """It is stored while the join goes on."""
    join = a_join(10)
    list(join.on_records([(LEFT, 1, "l")], [0]))
    ((_, pairs, _),) = join.changes()

    list(join.on_records([(LEFT, 1, "m"), (RIGHT, 1, "r")], [1, 2]))

    assert pairs == {1: [0, 10, 1, ["l"], []]}
