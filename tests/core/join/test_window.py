"""Joins over windows that are the same for all keys."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.join.sides import LEFT, RIGHT, How, Pairing
from gearpy.core.join.window import WindowJoin
from gearpy.core.window.windows import (
    AlignedWindows,
    GlobalWindows,
    SlidingWindows,
    TumblingWindows,
)
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.join.join_build import STEPS, Given, Step, fed

WINDOWS = st.sampled_from(
    [
        TumblingWindows(10),
        TumblingWindows(7, 3),
        SlidingWindows(10, 5),
        SlidingWindows(10, 3, 1),
        SlidingWindows(5, 5),
        GlobalWindows(),
    ]
)


def a_join(
    windows: AlignedWindows, how: How = "inner", *, gathers: bool = False, limit: int = 100
) -> WindowJoin:
    join = WindowJoin(windows, Pairing(how, gathers=gathers, limit=limit))
    join.resume(MIN_MS)
    return join


@given(STEPS, WINDOWS)
def test_cogroup_has_all_records_of_a_key(steps: list[Step], windows: AlignedWindows) -> None:
    groups = fed(a_join(windows, gathers=True), steps)
    pairs = fed(a_join(windows, "outer"), steps)

    assert len({(key, start) for (key, _, _, start, _), _ in groups.results}) == len(groups.results)
    assert [
        ((key, left, right, start, end), time)
        for (key, lefts, rights, start, end), time in groups.results
        for left in lefts or [None]
        for right in rights or [None]
    ] == pairs.results


def test_order_is_that_of_ends_then_of_first_records() -> None:
    join = a_join(TumblingWindows(10), "outer")

    run = fed(
        join,
        [
            [Given(LEFT, "b", "b1", 12), Given(RIGHT, "a", "a1", 3), Given(LEFT, "c", "c1", 4)],
            [Given(RIGHT, "b", "b2", 11), Given(LEFT, "a", "a2", 2), Given(LEFT, "b", "b3", 10)],
            20,
        ],
    )

    assert run.results == [
        (("a", "a2", "a1", 0, 10), 9),
        (("c", "c1", None, 0, 10), 9),
        (("b", "b1", "b2", 10, 20), 19),
        (("b", "b3", "b2", 10, 20), 19),
    ]


def test_closed_windows_leave_nothing_behind() -> None:
    """What was never told, because no epoch ended meanwhile, too."""
    join = a_join(SlidingWindows(10, 5))
    told = []

    for start in range(0, 1000, 10):
        fed(join, [[Given(LEFT, start, "l", start)], start])
        if start == 500:
            told += list(join.changes())

    fed(join, [MAX_MS])
    assert [change.namespace for change in join.changes() if change.values is None] == [
        change.namespace for change in told
    ]
    assert list(join.changes()) == []
    assert not any([join._pieces.kept, join._log.fresh, join._log._told])  # noqa: SLF001
