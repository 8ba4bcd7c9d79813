"""Keyed state of tasks that are to come, read from epochs before the one that they go on from."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gearpy.errors import GearpyError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import LaunchTasks, ReadAhead, SnapshotFile
from gearpy.state.keyed import KeyedState
from gearpy.state.stores.store import Section
from gearpy.storage.changelog import chain_of
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.snapshot_files import HEAD, sections_once
from gearpy.task.api.snapshots import NO_STATE, TaskResume, decode_state

_log = logging.getLogger(__name__)

#: The task from which another one takes over what files have; None: a chain of its own.
_Part: TypeAlias = TaskId | None
#: The files that have a part, the oldest first.
_Files: TypeAlias = Mapping[_Part, Sequence[SnapshotFile]]
_NOTHING: Final[_Files] = {}


class _Read(Struct, kw_only=True):
    """The part of a task that was read: the files, its head, and its keyed state if it has any."""

    files: _Files
    head: bytes = b""
    state: KeyedState | None = None
    is_lost: bool = False  #: State was read that could not be kept.


class StateAhead:
    """Reads the stored state of tasks, and later only the additions since.

    What it has read stays right while the first file does: a chain that begins with the same file
    says of each cell that has changed, or was deleted, what it is now. Else all is read again. What
    a task takes over from several other ones is in as many chains; once it has stored something
    itself, all that it needs is one chain.

    Runs on: the thread of the snapshot writer.
    """

    def __init__(
        self, checkpoints: Checkpoints, open_state: Callable[[TaskId], KeyedState | None]
    ) -> None:
        self._checkpoints = checkpoints
        self._open_state = open_state
        self._known: dict[TaskId, _Read] = {}

    def read(self, message: ReadAhead) -> SnapshotDamaged | None:
        """Read an epoch; a file that cannot be read now is left to the launch of the tasks."""
        try:
            self._read(message.tasks, message.snapshots)
        except (OSError, GearpyError) as error:
            _log.info("epoch %d is not read ahead: %s", message.epoch, error)
            self._forget(message.tasks)
            return error if isinstance(error, SnapshotDamaged) else None
        return None

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
                head=read.head or NO_STATE,
                state=read.state,
                offsets={name: decode_state(place) for name, place in places.get(task, {}).items()},
            )
            for task in tasks
            for read in [self._known.pop(task)]
            if read.head or task in places
        }

    def _forget(self, tasks: Iterable[TaskId]) -> None:
        for task in tasks:
            read = self._known.pop(task, None)
            if read is not None and read.state is not None:
                read.state.close()

    def _read(self, tasks: Sequence[TaskId], snapshots: Sequence[SnapshotFile]) -> None:
        new = {task: self._new_files(task, snapshots) for task in tasks}
        found = dict[TaskId, _Read]()
        for task in tasks:
            files, known = self._files_of(task, snapshots), self._known.get(task)
            found[task] = (
                _Read(files=files)
                if known is None
                else _Read(files=files, head=known.head, state=known.state)
            )
        for file in (_part_of(each, new) for each in snapshots):
            for section in sections_once(self._checkpoints, file) if file.tasks else ():
                read = found[section.task]
                if section.kind == HEAD:
                    read.head = section.body
                    continue
                if read.state is None and not read.is_lost:
                    read.state = self._open_state(section.task)
                    read.is_lost = read.state is None
                if read.state is not None:
                    read.state.load(Section(section.group, section.body))
        if any(each.is_lost for each in found.values()):  # All the same, damage was looked for.
            raise GearpyError("state of these tasks is not kept in memory")
        self._known |= found

    def _new_files(self, task: TaskId, snapshots: Sequence[SnapshotFile]) -> _Files:
        """Return the files of a task that are left to be read; forget it if that is not enough."""
        files = self._files_of(task, snapshots)
        known = self._known[task].files if task in self._known else _NOTHING
        same = {part: _in_common(each, files.get(part, ())) for part, each in known.items()}
        if not all(same.values()):
            self._forget([task])
            same = {}
        return {part: each[same.get(part, 0) :] for part, each in files.items()}

    def _files_of(self, task: TaskId, snapshots: Sequence[SnapshotFile]) -> _Files:
        files = [file for file in snapshots if task in file.tasks]
        if (known := self._known.get(task)) is not None and known.files:
            is_own = None in known.files
        else:
            is_own = not all(file.taken for file in files)
        if is_own:
            return {None: files}
        found: dict[_Part, list[SnapshotFile]] = {}
        for file in files:
            parts: set[_Part] = {each.via for each in file.taken if each.task == task}
            for part in parts or {None}:
                found.setdefault(part, []).append(file)
        return found


def _part_of(file: SnapshotFile, wanted: Mapping[TaskId, _Files]) -> SnapshotFile:
    def is_wanted(task: TaskId, part: _Part) -> bool:
        files = wanted.get(task, _NOTHING)
        chains = (files.get(part, ()), files.get(None, ()))
        return task in file.tasks and any(file is each for each in chain(*chains))

    if not file.taken:
        return replace(file, tasks=tuple(each for each in file.tasks if is_wanted(each, None)))
    taken = tuple(each for each in file.taken if is_wanted(each.task, each.via))
    return replace(file, tasks=tuple(sorted({each.task for each in taken})), taken=taken)


def _in_common(known: Sequence[SnapshotFile], files: Sequence[SnapshotFile]) -> int:
    count = 0
    for one, other in zip(known, files, strict=False):
        if (one.location, one.sha256) != (other.location, other.sha256):
            break
        count += 1
    return count
