"""Promises of Gearpump's `InMemoryCheckpointStoreSpec`."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.checkpoint_manager import InMemoryCheckpointStore


@given(st.integers(1, 1000), st.binary())
def test_provides_read_and_write_of_checkpoints(time_ms: int, data: bytes) -> None:
    """`InMemoryCheckpointStoreSpec`: nothing before it was written, then exactly that."""
    store = InMemoryCheckpointStore()

    before = store.recover(time_ms)
    store.persist(time_ms, data)

    assert before is None
    assert store.recover(time_ms) == data
    assert store.recover(time_ms + 1) is None
