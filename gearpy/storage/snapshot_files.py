"""The state of tasks of one executor at the end of an epoch, or its changes, as files.

A file holds for each task a head, which is all that is not keyed state, and the cells of keyed
state that have changed since the file before. Files make a chain, the oldest first: of what two
of them say about a task or a cell, the later one counts. Now and then a chain is rewritten as one
file. `snapshot_format` has the bytes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import BinaryIO, Final, NamedTuple, Self, TypeAlias, cast
from weakref import finalize

import msgspec
from msgspec import Struct

from gearpy.errors import SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TakenGroups
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.snapshot_format import (
    HEAD,
    PORTION_BYTES,
    STATE,
    FileSection,
    NewSection,
    SectionPlace,
    check_tasks,
    checked,
    file_of,
    is_at,
    read_once,
    skimmed,
    verified,
)
from gearpy.wire.values.pieces import Encoded

#: Keyed state of one key group.
Cells: TypeAlias = dict[bytes, bytes]
#: What has changed, in portions: key groups, and maps of cells as `Section` of states has them.
_Delta: TypeAlias = Callable[[], Iterable[tuple[int, bytes]]]
#: The body of a section, behind the file that it is from.
Body: TypeAlias = tuple[str, bytes]

#: Files of a chain that are open at a time.
_OPEN_MAX: Final = 32
#: Changes of one task that stay in memory while a chain is rewritten; more go to a file.
_SPOOL_BYTES: Final = 8 << 20
#: Cells that are written at once: each step of a rewriting is soon over.
_CELLS_MAX: Final = 8192

_CELLS: Final = msgspec.msgpack.Decoder(dict[bytes, bytes | None])
_ENCODER: Final = msgspec.msgpack.Encoder()


class TaskPart(Struct, frozen=True, kw_only=True):
    """The state of one task to store; each of the ``deltas``, oldest first, is called once."""

    task: TaskId
    head: Encoded
    deltas: Sequence[_Delta] = ()


class TaskSize(NamedTuple):
    """The size of a task's state in a chain, with parts that later files have made void."""

    head_bytes: int
    state_bytes: int
    sections: int


def snapshot_chunks(parts: Iterable[TaskPart]) -> Iterator[bytes]:
    """Yield a file with the state of tasks, in portions for `Checkpoints.save`.

    Raises:
        ConfigError: a task holds too much in one piece.
    """
    return file_of(section for part in parts for section in _sections_of(part))


def save_snapshot(
    checkpoints: Checkpoints,
    name: str,
    tasks: tuple[TaskId, ...],
    chunks: Iterable[bytes],
    *,
    partition: int | None = None,
) -> SnapshotFile:
    """Store a file of these tasks; return it as manifests list it.

    Raises:
        OSError: it could not be stored.
    """
    stored = checkpoints.save(name, chunks)
    return SnapshotFile(
        location=stored.location,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        tasks=tasks,
        partition=partition,
    )


def _sections_of(part: TaskPart) -> Iterator[NewSection]:
    yield NewSection(HEAD, part.task, 0, part.head)
    for delta in part.deltas:
        for group, body in delta():
            yield NewSection(STATE, part.task, group, body)


class SnapshotChain:
    """Reads the files of an epoch, which were all verified when this was made.

    A file counts for the tasks that it is listed with, though it may hold others; it may be listed
    several times. Key groups that a task has taken over count as its own. Bytes read later must
    still be the verified ones. Close it, as it keeps files open.

    Runs on: any thread, in several at a time.

    Args:
        checkpoints: where the files are.
        files: the oldest first.
        skims: only that part of the files is verified that is read, when it is read.
        reads: tells of tasks whether all of their keyed state is read, and so verified, once; the
            rest of the files is verified at once, by checksums.

    Raises:
        SnapshotDamaged: one of them is missing, or not what was stored.
        OSError: one of them cannot be read.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        files: Sequence[SnapshotFile],
        *,
        skims: bool = False,
        reads: Callable[[TaskId], bool] | None = None,
    ) -> None:
        self.files = tuple(files)
        find = skimmed if skims else verified if reads is None else partial(_checked, reads)
        self._open = _OpenFiles(checkpoints, find)
        self.close = finalize(self, self._open.close)  #: May be called again.
        self._heads: dict[TaskId, SectionPlace] = {}
        self._state: dict[TaskId, list[SectionPlace]] = {}  # As they are read.
        self._groups: dict[TaskId, dict[int, list[SectionPlace]]] = {}  # The same, by key group.
        try:
            for file in files:
                owners = _owners_in(file)
                for place in self._open.places(file):
                    for task in owners(place):
                        self._add(task, place)
        except BaseException:
            self.close()
            raise

    def _add(self, task: TaskId, place: SectionPlace) -> None:
        if place.kind == HEAD:
            self._heads[task] = place
            return
        self._state.setdefault(task, []).append(place)
        groups = self._groups.setdefault(task, {})
        groups.setdefault(place.group, []).append(place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def tasks(self) -> frozenset[TaskId]:
        return frozenset(self._heads)

    def head(self, task: TaskId) -> bytes:
        """Return the head of a task, from the newest file that has it.

        Raises:
            SnapshotDamaged: it has changed since it was verified.
        """
        return self._open.read(self._heads[task])

    def sections(self, task: TaskId) -> Iterator[tuple[int, bytes]]:
        """Yield key groups and their cells, the oldest first, as `Section` of states has them.

        Raises:
            SnapshotDamaged: one has changed since it was verified.
        """
        return ((place.group, self._open.read(place)) for place in self._state.get(task, ()))

    def groups(self, task: TaskId) -> list[int]:
        return sorted(self._groups.get(task, ()))

    def cells(self, task: TaskId, group: int) -> Cells:
        """Return the cells that a task has in a key group in the end.

        Raises:
            SnapshotDamaged: they have changed since they were verified, or are no cells.
        """
        return living_cells(self.bodies(task, group))

    def bodies(self, task: TaskId, group: int) -> Iterator[Body]:
        """Yield the bodies of a key group, the oldest first.

        Raises:
            SnapshotDamaged: one has changed since it was verified.
        """
        places = self._groups.get(task, {}).get(group, ())
        return ((place.location, self._open.read(place)) for place in places)

    def size(self, task: TaskId) -> TaskSize:
        sizes = [place.size for place in self._state.get(task, ())]
        return TaskSize(self._heads[task].size, sum(sizes), len(sizes))


def sections_once(checkpoints: Checkpoints, file: SnapshotFile) -> Iterator[FileSection]:
    """Yield a file's sections for the tasks that it is listed with, while it is read once.

    It is verified when the end has come: until then nothing of it counts. Of a file from which
    something is taken over that part is.

    Raises:
        SnapshotDamaged: it is missing, or not what was stored.
        OSError: it cannot be read.
    """
    owners, places = _owners_in(file), list[SectionPlace]()
    with checkpoints.open(file.location) as source:
        found = read_once(source, file, lambda at: bool(owners(at)), skims=bool(file.taken))
        for place, body in found:
            places.append(place)
            for task in owners(place):
                yield FileSection(place.kind, task, place.group, body)
    check_tasks(places, file)


def _owners_in(file: SnapshotFile) -> Callable[[SectionPlace], Sequence[TaskId]]:
    taken: dict[TaskId, list[TakenGroups]] = {}
    for each in file.taken:
        if each.task in file.tasks:
            taken.setdefault(each.source, []).append(each)

    def owners(place: SectionPlace) -> Sequence[TaskId]:
        if not file.taken:
            return (place.task,) if place.task in file.tasks else ()
        if place.kind != STATE:
            return ()
        found = taken.get(place.task, ())
        return [each.task for each in found if each.first <= place.group <= each.last]

    return owners


def _checked(
    reads: Callable[[TaskId], bool], source: BinaryIO, file: SnapshotFile
) -> list[SectionPlace]:
    owners = _owners_in(file)

    def is_later(place: SectionPlace) -> bool:
        return place.kind == STATE and any(map(reads, owners(place)))

    return checked(source, file, is_later)


class _OpenFiles:
    """Keeps files open between reads: opening one may cost a request to a far machine."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        find: Callable[[BinaryIO, SnapshotFile], list[SectionPlace]],
    ) -> None:
        self._checkpoints = checkpoints
        self._find = find
        self._lock = Lock()
        self._files: dict[str, BinaryIO] = {}  # The one that was opened first is closed first.
        self._places: dict[tuple[str, str], list[SectionPlace]] = {}

    def places(self, file: SnapshotFile) -> list[SectionPlace]:
        key = (file.location, file.sha256)
        with self._lock:
            if key not in self._places:
                self._places[key] = self._find(self._file(file.location), file)
        check_tasks(self._places[key], file)
        return self._places[key]

    def read(self, place: SectionPlace) -> bytes:
        with self._lock:
            file = self._file(place.location)
            file.seek(place.offset)
            body = file.read(place.size)
        if not is_at(place, body):
            reason = f"byte {place.offset}: it has changed since it was verified"
            raise SnapshotDamaged(location=place.location, reason=reason)
        return body

    def _file(self, location: str) -> BinaryIO:
        if location not in self._files:
            if len(self._files) == _OPEN_MAX:
                self._files.pop(next(iter(self._files))).close()
            self._files[location] = self._checkpoints.open(location)
        return self._files[location]

    def close(self) -> None:
        with self._lock:
            while self._files:
                self._files.popitem()[1].close()


# -- rewriting -------------------------------------------------------------------------------


def rebased_chunks(
    checkpoints: Checkpoints,
    files: Sequence[SnapshotFile],
    parts: Sequence[TaskPart],
    *,
    keeps_deleted: bool = False,
) -> Iterator[bytes]:
    """Yield one file that stands for a chain and for the state to store behind it.

    The cells of one key group at a time are in memory. With ``keeps_deleted`` the chain may be the
    later part of a longer one: what was deleted stays so, as an older file may have it.

    Raises:
        SnapshotDamaged: one of the files is missing, or not what was stored.
        ConfigError: a task holds too much in one piece.
        OSError: a file cannot be read, or the changes cannot be put aside.
    """
    newest = {part.task: part for part in parts}
    with SnapshotChain(checkpoints, files) as before:
        yield from file_of(_rebased(before, newest, keeps_deleted=keeps_deleted))


def _rebased(
    before: SnapshotChain, parts: Mapping[TaskId, TaskPart], *, keeps_deleted: bool
) -> Iterator[NewSection]:
    for task in sorted(before.tasks | parts.keys()):
        part = parts[task] if task in parts else TaskPart(task=task, head=before.head(task))
        yield NewSection(HEAD, task, 0, part.head)
        with _put_aside(part) as (groups, changes):
            for group in sorted({*before.groups(task), *groups}):
                cells = _merged(before.bodies(task, group), changes(group))
                for body in _portions(cells, keeps_deleted=keeps_deleted):
                    yield NewSection(STATE, task, group, body)


@contextmanager
def _put_aside(part: TaskPart) -> Iterator[tuple[Iterable[int], Callable[[int], Iterator[Body]]]]:
    """Give the key groups in which a task has changed, and a function that yields their changes.

    The changes may be large, come in any order, and can be read only once.
    """
    places: dict[int, list[tuple[int, int]]] = {}
    with SpooledTemporaryFile(max_size=_SPOOL_BYTES) as file:
        for delta in part.deltas:
            for group, body in delta():
                places.setdefault(group, []).append((file.tell(), len(body)))
                file.write(body)

        def bodies(group: int) -> Iterator[Body]:
            for offset, size in places.get(group, ()):
                file.seek(offset)
                yield f"changes of task {part.task}", file.read(size)

        yield places.keys(), bodies


def _merged(*sources: Iterable[Body]) -> dict[bytes, bytes | None]:
    """Merge the bodies of cells, the oldest first; None is a cell that was deleted."""
    cells: dict[bytes, bytes | None] = {}
    for location, body in chain.from_iterable(sources):
        try:
            found = _CELLS.decode(body)
            if cells:
                cells |= found
            else:
                cells = found
        except (msgspec.DecodeError, ValueError) as error:
            raise SnapshotDamaged(location=location, reason=f"no cells: {error}") from error
    return cells


def living_cells(bodies: Iterable[Body]) -> Cells:
    """Return the cells that bodies of a key group, the oldest first, leave in the end.

    Raises:
        SnapshotDamaged: one of them is no map of cells.
    """
    cells = _merged(bodies)
    if None not in cells.values():  # Soon known, and so as a rule.
        return cast("Cells", cells)
    return {cell: value for cell, value in cells.items() if value is not None}


def _portions(cells: dict[bytes, bytes | None], *, keeps_deleted: bool) -> Iterator[bytes]:
    """Take all cells away, and yield them as bodies of sections."""
    while cells:  # Freeing a million of them at once would take its time, too.
        taken = [cells.popitem() for _ in range(min(len(cells), _CELLS_MAX))]
        portion = {cell: value for cell, value in taken if keeps_deleted or value is not None}
        if portion:
            yield from _bodies(portion)


def _bodies(cells: Mapping[bytes, bytes | None]) -> Iterator[bytes]:
    size = sum(map(len, cells)) + sum(map(len, filter(None, cells.values())))
    if size <= PORTION_BYTES or len(cells) == 1:
        yield _ENCODER.encode(cells)
        return
    left = iter(cells.items())  # Halves, as cells may differ much in size.
    yield from _bodies(dict(islice(left, len(cells) // 2)))
    yield from _bodies(dict(left))
