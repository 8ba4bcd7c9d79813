"""What one executor stores of each epoch, and which of its files a restart needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gearpy.ids import ExecutorId, TaskId
from gearpy.messages.app import EpochStored, SnapshotFile, TaskOffsets
from gearpy.storage.changelog import Changelog, NextSegment, kept_segments
from gearpy.storage.checkpoints import StoredFile
from gearpy.storage.snapshot_files import TaskPart
from gearpy.task.api.snapshots import TaskSnapshot

__all__ = ["EpochFiles", "StoreEpoch", "epoch_stored"]

_NO_SEGMENTS: Final[Mapping[TaskId, tuple[SnapshotFile, ...]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEpoch:
    """Store an epoch under a name.

    Attributes:
        attempt: whose epoch it is.
        snapshots: of each task all that are not stored yet, oldest first; the last one is of the
            epoch, and its head is what counts.
        kept: files before it that it goes on from.
        rebased: files behind these that it takes the place of.
        segments: what is to be stored of the changelog.
        changelog: its segments so far, if the keyed state of all tasks is in them.
    """

    attempt: int
    epoch: int
    name: str
    snapshots: Mapping[TaskId, Sequence[TaskSnapshot]]
    kept: tuple[SnapshotFile, ...] = ()
    rebased: tuple[SnapshotFile, ...] = ()
    segments: tuple[NextSegment, ...] = ()
    changelog: tuple[SnapshotFile, ...] = ()

    def parts(self) -> list[TaskPart]:
        """Return what the file will hold."""
        return [
            TaskPart(
                task=task,
                head=snapshots[-1].head,
                deltas=[each.sections for each in snapshots],
            )
            for task, snapshots in sorted(self.snapshots.items())
        ]


class EpochFiles:
    """Gathers the snapshots of one attempt's tasks, and says what to store.

    A file holds the heads of all tasks and what has changed of keyed state since the file before.
    Where nothing of keyed state is in the files before, they are not needed any more.

    Invariant: one epoch is being stored at a time; what could not be stored, or belongs to an epoch
    that was given up, is part of the next one.

    Args:
        tasks: all of the attempt in this executor.
        prefix: of the names of its files.
        suffix: of these names; no other executor and attempt has both.
        chain: the files that the tasks have gone on from and that hold keyed state.
        chain_files_max: when everything is written anew.
        changelog: of the tasks; None: there is none.
        is_rebuilt: the chain is the changelog, as files of epochs were damaged. The first file that
            is stored takes the place of all of it.
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
        self._changelog = changelog
        self._is_rebuilt = is_rebuilt
        self._waiting: dict[TaskId, list[TaskSnapshot]] = {task: [] for task in tasks}
        self._job: StoreEpoch | None = None

    def on_snapshot(self, task: TaskId, snapshot: TaskSnapshot) -> None:
        """Take what a task was at the end of an epoch."""
        self._waiting[task].append(snapshot)

    def next_job(self) -> StoreEpoch | None:
        """Return what to store now: the newest epoch of which every task has given a snapshot."""
        epoch = self._complete_epoch()
        if self._job is not None or epoch is None:
            return None
        sizes = [each.size_bytes for each in self._chain]
        kept = 0 if self._is_rebuilt else kept_segments(sizes, self._chain_files_max)
        snapshots = {
            task: [each for each in waiting if each.epoch <= epoch]
            for task, waiting in self._waiting.items()
        }
        self._job = StoreEpoch(
            attempt=self._attempt,
            epoch=epoch,
            name=f"{self._prefix}/epoch{epoch}-{self._suffix}",
            snapshots=snapshots,
            kept=tuple(self._chain[:kept]),
            rebased=tuple(self._chain[kept:]),
            segments=self._next_segments(epoch, snapshots),
            changelog=self._complete_changelog(),
        )
        return self._job

    def on_failed(self) -> None:
        """Note that the job was not done; it comes again."""
        self._job = None

    def on_stored(
        self,
        stored: StoredFile,
        *,
        segments: Mapping[TaskId, tuple[SnapshotFile, ...]] = _NO_SEGMENTS,
        stands_alone: bool = False,
    ) -> tuple[StoreEpoch, list[SnapshotFile]]:
        """Note that the job was done; return it, and all files that the epoch needs.

        Args:
            stored: the file.
            segments: of the changelog, of tasks that have another one.
            stands_alone: the file takes the place of those that were to be kept, too.
        """
        job, self._job = self._job, None
        assert job is not None, "nothing was being stored"
        for task, snapshots in job.snapshots.items():
            del self._waiting[task][: len(snapshots)]
            for snapshot in snapshots:
                if snapshot.delta is not None:
                    snapshot.delta.release()
        file = SnapshotFile(
            location=stored.location,
            sha256=stored.sha256,
            size_bytes=stored.size_bytes,
            tasks=tuple(sorted(self._tasks)),
        )
        before = [] if stands_alone else list(job.kept)
        has_state = bool(job.rebased) or any(
            each.delta is not None for snapshots in job.snapshots.values() for each in snapshots
        )
        self._chain = [*before, file] if has_state else before
        self._is_rebuilt = False
        if self._changelog is None:
            return job, [*before, file]
        self._changelog.on_stored(segments)
        return job, [*before, file, *self._changelog.files]

    def _next_segments(
        self, epoch: int, snapshots: Mapping[TaskId, Sequence[TaskSnapshot]]
    ) -> tuple[NextSegment, ...]:
        if self._changelog is None:
            return ()
        changed = {
            task
            for task, those in snapshots.items()
            if any(each.delta is not None for each in those)
        }
        return self._changelog.next_segments(epoch, changed)

    def _complete_changelog(self) -> tuple[SnapshotFile, ...]:
        if self._changelog is None or not self._changelog.is_complete:
            return ()
        return self._changelog.files

    def _complete_epoch(self) -> int | None:
        """Return the newest epoch that all tasks have ended; a task may have skipped others."""
        if not self._waiting:
            return None
        common = set.intersection(
            *({each.epoch for each in waiting} for waiting in self._waiting.values())
        )
        return max(common, default=None)


def epoch_stored(
    executor_id: ExecutorId, job: StoreEpoch, files: Sequence[SnapshotFile]
) -> EpochStored:
    """Return what the app master is told of an epoch that is stored."""
    last = {task: snapshots[-1] for task, snapshots in sorted(job.snapshots.items())}
    return EpochStored(
        executor_id=executor_id,
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
    )
