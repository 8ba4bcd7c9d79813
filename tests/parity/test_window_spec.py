"""Promises of Gearpump's `WindowSpec`.

There a window is told to slide, step by step or to a time; here it is a function of the watermark.
"""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.window_state import Interval, Window
from gearpy.ids import MIN_MS

TIMES = st.integers(0, 1000)
LENGTHS = st.integers(1, 1000)


@given(TIMES, LENGTHS, LENGTHS)
def test_window_slides_only_when_time_has_passed_its_end(
    time_ms: int, size_ms: int, step_ms: int
) -> None:
    """`WindowSpec`: "should only slide when time passes window end"; it begins at the epoch."""
    window = Window(size_ms, step_ms)
    first = window.at(MIN_MS)

    assert first == Interval(0, size_ms)
    assert (window.at(time_ms).start_ms > first.start_ms) == (time_ms >= size_ms)


@given(TIMES, LENGTHS, LENGTHS)
def test_window_slides_by_steps(time_ms: int, size_ms: int, step_ms: int) -> None:
    """`WindowSpec`: "should slide by one"; each window ends a step after the one before."""
    window = Window(size_ms, step_ms)

    current = window.at(time_ms)
    following = window.at(current.end_ms)

    assert following == Interval(current.start_ms + step_ms, current.end_ms + step_ms)


@given(TIMES, LENGTHS, LENGTHS)
def test_window_slides_to_a_time(time_ms: int, size_ms: int, step_ms: int) -> None:
    """`WindowSpec`: "or to given timestamp". In a gap between windows it is the next one."""
    current = Window(size_ms, step_ms).at(time_ms)

    assert time_ms < current.end_ms
    if step_ms <= size_ms:
        assert current.start_ms <= time_ms or current.start_ms == 0
    else:
        assert current.end_ms - step_ms <= time_ms or current.start_ms == 0
