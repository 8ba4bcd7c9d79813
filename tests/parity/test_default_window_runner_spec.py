"""Promises of Gearpump's `DefaultWindowRunnerSpec`, and those of its windows that were broken.

There the times are of `Instant`s and the runner is told which groups there are.
"""

import pytest

from gearpy.core.window.windows import (
    FixedWindows,
    GlobalWindows,
    SessionWindows,
    SlidingWindows,
    Windows,
)
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.windows import WindowStage
from tests.task.build import a_context

JOIN = Fold(
    kind="fold",
    first=lambda text: text,
    add=lambda kept, text: kept + text,
    merge=lambda a, b: a + b,
)


def results_of(windows: Windows, records: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return what windows put out, with event times."""
    stage = WindowStage(a_context(), "windows", windows, None, JOIN, limit=100)
    stage.restore(None)
    values, times = [list(column) for column in zip(*records, strict=True)]
    portions = [*stage.process(values, times), *stage.on_watermark(MAX_MS)]
    return [
        (result.value, time) for portion in portions for result, time in zip(*portion, strict=True)
    ]


def test_session_windows_of_the_pinned_example() -> None:
    """`DefaultWindowRunnerSpec`: "handle SessionWindow": a gap of 4, results at 4, 18 and 29."""
    records = [("foo", 1), ("foo", 15), ("bar", 25), ("bar", 26)]

    assert results_of(SessionWindows(4), records) == [("foo", 4), ("foo", 18), ("barbar", 29)]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (FixedWindows(10), [("ab", 9), ("c", 19)]),
        (FixedWindows(10).discarding(), [("ab", 9), ("c", 19)]),
        (GlobalWindows(), [("abc", MAX_MS - 1)]),
    ],
)
def test_results_carry_the_last_ms_of_their_window(
    windows: Windows, expected: list[tuple[str, int]]
) -> None:
    """`DefaultWindowRunner.trigger` stamps what `finish` gives so."""
    assert results_of(windows, [("a", 1), ("b", 9), ("c", 10)]) == expected


def test_windows_fire_by_end_and_start() -> None:
    """As those of Gearpump, whose map of windows is sorted; there each record is in one only."""
    assert results_of(SlidingWindows(10, 5), [("a", 7), ("b", 1)]) == [
        ("b", 4),
        ("ab", 9),
        ("a", 14),
    ]


def test_windows_before_the_epoch_begin_where_they_should() -> None:
    """There a division that truncates gave them a wrong start."""
    assert list(SlidingWindows(10, 5).starts_of(-1)) == [-10, -5]
    assert FixedWindows(10).start_of(-1) == -10


def test_accumulating_ends_with_the_window() -> None:
    """There the value ran on from one window to the next."""
    windows = FixedWindows(10).accumulating()

    assert results_of(windows, [("a", 1), ("b", 11)]) == [("a", 9), ("b", 19)]


def test_late_record_does_not_fire_its_window_again() -> None:
    """There it came to a window of its own, which fired alone."""
    stage = WindowStage(a_context(), "windows", FixedWindows(10), None, JOIN, limit=100)
    stage.restore(None)
    list(stage.process(["a"], [1]))
    list(stage.on_watermark(10))

    assert list(stage.process(["b"], [2])) == []
    assert list(stage.on_watermark(MAX_MS)) == []


def test_window_over_everything_ends_with_time() -> None:
    """There one ms before, which left the last one out."""
    windows = GlobalWindows()

    assert [windows.end_of(start) for start in windows.starts_of(MAX_MS - 1)] == [MAX_MS]
    assert list(windows.starts_of(MIN_MS)) == [MIN_MS]
