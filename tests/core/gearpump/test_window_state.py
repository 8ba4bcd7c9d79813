"""A sliding window is what its records come to, however it came there."""

import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.monoids import CountsGroup, SumGroup
from gearpy.core.gearpump.window_state import Interval, Window, WindowState
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import MAX_MS, MIN_MS


class Json:
    def to_bytes(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def from_bytes(self, data: bytes) -> Any:
        return json.loads(data)


class Record(NamedTuple):
    time_ms: int
    value: int
    epoch: int = 1


WINDOWS = st.builds(Window, st.integers(1, 12), st.integers(1, 12))
TIMES = st.integers(-30, 60)
RECORDS = st.builds(Record, TIMES, st.integers(-9, 9), st.integers(1, 5))
WATERMARKS = st.one_of(TIMES, st.integers(10**6, 10**6 + 20), st.just(MAX_MS))
#: Records, watermarks as numbers, and ends of epochs as None.
STEPS = st.lists(RECORDS | WATERMARKS | st.none(), max_size=40)


def a_state(window: Window | None = None) -> WindowState[int]:
    return WindowState(SumGroup(), Json(), window or Window(10, 5))


def update(state: WindowState[int], *records: Record) -> None:
    for record in records:
        state.enter(record.epoch)
        state.update(record.time_ms, record.value)


def total(records: Iterable[Record], window: Interval, until: int = 10**6) -> int:
    return sum(
        record.value
        for record in records
        if window.start_ms <= record.time_ms < window.end_ms and record.epoch <= until
    )


# -- Window ----------------------------------------------------------------------------------


def test_windows_may_have_gaps() -> None:
    window = Window(2, 5)

    assert [window.at(time_ms).start_ms for time_ms in (1, 2, 4, 6, 7)] == [0, 5, 5, 5, 10]


@given(WINDOWS, TIMES)
def test_piece_of_time_has_no_boundary_inside(window: Window, time_ms: int) -> None:
    """Property: a window holds all of it or nothing, and no larger piece has that property."""
    piece = window.interval_of(time_ms)
    starts = range(-10 * window.step_ms * 12, 10 * window.step_ms * 12, window.step_ms)
    boundaries = set(starts) | {start + window.size_ms for start in starts}

    assert piece.start_ms <= time_ms < piece.end_ms
    assert {at for at in boundaries if piece.start_ms <= at <= piece.end_ms} == set(piece)


@pytest.mark.parametrize(
    ("size_ms", "step_ms", "wrong"), [(0, 1, ["size"]), (-3, 0, ["size", "step"])]
)
def test_size_and_step_must_be_positive(size_ms: int, step_ms: int, wrong: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        Window(size_ms, step_ms)

    values = {"size": size_ms, "step": step_ms}
    assert list(raised.value.mistakes) == [
        f"window {name} is {values[name]} ms, must be more than 0" for name in wrong
    ]


def test_size_and_step_are_any_durations() -> None:
    assert Window.of("1h", "5m") == Window(3_600_000, 300_000)
    with pytest.raises(ConfigError, match="not understood"):
        Window.of("1 hr", "5m")


# -- WindowState -----------------------------------------------------------------------------


def test_window_slides_with_the_watermark() -> None:
    state = a_state()
    update(state, Record(0, 1), Record(5, 10), Record(10, 100), Record(15, 1000))

    seen = [state.value]
    for watermark_ms in (9, 10, 15, 19, 20, 25):
        state.on_watermark(watermark_ms)
        seen.append(state.value)

    assert seen == [11, 11, 110, 1100, 1100, 1000, 0]


def test_window_slides_over_a_gap_at_once() -> None:
    state = a_state()
    update(state, Record(0, 1), Record(1_000_000, 10))

    state.on_watermark(1_000_001)

    assert (state.window, state.value) == (Interval(999_995, 1_000_005), 10)


def test_record_before_the_window_is_late() -> None:
    state = a_state()
    state.on_watermark(12)

    assert [state.update(time_ms, 1) for time_ms in (4, 5, 11, 40)] == [False, True, True, True]
    assert (state.value, state.late_records) == (2, 1)


def test_nothing_is_late_before_event_time_is_known() -> None:
    state = a_state()

    assert state.update(-7, 1)
    state.on_watermark(-8)

    assert (state.window, state.value, state.late_records) == (Interval(-15, -5), 1, 0)


@given(WINDOWS, STEPS)
def test_value_is_a_function_of_records_and_watermark(
    window: Window, steps: list[Record | int | None]
) -> None:
    """The invariant, beside a list of all records: left, right, and what each epoch may see."""
    state, epoch, watermark_ms = a_state(window), 1, MIN_MS
    taken: list[Record] = []

    for step in steps:
        if step is None:
            state.checkpoint()
            epoch += 1
        elif isinstance(step, Record):
            record = step._replace(epoch=max(step.epoch, epoch))
            update(state, record)
            taken.append(record)
            assert state.value == total(taken, state.window, record.epoch)
        else:
            watermark_ms = max(watermark_ms, step)
            state.on_watermark(step)
        assert state.window == window.at(watermark_ms)
        assert state.left == total(taken, state.window, epoch)
        assert state.left + state.right == total(taken, state.window)


@given(WINDOWS, STEPS, STEPS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_going_on_from_a_checkpoint_leads_to_the_same(
    window: Window,
    before: list[Record | int | None],
    after: list[Record | int | None],
    epoch: int,
    order: Any,
) -> None:
    """The invariant of `PersistentState`: replayed records come in another order, perhaps."""
    state = a_state(window)
    state.set_next_checkpoint(epoch)
    _play(state, before)
    restarted = a_state(window)
    restarted.recover(state.checkpoint())
    restarted.set_next_checkpoint(epoch + 1)
    replayed = [step for step in before if isinstance(step, Record) and step.epoch > epoch]
    order.shuffle(replayed)
    _play(restarted, replayed)

    later = [
        s._replace(epoch=max(s.epoch, epoch + 1)) if isinstance(s, Record) else s for s in after
    ]
    for step in [None, *later]:
        assert (restarted.left, restarted.right) == (state.left, state.right)
        assert restarted.window == state.window
        assert restarted.checkpoint() == state.checkpoint()
        _play(state, [step])
        _play(restarted, [step])


def _play(state: WindowState[int], steps: Iterable[Record | int | None]) -> None:
    for step in steps:
        if isinstance(step, Record):
            update(state, step)
        elif step is not None:
            state.on_watermark(step)


@given(WINDOWS, st.lists(RECORDS | WATERMARKS, max_size=30), WATERMARKS)
def test_every_window_with_records_is_closed_once(
    window: Window, steps: list[Record | int], watermark_ms: int
) -> None:
    """Property: in order, with its value, however far the watermark goes at once."""
    state, taken, known = a_state(window), list[Record](), MIN_MS
    closed: list[tuple[Interval, int]] = []
    for step in [*steps, watermark_ms]:
        if isinstance(step, Record):
            state.enter(step.epoch)
            if state.update(step.time_ms, step.value):
                taken.append(step)
            continue
        state.enter(10)
        closed += state.closing(step)
        state.on_watermark(step)
        known = max(known, step)

    expected = [
        Interval(start, start + window.size_ms)
        for start in sorted(_over(window, taken))
        if start + window.size_ms <= known
    ]
    assert [each for each, _ in closed] == expected
    assert [value for _, value in closed] == [total(taken, each) for each in expected]


def _over(window: Window, records: Iterable[Record]) -> set[int]:
    return {
        start
        for record in records
        for start in range(record.time_ms - window.size_ms + 1, record.time_ms + 1)
        if start % window.step_ms == 0
    }


def test_values_may_change_in_place() -> None:
    state: WindowState[dict[str, int]] = WindowState(CountsGroup(), Json(), Window(10, 5))
    given_values = [{"a": 1}, {"a": 1}, {"b": 1}]
    for epoch, (time_ms, value) in enumerate(zip((0, 6, 6), given_values, strict=True), start=1):
        state.enter(epoch)
        state.update(time_ms, value)

    state.on_watermark(10)
    first = deepcopy((state.value, state.left, state.right))
    state.checkpoint()
    state.checkpoint()

    assert first == ({"a": 1, "b": 1}, {}, {"a": 1, "b": 1})
    assert state.left == {"a": 1, "b": 1}
    assert given_values == [{"a": 1}, {"a": 1}, {"b": 1}]


# -- checkpoints -----------------------------------------------------------------------------


def test_checkpoint_holds_what_may_be_in_a_window_still() -> None:
    state = a_state()
    update(state, Record(0, 1), Record(7, 10), Record(50, 100), Record(7, 1000, epoch=2))
    state.on_watermark(10)

    _, size_ms, step_ms, watermark_ms, sums = msgspec.msgpack.decode(state.checkpoint())

    assert (size_ms, step_ms, watermark_ms) == (10, 5, 10)
    assert sums == [[5, b"10"], [50, b"100"]]


def test_checkpoint_of_other_windows_is_refused() -> None:
    data = a_state(Window(10, 5)).checkpoint()

    with pytest.raises(
        ConfigError, match="10 ms every 5 ms, the program's are of 10 ms every 4 ms"
    ):
        a_state(Window(10, 4)).recover(data)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01", a_state().checkpoint()[:-1]])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed state of a window"):
        a_state().recover(data)


def test_checkpoint_of_another_version_is_refused() -> None:
    data = a_state().checkpoint()
    assert data[1] == 1

    with pytest.raises(ProtocolError, match="state of a window of version 2, expected 1"):
        a_state().recover(data[:1] + b"\x02" + data[2:])


def test_times_at_the_ends_can_be_stored() -> None:
    state, restarted = a_state(Window(7, 5)), a_state(Window(7, 5))
    update(state, Record(MIN_MS + 1, 1), Record(MAX_MS - 1, 1))

    restarted.recover(state.checkpoint())

    assert restarted.checkpoint() == state.checkpoint()
