"""The recordings that a writer stores, also those that wait when its executor ends."""

from collections import deque

from gearpy.cluster.executor.snapshot_writer import NamedRecording, SnapshotWriter, StoreRecording
from gearpy.ids import TaskId
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.held import HeldCheckpoints
from gearpy.task.runtime.recording import Recording


def test_recordings_that_lead_to_failures_are_stored_although_the_executor_ends() -> None:
    store = MemoryCheckpoints()
    HeldCheckpoints(store, "app1").begin(is_known=False)
    waiting = deque(
        NamedRecording(TaskId(1, index), f"app1/{name}", Recording(first=1, epoch=1, failed=failed))
        for index, name, failed in (
            (0, "first", ""),
            (0, "well", ""),
            (1, "leading", ""),
            (1, "failed", "ValueError"),
        )
    )
    writer = SnapshotWriter(None, store, prefix="app1", recordings=waiting)  # type: ignore[arg-type] # nobody is told

    writer.receive(StoreRecording())
    writer.on_stop()

    stored = ["app1/coordinator/mark", "app1/failed", "app1/first", "app1/leading"]
    assert store.names("app1") == stored
    assert Recording.decode(store.load("app1/failed")).failed == "ValueError"
