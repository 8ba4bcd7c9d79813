"""Count windows one by one; streams are in `test_panes`."""

from gearpy.core.window.counted import CountPanes
from gearpy.core.window.windows import CountWindows
from gearpy.ids import MAX_MS
from tests.core.window_cases import FOLDS


def test_full_windows_fire_and_the_rest_at_the_end() -> None:
    panes = CountPanes(CountWindows(2), FOLDS["anew"])

    assert panes.add("k", "a", 7, 0) == ()
    full = panes.add("k", "b", 3, 0)
    assert panes.add("k", "c", 5, 0) == ()
    assert list(panes.advance(1000, 0)) == []
    rest = list(panes.advance(MAX_MS, 0))

    assert full == [(("k", ["a", "b"], 3, 8, 0, "on-time", False), 7)]
    assert rest == [(("k", ["c"], 5, 6, 0, "on-time", False), 5)]
    assert panes.panes == {}


def test_nothing_is_late() -> None:
    panes = CountPanes(CountWindows(1), FOLDS["anew"])
    list(panes.advance(1000, 0))

    assert panes.add("k", "a", 7, 0) == [(("k", ["a"], 7, 8, 0, "on-time", False), 7)]
    assert panes.hold_ms == MAX_MS
