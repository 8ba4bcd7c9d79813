"""The changelog: keyed state once more, by task, in case that files of epochs get lost.

Each task has a partition, and each epoch in which its keyed state has changed adds a segment with
the changes. A manifest lists the segments of its epoch, as it lists the files: so what an attempt
has stored that is over counts for nobody. When segments become many, some are merged into one that
has each cell once. Samza: the changelog stream of a store, which is log-compacted by key.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain as chained
from tempfile import SpooledTemporaryFile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gearpy.errors import SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.snapshot_files import (
    SnapshotChain,
    TaskPart,
    rebased_chunks,
    save_snapshot,
    snapshot_chunks,
)

_log = logging.getLogger(__name__)

#: Heads are in the files of epochs only: they change with every epoch, and there is just one.
_NO_HEAD: Final = b""
#: Changes of one task and epoch that stay in memory until they are stored twice.
_SPOOL_BYTES: Final = 8 << 20
#: A chain may have so much behind its first file, however small that is: there is little to save.
_BEHIND_BYTES: Final = 16 << 20


def chain_of(files: Iterable[SnapshotFile]) -> tuple[SnapshotFile, ...]:
    return tuple(file for file in files if file.partition is None)


def changelog_of(files: Iterable[SnapshotFile]) -> tuple[SnapshotFile, ...]:
    return tuple(file for file in files if file.partition is not None)


# -- writing ---------------------------------------------------------------------------------


class NextSegment(Struct, frozen=True, kw_only=True):
    """The part of a task's state that is to be stored.

    Attributes:
        kept: segments before it that it goes on from.
        merged: segments behind these that it takes the place of.
        begins: it is the first one, and holds what the files of epochs have of the task, too.
    """

    task: TaskId
    partition: int
    name: str
    kept: tuple[SnapshotFile, ...] = ()
    merged: tuple[SnapshotFile, ...] = ()
    begins: bool = False


class Changelog:
    """Says which segments to store of the tasks of one attempt in one executor.

    Invariant: the segments of a task are all of its keyed state, or there are none. So each task
    has one from its first epoch on, be it empty.

    Args:
        prefix: of the names of segments.
        suffix: of these names; no other executor and attempt has both.
        files: the segments that the tasks have gone on from, the oldest first.
        segments_max: of a task; when there are so many, some are merged.
    """

    def __init__(
        self,
        *,
        partitions: Mapping[TaskId, int],
        prefix: str,
        suffix: str,
        files: Iterable[SnapshotFile],
        segments_max: int,
    ) -> None:
        self._partitions = dict(sorted(partitions.items()))
        self._prefix = prefix
        self._suffix = suffix
        self._segments_max = segments_max
        self._segments: dict[TaskId, tuple[SnapshotFile, ...]] = {}
        for file in changelog_of(files):
            for task in partitions.keys() & set(file.tasks):
                self._segments[task] = (*self._segments.get(task, ()), file)

    @property
    def files(self) -> tuple[SnapshotFile, ...]:
        return tuple(chained.from_iterable(self._segments[each] for each in sorted(self._segments)))

    @property
    def is_complete(self) -> bool:
        return self._segments.keys() == self._partitions.keys()

    def begin_anew(self) -> None:
        self._segments.clear()

    def next_segments(self, epoch: int, changed: Collection[TaskId]) -> tuple[NextSegment, ...]:
        found = []
        for task, partition in self._partitions.items():
            if task in changed or task not in self._segments:
                before = self._segments.get(task, ())
                kept = kept_segments([file.size_bytes for file in before], self._segments_max)
                name = f"{self._prefix}/partition-{partition}/epoch{epoch}-{self._suffix}"
                found.append(
                    NextSegment(
                        task=task,
                        partition=partition,
                        name=name,
                        kept=before[:kept],
                        merged=before[kept:],
                        begins=not before,
                    )
                )
        return tuple(found)

    def on_stored(self, segments: Mapping[TaskId, tuple[SnapshotFile, ...]]) -> None:
        self._segments |= segments


def kept_segments(sizes: Sequence[int], segments_max: int) -> int:
    """Return the number of oldest segments that stay; the next segment merges the others.

    All are merged when what is behind the first one is larger than that: most of it says again
    what is there already. Else there is nothing to do before they are many. Then half of what is
    allowed may stay, but none that is as small as what is merged behind it: so a large segment is
    seldom merged for the sake of small ones.
    """
    kept, merged = len(sizes), 0
    if sizes and sum(sizes[1:]) > max(_BEHIND_BYTES, sizes[0]):
        return 0
    if kept < segments_max:
        return kept
    while kept and (kept > segments_max / 2 or merged >= sizes[kept - 1]):
        kept -= 1
        merged += sizes[kept]
    return kept


class RecordedDelta:
    """Changes that are made into bytes once, and read again from there as often as one wants.

    A reading that stops in the middle does not count. Close it, as it may keep a file open.

    Args:
        delta: what makes the changes, as in `TaskPart`.
    """

    def __init__(self, delta: Callable[[], Iterable[tuple[int, bytes]]]) -> None:
        self._delta = delta
        self._sizes: list[tuple[int, int]] = []
        self._is_recorded = False
        self._file = SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - see `close`
        self.close = self._file.close

    def __call__(self) -> Iterator[tuple[int, bytes]]:
        """Yield the changes; the one reading must be over before the next begins."""
        self._file.seek(0)
        if self._is_recorded:
            for group, size in self._sizes:
                yield group, self._file.read(size)
            return
        self._sizes.clear()
        for group, body in self._delta():
            self._sizes.append((group, len(body)))
            self._file.write(body)
            yield group, body
        self._is_recorded = True


def store_segment(
    checkpoints: Checkpoints,
    segment: NextSegment,
    part: TaskPart,
    *,
    chain: Sequence[SnapshotFile],
) -> tuple[SnapshotFile, ...]:
    """Store a segment; return all that the task has then.

    Args:
        part: the changes. They are asked for again if a segment turns out to be damaged: then the
            changelog of the task begins anew.
        chain: the files of the epoch before, which hold the same state.

    Raises:
        SnapshotDamaged: the state that it is made of is damaged in both.
        ConfigError: the task holds too much in one piece.
    """
    part = replace(part, head=_NO_HEAD)

    def stored(chunks: Iterable[bytes]) -> SnapshotFile:
        tasks = (segment.task,)
        return save_snapshot(checkpoints, segment.name, tasks, chunks, partition=segment.partition)

    if not segment.begins:
        try:
            chunks = snapshot_chunks([part])
            if segment.merged:
                is_behind = bool(segment.kept)
                chunks = rebased_chunks(
                    checkpoints, segment.merged, [part], keeps_deleted=is_behind
                )
            return (*segment.kept, stored(chunks))
        except SnapshotDamaged as damage:
            _log.warning("the changelog of task %s begins anew: %s", segment.task, damage)
    return (stored(rebased_chunks(checkpoints, _only([part.task], chain), [part])),)


# -- reading ---------------------------------------------------------------------------------


def rebuilt(
    checkpoints: Checkpoints,
    files: Sequence[SnapshotFile],
    tasks: Collection[TaskId],
    damage: SnapshotDamaged,
) -> tuple[SnapshotChain, SnapshotChain]:
    """Open the newest heads of tasks, and their changelog, where a file of an epoch is damaged.

    Args:
        files: all that the manifest lists, in its order.

    Raises:
        SnapshotDamaged: the changelog does not help: it is off, it lacks a task, one of its
            segments is damaged, too, or the newest file with a head is. Of two damaged files it
            names the newer one, as fewer of the older epochs need that.
    """
    if not (changelog := changelog_of(files)):
        raise damage
    chain, segments = chain_of(files), _only(tasks, changelog)
    known = {task for file in chain for task in file.tasks} & set(tasks)
    if lacking := sorted(known - {task for file in segments for task in file.tasks}):
        reason = f"{damage.reason}; the changelog lacks task {lacking[0]}"
        raise SnapshotDamaged(location=damage.location, reason=reason)
    newest = {task: file for file in chain for task in file.tasks if task in known}
    heads = SnapshotChain(
        checkpoints,
        [
            replace(file, tasks=own)
            for file in chain
            if (own := tuple(sorted(task for task, at in newest.items() if at is file)))
        ],
    )
    try:
        return heads, SnapshotChain(checkpoints, segments)
    except SnapshotDamaged as also:
        heads.close()
        places = [file.location for file in files]
        newer = max(damage, also, key=lambda each: places.index(each.location))
        reason = f"{damage}; nor can it be rebuilt from the changelog: {also}"
        raise SnapshotDamaged(location=newer.location, reason=reason) from also
    except OSError:
        heads.close()
        raise


def _only(tasks: Collection[TaskId], files: Iterable[SnapshotFile]) -> list[SnapshotFile]:
    wanted = set(tasks)
    return [
        replace(file, tasks=tuple(sorted(own)))
        for file in files
        if (own := wanted & set(file.tasks))
    ]
