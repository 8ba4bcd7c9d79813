"""Panes of aligned windows one by one; all combinations are in `test_panes`."""

from gearpy.core.window.aligned import AlignedPanes
from gearpy.core.window.trigger import after_watermark, every
from gearpy.core.window.windows import TumblingWindows
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.window_cases import FOLDS

ANEW = FOLDS["anew"]


def test_early_on_time_and_late() -> None:
    """Each with its number; what comes behind the lateness is refused, and all is freed."""
    windows = TumblingWindows(10).triggering(after_watermark(early=every(count=2)))
    panes = AlignedPanes(windows.retracting().allowed_lateness("5ms"), ANEW)

    assert panes.add("k", "a", 1, 0) == ()
    early = panes.add("k", "b", 2, 0)
    on_time = list(panes.advance(10, 0))
    late = panes.add("k", "c", 3, 0)
    assert list(panes.advance(15, 0)) == []

    assert early == [(("k", ["a", "b"], 0, 10, 0, "early", False), 9)]
    assert on_time == [
        (("k", ["a", "b"], 0, 10, 0, "early", True), 9),
        (("k", ["a", "b"], 0, 10, 1, "on-time", False), 9),
    ]
    assert late == [
        (("k", ["a", "b"], 0, 10, 1, "on-time", True), 9),
        (("k", ["a", "b", "c"], 0, 10, 2, "late", False), 9),
    ]
    assert panes.add("k", "d", 4, 0) is None
    assert (panes.panes, panes.touched) == ({}, {})


def test_wall_time_wakes() -> None:
    early = AlignedPanes(TumblingWindows(10).triggering(every("7ms")), ANEW)
    early.add("k", "a", 3, 1000)
    wall = AlignedPanes(TumblingWindows(10, clock="processing"), ANEW)
    wall.add("k", "a", 3, 1004)

    assert early.wake_ms == 1007
    assert list(early.advance(MIN_MS, 1007)) == [(("k", ["a"], 0, 10, 0, "early", False), 9)]
    assert early.wake_ms == MAX_MS
    assert wall.wake_ms == 1010
    assert list(wall.advance(MIN_MS, 1010)) == [(("k", ["a"], 1000, 1010, 0, "on-time", False), 3)]
