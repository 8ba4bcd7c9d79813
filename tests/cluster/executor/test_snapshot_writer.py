"""The recordings that a writer stores, also those that wait when its executor ends."""

from collections import deque

from gearpy.cluster.executor.snapshot_writer import NamedRecording, SnapshotWriter, StoreRecording
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.held import HeldCheckpoints
from gearpy.task.runtime.recording import Recording


def test_recordings_of_failures_are_stored_although_the_executor_ends() -> None:
    store = MemoryCheckpoints()
    HeldCheckpoints(store, "app1").begin(is_known=False)
    waiting = deque(
        NamedRecording(f"app1/{name}", Recording(first=1, epoch=1, failed=failed))
        for name, failed in (("first", ""), ("well", ""), ("failed", "ValueError"))
    )
    writer = SnapshotWriter(None, store, prefix="app1", recordings=waiting)  # type: ignore[arg-type] # nobody is told

    writer.receive(StoreRecording())
    writer.on_stop()

    assert store.names("app1") == ["app1/coordinator/mark", "app1/failed", "app1/first"]
    assert Recording.decode(store.load("app1/failed")).failed == "ValueError"
