"""The epochs of a group of tasks in an executor: stores each one and reports it."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from gearpy.actor.api import Ref
from gearpy.cluster.executor.snapshot_writer import (
    EpochFailed,
    EpochSaved,
    StoreEpoch,
    TasksLoaded,
    WriterMessage,
)
from gearpy.cluster.executor.task_group import TaskGroup
from gearpy.ids import ExecutorId, TaskId
from gearpy.messages.app import (
    BeginEpoch,
    CommitEpoch,
    EpochCommitted,
    EpochStored,
    EpochUnstored,
    SnapshotFile,
    TaskOffsets,
)
from gearpy.storage.changelog import Changelog, kept_segments
from gearpy.task.api.snapshots import TaskSnapshot
from gearpy.task.runtime.actor import CommitTask, CutEpoch, TellAgain

#: No chain has more than so many times the files that are allowed, even if others wait.
_GROWTH_MAX: Final = 4


class EpochFiles:
    """Gathers the snapshots of one attempt's tasks, and decides which files to store.

    A file holds the heads of all tasks and what has changed of keyed state since the file before.
    Where nothing of keyed state is in the files before, they are not needed any more.

    Invariant: one epoch is being stored at a time; what could not be stored, or belongs to an epoch
    that was given up, is part of the next one.

    Args:
        chain: the files that the tasks have gone on from and that hold keyed state.
        is_rebuilt: the chain is the changelog, as files of epochs were damaged. The first file that
            is stored takes the place of all of it.

    Where files before are damaged, and nothing else has what was in them, epochs wait until all
    tasks have handed over their whole state: that stands for all that came before.
    """

    def __init__(
        self,
        *,
        attempt: int,
        tasks: frozenset[TaskId],
        prefix: str,
        suffix: str,
        chain: Sequence[SnapshotFile],
        chain_files_max: int,
        changelog: Changelog | None = None,
        is_rebuilt: bool = False,
    ) -> None:
        self._attempt = attempt
        self._tasks = tasks
        self._prefix = prefix
        self._suffix = suffix
        self._chain = list(chain)
        self._chain_files_max = chain_files_max
        self.keeps_all = False  #: No file is written anew.
        # A taken over state has files of several executors. The first epoch, which the trial of
        # a version waits for, must not write all of them anew.
        self._grows_to = len(chain) + chain_files_max // 2 if any(f.taken for f in chain) else 0
        self._changelog = changelog
        self._is_rebuilt = is_rebuilt
        self._is_damaged = False
        self.in_vain = 0  #: Tasks have ended this epoch, and it waits for a later one all the same.
        self._waiting: dict[TaskId, list[TaskSnapshot]] = {task: [] for task in tasks}
        self._job: StoreEpoch | None = None

    def on_snapshot(self, task: TaskId, snapshot: TaskSnapshot) -> None:
        self._waiting[task].append(snapshot)

    def next_job(self) -> StoreEpoch | None:
        """Return the epoch to store now: the newest one with a snapshot of every task."""
        if self._job is not None or not self._waiting:
            return None
        common = set.intersection(
            *({each.epoch for each in waiting} for waiting in self._waiting.values())
        )
        if not common:
            return None
        epoch = max(common)
        snapshots = dict[TaskId, list[TaskSnapshot]]()
        for task, waiting in self._waiting.items():
            due = [each for each in waiting if each.epoch <= epoch]
            first = max((n for n, each in enumerate(due) if each.is_whole), default=0)
            snapshots[task] = due[first:]  # A whole one stands for those before.
        self.in_vain = 0
        if all(each[0].is_whole for each in snapshots.values()):
            self._chain, self._is_rebuilt = [], False
            if self._changelog is not None:
                self._changelog.begin_anew()
        elif self._is_damaged:
            self.in_vain = epoch
            return None
        kept = 0 if self._is_rebuilt else self._kept()
        changelog = self._changelog
        changed = {
            task
            for task, those in snapshots.items()
            if any(each.delta is not None for each in those)
        }
        self._job = StoreEpoch(
            attempt=self._attempt,
            epoch=epoch,
            name=f"{self._prefix}/epoch{epoch}-{self._suffix}",
            snapshots=snapshots,
            kept=tuple(self._chain[:kept]),
            rebased=tuple(self._chain[kept:]),
            segments=() if changelog is None else changelog.next_segments(epoch, changed),
            changelog=changelog.files if changelog is not None and changelog.is_complete else (),
        )
        return self._job

    def _kept(self) -> int:
        sizes = [each.size_bytes for each in self._chain]
        kept = len(sizes)
        if self.keeps_all and kept < _GROWTH_MAX * self._chain_files_max:
            return kept
        if kept >= self._grows_to:
            kept = kept_segments(sizes, self._chain_files_max)
        if kept < len(sizes):
            self._grows_to = 0
        return kept

    def on_failed(self, *, is_damage: bool = False) -> None:
        self._job = None
        self._is_damaged = self._is_damaged or is_damage

    def on_stored(self, saved: EpochSaved) -> list[SnapshotFile]:
        """Note that the job was done; return all files that the epoch needs."""
        job, self._job = self._job, None
        assert job is not None, "nothing was being stored"
        for task, waiting in self._waiting.items():
            for snapshot in waiting:
                if snapshot.delta is not None and snapshot.epoch <= job.epoch:
                    snapshot.delta.release()
            self._waiting[task] = [each for each in waiting if each.epoch > job.epoch]
        before = [] if saved.stands_alone else list(job.kept)
        has_state = bool(job.rebased) or any(
            each.delta is not None for snapshots in job.snapshots.values() for each in snapshots
        )
        self._chain = [*before, saved.file] if has_state else before
        self._is_rebuilt = self._is_damaged = False
        if self._changelog is None:
            return [*before, saved.file]
        self._changelog.on_stored(saved.segments)
        return [*before, saved.file, *self._changelog.files]


class GroupEpochs:
    """Runs the epochs of a group: tells its tasks, stores their snapshots, tells the app master.

    Part of an `ExecutorActor`; runs on its thread.
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
        self._failed: EpochFailed | None = None  # The newest one because of damage.

    def begin(self, message: BeginEpoch) -> None:
        """Let sources end an epoch; on a repeated request, store again after a failure."""
        for ref in self._group.source_refs():
            cut_ms, is_last = message.cut_time_ms, message.is_last
            ref.tell(CutEpoch(message.epoch, cut_ms, is_last, message.caught_up))
        self._is_failing = False
        self._files.keeps_all = message.keeps_files
        self._store()

    def commit(self, message: CommitEpoch) -> None:
        if message.epoch > self._committing:
            self._committing = message.epoch
            self._uncommitted = set(self._group.tasks)
        elif message.epoch < self._committing:
            return  # Overtaken; the later one is answered.
        for task in sorted(self._uncommitted):
            self._group.tasks[task].tell(CommitTask(message.epoch))
        self._tell_if_committed()

    def on_committed(self, task: TaskId, epoch: int) -> None:
        if epoch >= self._committing and task in self._uncommitted:
            self._uncommitted.discard(task)
            self._tell_if_committed()

    def on_snapshot(self, task: TaskId, snapshot: TaskSnapshot) -> None:
        self._files.on_snapshot(task, snapshot)
        self._store()

    def on_saved(self, message: EpochSaved) -> None:
        files = self._files.on_stored(message)
        job = message.job
        last = {task: snapshots[-1] for task, snapshots in sorted(job.snapshots.items())}
        self._tell(
            EpochStored(
                executor_id=self._executor_id,
                attempt=job.attempt,
                epoch=job.epoch,
                snapshots=tuple(files),
                offsets=tuple(
                    TaskOffsets(task_id=task, offsets=dict(each.offsets))
                    for task, each in last.items()
                    if each.offsets
                ),
                has_missed_cut=any(each.has_missed_cut for each in last.values()),
                has_more=any(each.has_more for each in last.values()),
                storing_ms=message.took_ms,
            )
        )
        self._store()

    def on_failed(self, message: EpochFailed) -> None:
        """Store nothing until the app master asks again; in damage let tasks tell all again."""
        self._files.on_failed(is_damage=bool(message.damaged))
        self._is_failing = True
        self._tell(epoch_unstored(self._executor_id, message, message.job.epoch))
        if message.damaged:
            self._failed = message
            for task in sorted(self._group.tasks):
                self._group.tasks[task].tell(TellAgain())

    def _store(self) -> None:
        if self._is_failing or self._group.is_stopped:
            return  # Files of a stopped group would come too late to count.
        if (job := self._files.next_job()) is not None:
            self._writer.tell(job)
        elif self._files.in_vain and self._failed is not None:
            self._tell(epoch_unstored(self._executor_id, self._failed, self._files.in_vain))

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
    suffix = f"attempt{group.attempt}-executor{executor_id}"
    launch = loaded.launch
    given = {each.task_id: each.partition for each in launch.tasks if each.partition is not None}
    changelog = None
    if given:
        changelog = Changelog(
            partitions=given,
            prefix=f"{prefix}/changelog",
            suffix=suffix,
            files=launch.snapshots,
            segments_max=chain_files_max,
        )
    files = EpochFiles(
        attempt=group.attempt,
        tasks=frozenset(group.sessions),
        prefix=f"{prefix}/epochs/region{group.region}",
        suffix=suffix,
        chain=loaded.chain,
        chain_files_max=chain_files_max,
        changelog=changelog,
        is_rebuilt=loaded.is_rebuilt,
    )
    return GroupEpochs(group, files, executor_id=executor_id, tell=tell, writer=writer)


def epoch_unstored(executor_id: ExecutorId, failed: EpochFailed, epoch: int) -> EpochUnstored:
    return EpochUnstored(
        executor_id=executor_id,
        attempt=failed.job.attempt,
        epoch=epoch,
        reason=failed.reason,
        damaged=failed.damaged,
    )
