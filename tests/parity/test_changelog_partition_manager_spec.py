"""Promises of Samza's `ChangelogPartitionManager`, later `ChangelogStreamManager`.

Of `TestChangelogStreamManager`, and of `JobModelManager`, which gives partitions to new tasks.
Creating topics has no counterpart.
"""

from gearpy.core.coordinator.log import draft
from gearpy.core.coordinator.views import SET_CHANGELOG, ChangelogPartitions
from gearpy.ids import TaskId
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog

TASKS = [TaskId(0, each) for each in range(5)]


def a_log() -> CoordinatorLog:
    checkpoints = MemoryCheckpoints()
    log = CoordinatorLog(checkpoints, "app1", launch=1, source="test", wall_ms=lambda: 1)
    log.append(ChangelogPartitions(log.state).assign(TASKS))
    return log


def test_a_mapping_is_written_and_null_deletes() -> None:
    log = a_log()
    changelog = ChangelogPartitions(log.state)
    t0, t1, t2, t3, t4 = TASKS
    assert changelog.read() == {t0: 0, t1: 1, t2: 2, t3: 3, t4: 4}

    drafts = changelog.write({t0: 5, t1: 6, t2: None, t3: None, t4: 7})
    log.append(drafts)

    deleted = [each for each in drafts if each.values is None]
    assert deleted == [draft(SET_CHANGELOG, str(each), None) for each in (t2, t3)]
    assert changelog.read() == {t0: 5, t1: 6, t4: 7}


def test_an_empty_log_maps_nothing() -> None:
    log = CoordinatorLog(MemoryCheckpoints(), "app1", launch=1, source="test", wall_ms=lambda: 1)

    assert ChangelogPartitions(log.state).read() == {}


def test_tasks_keep_their_partitions_and_new_ones_get_the_next() -> None:
    """`JobModelManager`: one more than the largest that was ever given out.

    Tasks that have gone keep theirs, so that nobody gets a partition with another task's changes.
    """
    log = a_log()
    changelog = ChangelogPartitions(log.state)
    survivor, newcomers = TASKS[0], [TaskId(7, 1), TaskId(7, 0)]

    log.append(changelog.assign([survivor, *newcomers]))

    mapping = changelog.read()
    assert [mapping[task] for task in (survivor, TaskId(7, 0), TaskId(7, 1))] == [0, 5, 6]
    assert [mapping[task] for task in TASKS] == [0, 1, 2, 3, 4]
