"""Promises of Gearpump's `WindowStateSpec`; for its intervals see `test_interval_spec`.

Sides are told by numbers of epochs instead of event times; the numbers come from a
`CheckpointManager` here, which makes them of event times.
"""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.checkpoint_manager import CheckpointManager, InMemoryCheckpointStore
from gearpy.core.gearpump.monoids import SumGroup
from gearpy.core.gearpump.window_state import Interval, Window, WindowState
from gearpy.task.api.persistent import ValueSerializer

TIMES = st.integers(100, 10_000)


def a_state(window: Window) -> WindowState[int]:
    """Return a state that adds numbers up."""
    return WindowState(SumGroup(), ValueSerializer(), window)


def a_manager(checkpoint_ms: int) -> CheckpointManager:
    """Return a manager that takes a checkpoint at a time."""
    manager = CheckpointManager(None, InMemoryCheckpointStore())
    manager.agree(checkpoint_ms)
    return manager


def update(state: WindowState[int], manager: CheckpointManager, time_ms: int, value: int) -> None:
    """Let a state take a value on the side of the next checkpoint where it belongs."""
    state.enter(manager.epoch_of(time_ms))
    state.update(time_ms, value)


@given(TIMES, st.integers(1, 9))
def test_init_recovers_checkpointed_state(start_ms: int, value: int) -> None:
    """`WindowStateSpec`: what was stored is left, nothing is right."""
    window = Window(10, 5)
    kept = a_state(window)
    kept.on_watermark(start_ms)
    kept.update(start_ms, value)
    state = a_state(window)

    assert (state.left, state.right, state.value) == (0, 0, 0)
    state.recover(kept.checkpoint())

    assert (state.left, state.right, state.value) == (value, 0, value)
    assert state.window == kept.window


@given(TIMES)
def test_checkpoints(checkpoint_ms: int) -> None:
    """`WindowStateSpec`: what is older is stored; then right becomes part of left."""
    window, manager = Window(2 * checkpoint_ms, 1), a_manager(checkpoint_ms)
    state, restarted = a_state(window), a_state(window)
    update(state, manager, checkpoint_ms - 1, 1)
    update(state, manager, checkpoint_ms, 10)

    assert (state.left, state.right) == (1, 10)
    restarted.recover(state.checkpoint())

    assert (state.left, state.right) == (11, 0)
    assert (restarted.left, restarted.right) == (1, 0)


@given(TIMES)
def test_updates_state(checkpoint_ms: int) -> None:
    """`WindowStateSpec`: left before the checkpoint, right from there on, and sliding."""
    state, manager = a_state(Window(2, 1)), a_manager(checkpoint_ms)
    state.on_watermark(checkpoint_ms)
    assert state.window == Interval(checkpoint_ms - 1, checkpoint_ms + 1)

    update(state, manager, checkpoint_ms - 1, 1)
    older = (state.left, state.right, state.value)
    update(state, manager, checkpoint_ms, 10)
    newer = (state.left, state.right, state.value)
    update(state, manager, checkpoint_ms + 1, 100)
    outside = (state.left, state.right, state.value)
    state.on_watermark(checkpoint_ms + 1)

    assert [older, newer, outside] == [(1, 0, 1), (1, 10, 11), (1, 10, 11)]
    assert state.window == Interval(checkpoint_ms, checkpoint_ms + 2)
    assert (state.left, state.right, state.value) == (0, 110, 110)
