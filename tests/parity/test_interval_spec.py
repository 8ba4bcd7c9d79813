"""Promises of Gearpump's `WindowStateSpec` about `Interval`s: how time is cut into pieces.

There a piece also ends where a checkpoint was taken; here pieces of different epochs are kept
apart by number, so that only windows have boundaries in time.
"""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.window_state import Interval, Window

NUMBERS = st.integers(100, 10_000)


def boundaries_around(time_ms: int, window: Window) -> tuple[int, int]:
    """Return the last boundary of a window up to a time, and the first one after it."""
    size, step = window.size_ms, window.step_ms
    begin, end = time_ms // step * step, (time_ms - size) // step * step + size
    return max(begin, end), min(begin, end) + step


@given(NUMBERS, NUMBERS, NUMBERS)
def test_interval_lies_between_two_boundaries(time_ms: int, size_ms: int, step_ms: int) -> None:
    """`WindowStateSpec`: "gets interval for timestamp"."""
    window = Window(size_ms, step_ms)

    interval = window.interval_of(time_ms)

    assert interval == Interval(*boundaries_around(time_ms, window))
    assert interval.start_ms <= time_ms < interval.end_ms


@given(NUMBERS, NUMBERS, NUMBERS)
def test_next_interval_begins_where_one_ends(time_ms: int, size_ms: int, step_ms: int) -> None:
    """`WindowStateSpec`: no time is left out, none is in two of them."""
    window = Window(size_ms, step_ms)

    interval = window.interval_of(time_ms)

    assert window.interval_of(interval.end_ms).start_ms == interval.end_ms
    assert window.interval_of(interval.start_ms) == interval
    assert window.interval_of(interval.end_ms - 1) == interval
