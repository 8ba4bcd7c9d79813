"""The epochs of one group of tasks in an executor: who is told what, and what is told of it."""

from collections.abc import Callable
from typing import Any

from gearpy.actor.api import Ref
from gearpy.cluster.executor.epoch_files import EpochFiles, epoch_stored
from gearpy.cluster.executor.snapshot_writer import (
    EpochFailed,
    EpochSaved,
    TasksLoaded,
    WriterMessage,
)
from gearpy.cluster.executor.task_group import TaskGroup
from gearpy.ids import ExecutorId, TaskId
from gearpy.messages.app import BeginEpoch, CommitEpoch, EpochCommitted, LaunchTasks
from gearpy.storage.changelog import Changelog
from gearpy.task.api.snapshots import TaskSnapshot
from gearpy.task.runtime.actor import CommitTask, CutEpoch

__all__ = ["GroupEpochs", "new_group_epochs"]


class GroupEpochs:
    """Tells tasks about epochs, has stored what they hand over, tells the app master.

    Part of an `ExecutorActor`; runs on its thread.

    Args:
        group: the tasks.
        files: what is stored of them.
        executor_id: for the app master.
        tell: tells the app master.
        writer: stores.
    """

    def __init__(
        self,
        group: TaskGroup,
        files: EpochFiles,
        *,
        executor_id: ExecutorId,
        tell: Callable[[Any], None],
        writer: Ref[WriterMessage],
    ) -> None:
        self._group = group
        self._files = files
        self._executor_id = executor_id
        self._tell = tell
        self._writer = writer
        self._committing = 0  # The newest epoch that tasks were told to be complete.
        self._uncommitted: set[TaskId] = set()
        self._is_failing = False  # Storing has failed; it is tried again when somebody asks.

    def begin(self, message: BeginEpoch) -> None:
        """Let sources end an epoch; asked again, store what could not be stored before."""
        for ref in self._group.source_refs():
            ref.tell(CutEpoch(message.epoch, message.cut_time_ms, message.is_last))
        self._is_failing = False
        self._store()

    def commit(self, message: CommitEpoch) -> None:
        """Let all tasks show what belongs to an epoch."""
        if message.epoch > self._committing:
            self._committing = message.epoch
            self._uncommitted = set(self._group.tasks)
        elif message.epoch < self._committing:
            return  # Overtaken; the later one is answered.
        for task in sorted(self._uncommitted):
            self._group.tasks[task].tell(CommitTask(message.epoch))
        self._tell_if_committed()

    def on_committed(self, task: TaskId, epoch: int) -> None:
        """Note that a task has shown what belongs to an epoch."""
        if epoch >= self._committing and task in self._uncommitted:
            self._uncommitted.discard(task)
            self._tell_if_committed()

    def on_snapshot(self, task: TaskId, snapshot: TaskSnapshot) -> None:
        """Take what a task was at the end of an epoch."""
        self._files.on_snapshot(task, snapshot)
        self._store()

    def on_saved(self, message: EpochSaved) -> None:
        """Tell the app master of an epoch that is stored; store the next."""
        job, files = self._files.on_stored(
            message.stored, segments=message.segments, stands_alone=message.stands_alone
        )
        self._tell(epoch_stored(self._executor_id, job, files))
        self._store()

    def on_failed(self, message: EpochFailed) -> None:
        """Leave it until somebody asks again."""
        self._files.on_failed()
        self._is_failing = True

    def _store(self) -> None:
        if self._is_failing or self._group.is_stopped:
            return  # What a stopped group would store comes too late to count.
        if (job := self._files.next_job()) is not None:
            self._writer.tell(job)

    def _tell_if_committed(self) -> None:
        if not self._uncommitted:
            self._tell(
                EpochCommitted(
                    executor_id=self._executor_id,
                    attempt=self._group.attempt,
                    epoch=self._committing,
                )
            )


def new_group_epochs(
    group: TaskGroup,
    loaded: TasksLoaded,
    *,
    prefix: str,
    executor_id: ExecutorId,
    chain_files_max: int,
    tell: Callable[[Any], None],
    writer: Ref[WriterMessage],
) -> GroupEpochs:
    """Return the epochs of a group that goes on from what was loaded; see `GroupEpochs`."""
    suffix = f"attempt{group.attempt}-executor{executor_id}"
    files = EpochFiles(
        attempt=group.attempt,
        tasks=frozenset(group.sessions),
        prefix=f"{prefix}/epochs/region{group.region}",
        suffix=suffix,
        chain=loaded.chain,
        chain_files_max=chain_files_max,
        changelog=_changelog(loaded.launch, f"{prefix}/changelog", suffix, chain_files_max),
        is_rebuilt=loaded.is_rebuilt,
    )
    return GroupEpochs(group, files, executor_id=executor_id, tell=tell, writer=writer)


def _changelog(
    launch: LaunchTasks, prefix: str, suffix: str, segments_max: int
) -> Changelog | None:
    """Return the changelog of the tasks that have a partition of it; None if there are none."""
    partitions = {
        each.task_id: each.partition for each in launch.tasks if each.partition is not None
    }
    if not partitions:
        return None
    return Changelog(
        partitions=partitions,
        prefix=prefix,
        suffix=suffix,
        files=launch.snapshots,
        segments_max=segments_max,
    )
