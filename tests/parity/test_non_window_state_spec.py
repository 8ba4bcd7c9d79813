"""Promises of Gearpump's `NonWindowStateSpec`, with numbers of epochs for checkpoint times."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.monoid_state import NonWindowState
from gearpy.core.gearpump.monoids import SumGroup
from gearpy.task.api.persistent import ValueSerializer

EPOCHS = st.integers(1, 2**40)
VALUES = st.integers(-9, 9)


def a_state() -> NonWindowState[int]:
    """Return a state that adds numbers up."""
    return NonWindowState(SumGroup(), ValueSerializer())


@given(EPOCHS, VALUES)
def test_recovers_checkpointed_state(epoch: int, value: int) -> None:
    """`NonWindowStateSpec`: what was stored is left, nothing is right."""
    state = a_state()
    assert (state.left, state.right, state.value) == (0, 0, 0)

    state.recover(ValueSerializer().to_bytes(value))
    state.set_next_checkpoint(epoch)

    assert (state.left, state.right, state.value) == (value, 0, value)


@given(EPOCHS, VALUES, VALUES)
def test_checkpoints_state(epoch: int, left: int, right: int) -> None:
    """`NonWindowStateSpec`: left is stored, then right is part of it."""
    state = a_state()
    state.set_next_checkpoint(epoch)
    state.update(0, left)
    state.enter(epoch + 1)
    state.update(0, right)

    data = state.checkpoint()

    assert ValueSerializer().from_bytes(data) == left
    assert (state.left, state.right, state.value) == (left + right, 0, left + right)


@given(EPOCHS, VALUES, VALUES)
def test_updates_state(epoch: int, left: int, right: int) -> None:
    """`NonWindowStateSpec`: before the checkpoint left, behind it right; both are the value."""
    state = a_state()
    state.set_next_checkpoint(epoch)

    state.enter(epoch)
    state.update(0, left)
    older = (state.left, state.right, state.value)
    state.enter(epoch + 1)
    state.update(0, right)

    assert older == (left, 0, left)
    assert (state.left, state.right, state.value) == (left, right, left + right)
