"""Sessions one by one; all combinations are in `test_panes`."""

from dataclasses import replace

import pytest

from gearpy.core.window.sessions import SessionPanes
from gearpy.core.window.trigger import every
from gearpy.core.window.windows import SessionWindows
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from tests.core.window_cases import FOLDS

ANEW = FOLDS["anew"]


def test_record_between_two_sessions_makes_them_one() -> None:
    """It overlaps both."""
    panes = SessionPanes(SessionWindows(5), ANEW)
    for value, time in (("a", 0), ("c", 8), ("b", 4)):
        assert panes.add("k", value, time, 0) == ()

    assert list(panes.advance(13, 0)) == [(("k", ["a", "c", "b"], 0, 13, 0, "on-time", False), 12)]
    assert panes.panes == {}


def test_session_that_has_two_turns_at_its_end_ends_once() -> None:
    """One is its own, when it had grown; the other that of a session which became one with it."""
    panes = SessionPanes(SessionWindows(10), ANEW)
    for value, time in (("a", 0), ("b", 10), ("c", 5)):
        panes.add("k", value, time, 0)

    assert list(panes.advance(10, 0)) == []
    assert [row[2:4] for row, _ in panes.advance(20, 0)] == [(0, 20)]
    assert panes.hold_ms == MAX_MS


def test_sessions_that_touch_stay_apart() -> None:
    """As with Gearpump, they have to overlap."""
    panes = SessionPanes(SessionWindows(5), ANEW)
    panes.add("k", "a", 0, 0)
    panes.add("k", "b", 5, 0)

    assert [row[2:4] for row, _ in panes.advance(MAX_MS, 0)] == [(0, 5), (5, 10)]


def test_what_becomes_one_is_retracted_with_its_own_bounds() -> None:
    """Each as it was put out; the next firing has a number that neither has had."""
    panes = SessionPanes(SessionWindows(5).triggering(every(count=1)).retracting(), ANEW)
    first = panes.add("k", "a", 0, 0)
    second = panes.add("k", "c", 8, 0)
    merged = panes.add("k", "b", 4, 0)

    assert first == [(("k", ["a"], 0, 5, 0, "early", False), 4)]
    assert second == [(("k", ["c"], 8, 13, 0, "early", False), 12)]
    assert merged == [
        (("k", ["a"], 0, 5, 0, "early", True), 4),
        (("k", ["c"], 8, 13, 0, "early", True), 12),
        (("k", ["a", "c", "b"], 0, 13, 1, "early", False), 12),
    ]


def test_record_that_reaches_a_live_session_is_not_late() -> None:
    """Its own window has ended, the one that comes of it has not."""
    panes = SessionPanes(SessionWindows(5), ANEW)
    panes.add("k", "a", 10, 0)
    list(panes.advance(12, 0))

    assert panes.add("k", "b", 7, 0) == ()
    assert panes.add("k", "c", 2, 0) is None
    assert [row[1:4] for row, _ in panes.advance(15, 0)] == [(["a", "b"], 7, 15)]


def test_session_that_has_closed_goes_on_within_the_lateness() -> None:
    """It closes once more; without such a record it is freed."""
    panes = SessionPanes(SessionWindows(5).allowed_lateness(10).accumulating(), ANEW)
    panes.add("k", "a", 0, 0)

    closed = list(panes.advance(6, 0))
    assert panes.add("k", "b", 4, 0) == ()
    again = list(panes.advance(9, 0))
    freed = list(panes.advance(19, 0))

    assert closed == [(("k", ["a"], 0, 5, 0, "on-time", False), 4)]
    assert again == [(("k", ["a", "b"], 0, 9, 1, "on-time", False), 8)]
    assert (freed, panes.panes) == ([], {})


def test_long_session_is_looked_at_once_a_gap() -> None:
    """Not at each record, nor more often with each session that was merged into it."""
    panes = SessionPanes(SessionWindows(10), ANEW)
    for time in range(0, 3000, 3):
        panes.add("k", time, time + 20, 0)
        panes.add("k", time, time, 0)
        list(panes.advance(time, 0))

    waiting = sum(len(things) for things in panes._turns._things.values())  # noqa: SLF001
    assert waiting < 20


def test_fold_that_cannot_merge_is_refused() -> None:
    """When the stage is made."""
    with pytest.raises(ConfigError, match="give it merge="):
        SessionPanes(SessionWindows(5), replace(ANEW, merge=None))


def test_sessions_of_several_tasks_go_on_in_one() -> None:
    """Although each has numbered its own, and keys cannot be compared."""
    windows = SessionWindows(5).allowed_lateness(3)
    restored = {}
    for key in (None, "a", 1, ("a", 2)):
        task = SessionPanes(windows, ANEW)
        task.add(key, "x", 1, 0)
        restored.update(task.panes)
    panes = SessionPanes(windows, ANEW)
    panes.restore(0, restored)

    assert [row[0] for row, _ in panes.advance(MAX_MS, 0)] == [None, "a", 1, ("a", 2)]
    assert (panes.panes, panes.hold_ms) == ({}, MAX_MS)


@pytest.mark.parametrize("lateness_ms", [0, 3])
def test_of_two_sessions_of_a_key_the_first_ends_alone(lateness_ms: int) -> None:
    """The other goes on."""
    panes = SessionPanes(SessionWindows(5).allowed_lateness(lateness_ms), ANEW)
    for value, time in (("a", 0), ("b", 20), ("c", 40)):
        panes.add("k", value, time, 0)

    ended = [[row[1:4] for row, _ in panes.advance(mark, 0)] for mark in (28, 39, 60)]

    assert ended == [[(["a"], 0, 5), (["b"], 20, 25)], [], [(["c"], 40, 45)]]
    assert (panes.panes, panes.hold_ms) == ({}, MAX_MS)
