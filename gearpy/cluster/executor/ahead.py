"""Keyed state of tasks that are to come, read from epochs before the one that they go on from."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gearpy.errors import GearpyError
from gearpy.ids import TaskId
from gearpy.messages.app import LaunchTasks, ReadAhead, SnapshotFile
from gearpy.state.keyed import KeyedState
from gearpy.state.stores.store import Section
from gearpy.storage.changelog import chain_of
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.snapshot_files import SnapshotChain
from gearpy.task.api.snapshots import TaskResume, decode_state

_log = logging.getLogger(__name__)
_NO_FILES: Final[tuple[SnapshotFile, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The part of a task that was read: the files, its head, and its keyed state if it has any."""

    files: tuple[SnapshotFile, ...]
    head: bytes
    state: KeyedState | None


class StateAhead:
    """Reads what tasks kept, and later only what has been added since.

    What it has read stays right while the first file does: a chain that begins with the same file
    says of each cell that has changed, or was deleted, what it is now. Else all is read again.

    Runs on: the thread of the snapshot writer.

    Args:
        checkpoints: where the files are.
        open_state: makes the keyed state of a task, empty; None: it cannot be made before the task.
    """

    def __init__(
        self, checkpoints: Checkpoints, open_state: Callable[[TaskId], KeyedState | None]
    ) -> None:
        self._checkpoints = checkpoints
        self._open_state = open_state
        self._known: dict[TaskId, _Read] = {}

    def read(self, message: ReadAhead) -> None:
        """Read an epoch; what cannot be read is left to the launch of the tasks."""
        try:
            self._read(message.tasks, message.snapshots)
        except (OSError, GearpyError) as error:  # A newer epoch may have taken its place.
            _log.info("epoch %d is not read ahead: %s", message.epoch, error)
            self._forget(message.tasks)

    def resume(self, launch: LaunchTasks) -> dict[TaskId, TaskResume] | None:
        """Return the state that tasks of a launch go on from, if it was read ahead; else None.

        Only what has been added is read. Nothing is known of the tasks from then on.
        """
        tasks = [each.task_id for each in launch.tasks]
        if not launch.snapshots or not self._known.keys() >= {*tasks}:
            self._forget(tasks)
            return None
        try:
            self._read(tasks, chain_of(launch.snapshots))
        except (OSError, GearpyError) as error:
            _log.warning("what was read ahead is of no use: %s", error)
            self._forget(tasks)
            return None
        places = {each.task_id: each.offsets for each in launch.overrides}
        return {
            task: TaskResume(
                head=read.head,
                state=read.state,
                offsets={name: decode_state(place) for name, place in places.get(task, {}).items()},
            )
            for task in tasks
            for read in [self._known.pop(task)]
        }

    def _forget(self, tasks: Iterable[TaskId]) -> None:
        for task in tasks:
            read = self._known.pop(task, None)
            if read is not None and read.state is not None:
                read.state.close()

    def _read(self, tasks: Sequence[TaskId], snapshots: Sequence[SnapshotFile]) -> None:
        wanted: dict[TaskId, tuple[SnapshotFile, ...]] = {}
        for task in tasks:
            files = tuple(file for file in snapshots if task in file.tasks)
            known = self._known[task].files if task in self._known else _NO_FILES
            same = _in_common(known, files)
            if not same:
                self._forget([task])
            wanted[task] = files[same:]
        left = [
            replace(file, tasks=own)
            for file in snapshots
            if (own := tuple(sorted(t for t in tasks if any(file is each for each in wanted[t]))))
        ]
        with SnapshotChain(self._checkpoints, left) as chain:
            for task in tasks:
                self._read_task(task, chain, [file for file in snapshots if task in file.tasks])

    def _read_task(self, task: TaskId, chain: SnapshotChain, files: Sequence[SnapshotFile]) -> None:
        known = self._known.get(task)
        state = None if known is None else known.state
        for group, body in chain.sections(task):
            state = state or self._open_state(task)
            if state is None:
                raise GearpyError("its state is not kept in memory")
            state.load(Section(group, body))
        head = chain.head(task) if task in chain.tasks else known.head if known else b""
        self._known[task] = _Read(files=tuple(files), head=head, state=state)


def _in_common(known: Sequence[SnapshotFile], files: Sequence[SnapshotFile]) -> int:
    """Return how many files both begin with."""
    count = 0
    for one, other in zip(known, files, strict=False):
        if (one.location, one.sha256) != (other.location, other.sha256):
            break
        count += 1
    return count
