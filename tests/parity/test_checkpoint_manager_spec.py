"""Promises of Gearpump's `CheckpointManagerSpec`."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.gearpump.checkpoint_manager import CheckpointManager, InMemoryCheckpointStore

TIMES = st.integers(0, 1000)
INTERVALS = st.integers(100, 10_000)


class AStore(InMemoryCheckpointStore):
    """Tells whether it was closed."""

    is_closed = False

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


@given(TIMES, INTERVALS)
def test_recovers_from_the_store(time_ms: int, interval_ms: int) -> None:
    """`CheckpointManagerSpec`: "should recover from CheckpointStore"."""
    store = InMemoryCheckpointStore()
    store.persist(time_ms, b"kept")

    assert CheckpointManager(interval_ms, store).recover(time_ms) == b"kept"


@given(TIMES, INTERVALS, st.binary())
def test_writes_to_the_store(time_ms: int, interval_ms: int, data: bytes) -> None:
    """`CheckpointManagerSpec`: "should write checkpoint to CheckpointStore"."""
    store = InMemoryCheckpointStore()
    manager = CheckpointManager(interval_ms, store)
    checkpoint_ms = manager.update(time_ms)
    assert checkpoint_ms is not None

    manager.checkpoint(checkpoint_ms, data)

    assert store.recover(checkpoint_ms) == data


@given(INTERVALS)
def test_closes_the_store(interval_ms: int) -> None:
    """`CheckpointManagerSpec`: "should close CheckpointStore"."""
    store = AStore()

    CheckpointManager(interval_ms, store).close()

    assert store.is_closed


@given(TIMES, INTERVALS)
def test_next_checkpoint_time_follows_the_newest_message(time_ms: int, interval_ms: int) -> None:
    """`CheckpointManagerSpec`: less than an interval later; without newer ones there is none."""
    manager = CheckpointManager(interval_ms, InMemoryCheckpointStore())

    checkpoint_ms = manager.update(time_ms)

    assert checkpoint_ms is not None
    assert manager.newest_ms == time_ms
    assert checkpoint_ms - interval_ms <= time_ms < checkpoint_ms
    assert manager.checkpoint(checkpoint_ms, b"") is None
