"""Sessions one by one; all combinations are in `test_panes`."""

from dataclasses import replace

import pytest

from gearpy.core.window.sessions import SessionPanes
from gearpy.core.window.trigger import every
from gearpy.core.window.windows import SessionWindows
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from tests.core.pieces import tiny_pieces
from tests.core.window_cases import FOLDS

ANEW = FOLDS["anew"]


def test_record_between_two_sessions_makes_them_one() -> None:
    panes = SessionPanes(SessionWindows(5), ANEW)
    for value, time in (("a", 0), ("c", 8), ("b", 4)):
        assert panes.add("k", value, time, 0) == ()

    assert list(panes.advance(13, 0)) == [(("k", ["a", "c", "b"], 0, 13, 0, "on-time", False), 12)]
    assert panes.panes == {}


def test_session_that_has_two_turns_at_its_end_ends_once() -> None:
    panes = SessionPanes(SessionWindows(10), ANEW)
    for value, time in (("a", 0), ("b", 10), ("c", 5)):
        panes.add("k", value, time, 0)

    assert list(panes.advance(10, 0)) == []
    assert [fired and fired[0][2:4] for fired in panes.advance(20, 0)] == [(0, 20)]
    assert panes.hold_ms == MAX_MS


def test_sessions_of_one_step_come_by_end_start_and_number() -> None:
    panes = SessionPanes(SessionWindows(10), ANEW)
    for key, time in [("a", 0), ("b", 3), ("c", 1), ("d", 3), ("a", 9), ("c", 2), ("e", 30)]:
        panes.add(key, key, time, 0)

    with tiny_pieces():
        fired = list(panes.advance(25, 0))

    ended = [each[0][:1] + each[0][2:4] for each in fired if each is not None]
    assert ended == [("c", 1, 12), ("b", 3, 13), ("d", 3, 13), ("a", 0, 19)]
    assert fired.count(None) == 6, "of six looks"


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


def test_session_that_has_closed_goes_on_within_the_lateness() -> None:
    """It closes once more; without such a record it is freed."""
    panes = SessionPanes(SessionWindows(5).allowed_lateness("10ms").accumulating(), ANEW)
    panes.add("k", "a", 0, 0)

    closed = list(panes.advance(6, 0))
    assert panes.add("k", "b", 4, 0) == ()
    again = list(panes.advance(9, 0))
    freed = list(panes.advance(19, 0))

    assert closed == [(("k", ["a"], 0, 5, 0, "on-time", False), 4)]
    assert again == [(("k", ["a", "b"], 0, 9, 1, "on-time", False), 8)]
    assert (freed, panes.panes) == ([], {})


def test_fold_that_cannot_merge_is_refused() -> None:
    with pytest.raises(ConfigError, match="give it merge="):
        SessionPanes(SessionWindows(5), replace(ANEW, merge=None))
