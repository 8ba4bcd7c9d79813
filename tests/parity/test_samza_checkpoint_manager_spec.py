"""Promises of Samza's `CheckpointManager`: places of sources in the coordinator log.

Of `TestFileSystemCheckpointManager`, and of `TestCheckpointTool` what it asks of the manager.
"""

from gearpy.core.coordinator.views import SourcePlaces, TaskPlaces
from gearpy.ids import TaskId
from gearpy.messages.app import TaskOffsets
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog

ONE, TWO = TaskId(0, 0), TaskId(0, 1)


def a_log(checkpoints: MemoryCheckpoints, launch: int = 1) -> CoordinatorLog:
    """Open a log."""
    return CoordinatorLog(checkpoints, "app1", launch=launch, source="test", wall_ms=lambda: 1)


def offsets(task: TaskId, **places: bytes) -> TaskOffsets:
    """Return where a task's partitions are."""
    return TaskOffsets(task_id=task, offsets=places)


def test_a_checkpoint_that_was_never_written_is_none() -> None:
    """`testReadForCheckpointFileThatDoesNotExistShouldReturnNull`."""
    assert SourcePlaces(a_log(MemoryCheckpoints()).state).read(ONE) is None


def test_a_checkpoint_is_read_as_it_was_written() -> None:
    """`testReadForCheckpointFileThatDoesExistShouldReturnProperCheckpoint`: of three partitions."""
    checkpoints = MemoryCheckpoints()
    log = a_log(checkpoints)
    log.append([SourcePlaces(log.state).write(offsets(ONE, b=b"c", c=b"d", d=b"e"), epoch=1)])

    read = SourcePlaces(a_log(checkpoints, 2).state).read(ONE)

    assert read == TaskPlaces(task=ONE, epoch=1, offsets={"b": b"c", "c": b"d", "d": b"e"})


def test_the_last_checkpoint_is_read() -> None:
    """`CheckpointManager.readLastCheckpoint`; `TestCheckpointTool.testReadLatestCheckpoint`."""
    log = a_log(MemoryCheckpoints())
    manager = SourcePlaces(log.state)
    for epoch, place in ((1, b"1234"), (2, b"4321")):
        log.append([manager.write(offsets(task, p=place), epoch=epoch) for task in (ONE, TWO)])

    assert [each.offsets for each in manager.read_all()] == [{"p": b"4321"}] * 2


def test_checkpoints_are_overwritten() -> None:
    """`TestCheckpointTool.testOverwriteCheckpoint`: the tasks begin there at the next start.

    In Samza a checkpoint is where a task begins. Here that is in the snapshots, so that what the
    tool writes is marked, and counts more than these until the next epoch is complete.
    """
    checkpoints = MemoryCheckpoints()
    log = a_log(checkpoints)
    manager = SourcePlaces(log.state)
    log.append([manager.write(offsets(task, p=b"1234"), epoch=1) for task in (ONE, TWO)])

    log.append([manager.override(offsets(ONE, p=b"42")), manager.override(offsets(TWO, p=b"43"))])

    restarted = SourcePlaces(a_log(checkpoints, 2).state)
    assert [each.offsets for each in restarted.read_all()] == [{"p": b"42"}, {"p": b"43"}]
    assert restarted.overrides([ONE, TWO], epoch=1) == (
        offsets(ONE, p=b"42"),
        offsets(TWO, p=b"43"),
    )
    log = a_log(checkpoints, 3)
    log.append([SourcePlaces(log.state).write(offsets(ONE, p=b"50"), epoch=2)])
    assert SourcePlaces(log.state).overrides([ONE, TWO], epoch=2) == ()
