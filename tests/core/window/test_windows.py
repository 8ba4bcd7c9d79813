"""Which window a record belongs to."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.trigger import AT_CLOSE, after_count, after_watermark, every
from gearpy.core.window.windows import (
    CountWindows,
    FixedWindows,
    GlobalWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    Windows,
    count_window,
    global_window,
    session,
    sliding,
    tumbling,
)
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS


@pytest.mark.parametrize(
    ("time_ms", "start_ms"), [(0, 0), (9, 0), (10, 10), (-1, -10), (-10, -10), (-11, -20)]
)
def test_window_starts_at_a_multiple_of_its_size(time_ms: int, start_ms: int) -> None:
    """Before the epoch, too, where a division that truncates would put -1 into window 0."""
    assert TumblingWindows(10).start_of(time_ms) == start_ms


def test_offset_moves_the_boundaries() -> None:
    windows = TumblingWindows(10, 3)

    assert [windows.start_of(time_ms) for time_ms in (2, 3, 12, 13)] == [-7, 3, 3, 13]


@pytest.mark.parametrize("size_ms", [0, -5])
def test_size_must_be_positive(size_ms: int) -> None:
    with pytest.raises(ConfigError, match=f"{size_ms} ms, must be more than 0"):
        TumblingWindows(size_ms)


def test_one_window_holds_everything_until_the_end() -> None:
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


@given(st.integers(-(10**6), 10**6), st.integers(1, 50), st.integers(1, 50), st.integers(-100, 100))
def test_every_time_is_in_all_sliding_windows_that_hold_it(
    time_ms: int, size_ms: int, every_ms: int, offset_ms: int
) -> None:
    every_ms = min(every_ms, size_ms)
    windows = SlidingWindows(size_ms, every_ms, offset_ms)

    starts = list(windows.starts_of(time_ms))

    assert starts == [
        start
        for start in range(time_ms - size_ms, time_ms + 1)
        if (start - offset_ms) % every_ms == 0 and start <= time_ms < start + size_ms
    ]
    assert {windows.end_of(start) - start for start in starts} == {size_ms}


@given(st.integers(-500, 500), st.integers(1, 30), st.integers(1, 30), st.integers(-9, 9))
def test_all_of_a_piece_is_in_the_same_windows(
    time_ms: int, size_ms: int, every_ms: int, offset_ms: int
) -> None:
    windows = SlidingWindows(size_ms, min(every_ms, size_ms), offset_ms)

    piece = windows.piece_of(time_ms)

    assert piece <= time_ms
    within = {tuple(windows.starts_of(at)) for at in range(piece, time_ms + 1)}
    assert len(within) == 1
    assert windows.starts_of(piece - 1) != windows.starts_of(piece)
    assert windows.piece_of(piece) == piece


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tumbling("0s"), "window size is 0 ms"),
        (lambda: TumblingWindows("5s"), "window size is '5s', must be whole ms"),  # type: ignore[arg-type]
        (lambda: TumblingWindows(5, 1.5), "window offset is 1.5"),  # type: ignore[arg-type]
        (lambda: sliding("1s"), r'one begins: add it, as in sliding\("1m", every="10s"\)'),
        (lambda: sliding("1s", "0s"), "time between windows is 0 ms"),
        (lambda: sliding("1s", "2s"), "leave out what is between them"),
        (lambda: session("0s"), "session gap is 0 ms"),
        (lambda: count_window(0), "count window has 0 records"),
        (lambda: count_window(3).allowed_lateness("1s"), "nothing is late for a count window"),
        (lambda: count_window(3).triggering(every(count=1)), "fires once, when it is full"),
        (lambda: CountWindows(3, clock="processing"), "a count window has no clock"),
        (lambda: global_window().allowed_lateness("1s"), "nothing is late for the window over"),
        (
            lambda: tumbling("5ms", clock="processing").allowed_lateness("3ms"),
            "nothing is late for windows of wall",
        ),
        (lambda: tumbling("5ms", clock="wall"), "clock 'wall' of windows is not known"),  # type: ignore[arg-type]
        (lambda: TumblingWindows(5, accumulation="all"), "accumulation 'all'"),  # type: ignore[arg-type]
        (lambda: TumblingWindows(5, allowed_lateness_ms=-1), "allowed lateness is -1 ms"),
        (lambda: tumbling("5ms").triggering("1s"), "triggering cannot take '1s'"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_say_what_to_change(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


@pytest.mark.parametrize(
    "windows", [tumbling("5ms"), sliding("6ms", "3ms"), session("4ms"), global_window()]
)
def test_methods_return_copies(windows: Windows) -> None:
    trigger = after_watermark(early=every("1s"))

    changed = windows.triggering(trigger).accumulating()

    assert type(changed) is type(windows)
    assert (changed.trigger, changed.accumulation) == (trigger, "accumulating")
    assert changed.retracting().accumulation == "retracting"
    assert changed.discarding().accumulation == "discarding"
    assert windows.trigger == AT_CLOSE
    assert windows.accumulation == "discarding"


def test_lateness_is_any_duration() -> None:
    assert tumbling("1m").allowed_lateness("5s").allowed_lateness_ms == 5000


@pytest.mark.parametrize(
    ("windows", "is_plain"),
    [
        (tumbling("5ms"), True),
        (tumbling("5ms").accumulating(), True),
        (tumbling("5ms").triggering(after_watermark(late=every(count=3))), True),
        (tumbling("5ms").triggering(after_count(3)), False),
        (tumbling("5ms").triggering(every(count=3)), False),
        (tumbling("5ms").allowed_lateness("1ms"), False),
        (tumbling("5ms", clock="processing"), False),
    ],
)
def test_plain_windows_fire_once(windows: Windows, is_plain: bool) -> None:  # noqa: FBT001 - a table
    assert windows.is_plain == is_plain


def test_functions_make_windows() -> None:
    assert sliding("1m", "10s", "1s") == SlidingWindows(60_000, 10_000, 1000)
    assert session("30m") == SessionWindows(1_800_000)
    assert count_window(7) == CountWindows(7)
    assert FixedWindows is TumblingWindows
