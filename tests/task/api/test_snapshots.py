"""What a task is, as bytes and back."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import OperatorError, ProtocolError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.snapshots import TaskState
from gearpy.wire.values.payload import encode_value

TIMES = st.integers(MIN_MS, MAX_MS)
STATES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary() | st.tuples(st.integers(), st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner),
    max_leaves=8,
)


def a_state(**changes: object) -> TaskState:
    fields = {"task": None, "counters": {}, "watermark_ms": 1, "clock_ms": 2} | changes
    return TaskState(**fields)  # type: ignore[arg-type] # a builder


@given(STATES, TIMES, TIMES, st.lists(st.tuples(st.integers(0, 10**9), STATES), max_size=3))
def test_state_is_read_as_it_was_written(
    task: object, watermark_ms: int, clock_ms: int, timers: list[tuple[int, object]]
) -> None:
    """Property: whatever plain data a task keeps."""
    state = a_state(
        task=task,
        counters={"records_in": 3},
        watermark_ms=watermark_ms,
        clock_ms=clock_ms,
        timers=timers,
    )

    assert TaskState.decode(state.encode("op")) == state


def test_state_that_is_no_plain_data_names_operator_and_type() -> None:
    class Mine:
        pass

    with pytest.raises(OperatorError) as raised:
        a_state(task={"a": Mine()}).encode("count words")

    assert raised.value.operator == "count words"
    assert "snapshot cannot be stored: value['a'] cannot" in raised.value.cause
    assert "Mine" in raised.value.cause
    assert "at the top of its module" in raised.value.cause


def test_timer_that_is_no_plain_data_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    timers = [(1, "a"), (2, object()), (3, "c")]

    with caplog.at_level(logging.WARNING):
        state = TaskState.decode(a_state(timers=timers).encode("op"))

    assert state.timers == [(1, "a"), (3, "c")]
    assert "operator 'op': a timer will not be there after a restart" in caplog.text


def test_snapshot_of_another_version_is_refused() -> None:
    with pytest.raises(ProtocolError, match="snapshot has version 9, this gearpy reads 1"):
        TaskState.decode(encode_value([9]))
