"""Records whose results come later: order, event time, what is left."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.async_window import AsyncWindow, HeldResult
from gearpy.ids import MAX_MS, MIN_MS


def a_window(*times: int, size: int = 10, ordered: bool = True) -> AsyncWindow:
    """Return a window that has taken records with these times; their values are their numbers."""
    window = AsyncWindow(size, ordered=ordered)
    list(window.take(range(len(times)), times))
    return window


def released(window: AsyncWindow) -> list[Any]:
    return window.release(1000)[0]


def test_result_waits_for_those_before_it() -> None:
    window = a_window(1, 2, 3)

    window.finish(2, "c")
    window.finish(1, "b")

    assert not window.is_ready
    window.finish(0, "a")
    assert window.release(10) == (["a", "b", "c"], [1, 2, 3])


def test_result_waits_for_nobody() -> None:
    window = a_window(1, 2, 3, ordered=False)

    window.finish(2, "c")

    assert window.release(10) == (["c"], [3])
    window.finish(0, "a")
    assert released(window) == ["a"]


def test_failed_record_holds_nobody_up() -> None:
    window = a_window(1, 2)
    window.finish(1, "b")

    held = window.fail(0)

    assert held == HeldResult(0, 1)
    assert released(window) == ["b"]


def test_a_call_that_ends_twice_counts_once() -> None:
    for ordered in (True, False):
        window = a_window(1, ordered=ordered)

        window.finish(0, "a")
        assert released(window) == ["a"]
        window.finish(0, "a")

        assert window.fail(0) is None
        assert not released(window)


def test_results_come_in_portions() -> None:
    window = a_window(1, 2, 3)
    for number in range(3):
        window.finish(number, number)

    assert window.release(2) == ([0, 1], [1, 2])
    assert window.is_ready
    assert window.release(2) == ([2], [3])


def test_window_is_full_until_results_are_given() -> None:
    window = a_window(1, 2, size=2)
    assert not window.has_room

    window.finish(1, "b")
    assert not window.has_room
    window.finish(0, "a")
    assert not window.has_room
    window.release(1)

    assert window.has_room


def test_watermark_waits_for_older_records_only() -> None:
    window = a_window(10, 20, ordered=False)

    window.advance(15)
    assert window.passed_ms == 10
    window.finish(0, "a")
    assert window.passed_ms == 10
    window.release(1)

    assert window.passed_ms == 15
    assert window.hold_ms == 20


def test_end_of_the_stream_waits_for_all() -> None:
    window = a_window(10)

    window.advance(MAX_MS)
    assert window.passed_ms == 10
    window.fail(0)

    assert window.passed_ms == MAX_MS


def test_restored_window_has_passed_what_it_had() -> None:
    window = AsyncWindow(9, ordered=True)

    window.restore(100, 40)
    list(window.take(["a"], [50]))

    assert (window.watermark_ms, window.passed_ms) == (100, 50)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.lists(st.integers(0, 50), max_size=4)),
        st.tuples(st.just("watermark"), st.integers(0, 60)),
        st.tuples(st.just("finish"), st.integers(0, 30)),
        st.tuples(st.just("fail"), st.integers(0, 30)),
        st.tuples(st.just("release"), st.integers(1, 3)),
    ),
    max_size=60,
)


@given(steps=STEPS, ordered=st.booleans())
def test_each_record_ends_once_and_none_becomes_late(*, steps: Any, ordered: bool) -> None:
    """The invariant of the window, against all that can happen."""
    window = AsyncWindow(3, ordered=ordered)
    times: dict[int, int] = {}
    on_time: set[int] = set()
    given: list[int] = []
    failed: set[int] = set()
    passed_ms = MIN_MS
    for kind, what in steps:
        match kind:
            case "take":
                taken = [number for number, _ in window.take(what, what)]
                times.update(zip(taken, what, strict=True))
                on_time |= {n for n in taken if times[n] >= window.watermark_ms}
            case "watermark":
                window.advance(what)
            case "finish":
                window.finish(what, what)
            case "fail":
                if window.fail(what) is not None:
                    failed.add(what)
            case _:
                before_ms = window.passed_ms
                numbers, released_times = window.release(what)
                assert released_times == [times[number] for number in numbers]
                became_late = {n for n in on_time.intersection(numbers) if times[n] < before_ms}
                assert not became_late
                given += numbers
        assert window.passed_ms >= passed_ms
        passed_ms = window.passed_ms
        assert passed_ms <= max(window.watermark_ms, MIN_MS)
        left = set(times) - set(given) - failed
        assert [each.time_ms for each in window.held()] == [times[n] for n in sorted(left)]
        assert window.hold_ms == min((times[n] for n in left), default=MAX_MS)
        assert window.has_room == (len(left) < 3)
    assert len(given) == len(set(given))
    assert not failed & set(given)
    assert not ordered or given == sorted(given)
