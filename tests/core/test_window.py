"""Which window a record belongs to."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window import GlobalWindows, TumblingWindows, global_window, tumbling
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS


@pytest.mark.parametrize(
    ("time_ms", "start_ms"), [(0, 0), (9, 0), (10, 10), (-1, -10), (-10, -10), (-11, -20)]
)
def test_window_starts_at_a_multiple_of_its_size(time_ms: int, start_ms: int) -> None:
    """Before the epoch, too, where a division that truncates would put -1 into window 0."""
    assert TumblingWindows(10).start_of(time_ms) == start_ms


def test_offset_moves_the_boundaries() -> None:
    """Days that begin at six in the morning."""
    windows = TumblingWindows(10, 3)

    assert [windows.start_of(time_ms) for time_ms in (2, 3, 12, 13)] == [-7, 3, 3, 13]


def test_last_window_ends_with_time() -> None:
    """Otherwise it would never close, for no watermark is later."""
    windows = TumblingWindows(1000)

    assert windows.end_of(windows.start_of(MAX_MS - 1)) == MAX_MS


@pytest.mark.parametrize("size_ms", [0, -5])
def test_size_must_be_positive(size_ms: int) -> None:
    """The text names the value."""
    with pytest.raises(ConfigError, match=f"{size_ms} ms, must be more than 0"):
        TumblingWindows(size_ms)


@pytest.mark.parametrize("size", ["10s", timedelta(seconds=10), 10_000])
def test_size_is_any_duration(size: str | timedelta | int) -> None:
    """As people write it."""
    assert tumbling(size) == TumblingWindows(10_000)


def test_offset_is_any_duration() -> None:
    """The same."""
    assert tumbling("1d", offset="6h") == TumblingWindows(86_400_000, 21_600_000)


def test_one_window_holds_everything_until_the_end() -> None:
    """It closes when the stream does."""
    windows = global_window()

    assert windows == GlobalWindows()
    assert {windows.start_of(time_ms) for time_ms in (MIN_MS, 0, MAX_MS - 1)} == {MIN_MS}
    assert windows.end_of(MIN_MS) == MAX_MS


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**9), st.integers(-(10**10), 10**10))
def test_every_time_is_in_exactly_one_window(time_ms: int, size_ms: int, offset_ms: int) -> None:
    """Invariant: ``start <= time < end``, and windows stand side by side from the offset on."""
    windows = TumblingWindows(size_ms, offset_ms)

    start_ms = windows.start_of(time_ms)
    end_ms = windows.end_of(start_ms)

    assert start_ms <= time_ms < end_ms
    assert (start_ms - offset_ms) % size_ms == 0
    assert windows.start_of(start_ms) == start_ms
    assert windows.start_of(end_ms) == end_ms
