"""The state of tasks of one executor at the end of an epoch, or its changes, as files.

A file holds for each task a head, which is all that is not keyed state, and the cells of keyed
state that have changed since the file before. Files make a chain, the oldest first: of what two
of them say about a task or a cell, the later one counts. Now and then a chain is rewritten as one
file.

A file is a header and then sections with checksums, the head of a task before its cells; the last
section says how many there were. So a file that was cut off at any byte is not taken for a whole
one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain, islice
from struct import Struct as Layout
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import BinaryIO, Final, Literal, NamedTuple, Self, TypeAlias, cast
from weakref import finalize
from zlib import crc32

import msgspec
from msgspec import Struct

from gearpy.core.coordinator.blocks import HEADER_BYTES, BlockFormat
from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TakenGroups
from gearpy.storage.checkpoints import Checkpoints
from gearpy.wire.values.pieces import Encoded, chunks_of

#: Keyed state of one key group.
Cells: TypeAlias = dict[bytes, bytes]
#: Changes, in portions: key groups, and maps of cells as sections of `STATE` have them.
_Delta: TypeAlias = Callable[[], Iterable[tuple[int, bytes]]]
#: The body of a section, behind the file that it is from.
Body: TypeAlias = tuple[str, bytes]

#: The version is raised when files can no longer be read by an older gearpy.
FORMAT: Final = BlockFormat(b"gearpart", 3)
#: One section holds no more; more in one piece is refused before it is stored.
SECTION_BYTES_MAX: Final = 1 << 30
#: The bytes that are hashed, read or written at once: worth a step, and soon over.
PORTION_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 1 << 19

#: Kinds of sections.
HEAD: Final = 1
STATE: Final = 2
_END: Final = 3

_LABEL: Final = Layout(">BQII")  # Kind, task, key group, bytes of the body.
_SECTION: Final = Layout(">BQIII")  # The same, and the checksum of label and body.
_TOTALS: Final = Layout(">QQI")  # Sections and bytes before the end, checksum of all their labels.

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


class FileSection(NamedTuple):
    """A part of a file: its kind, task and key group, and its body."""

    kind: int
    task: TaskId
    group: int
    body: bytes


#: A `FileSection` to write, whose body may be in pieces.
_NewSection: TypeAlias = tuple[int, TaskId, int, Encoded]


class SectionPlace(NamedTuple):
    """The place of the body of a verified section."""

    location: str
    offset: int
    kind: int
    task: TaskId
    group: int
    size: int
    checksum: int

    def holds(self, body: bytes) -> bool:
        label = _LABEL.pack(self.kind, self.task.packed(), self.group, len(body))
        return len(body) == self.size and crc32(body, crc32(label)) == self.checksum


# -- writing ---------------------------------------------------------------------------------


def snapshot_chunks(parts: Iterable[TaskPart]) -> Iterator[bytes]:
    """Yield a file with the state of tasks, in portions for `Checkpoints.save`.

    Raises:
        ConfigError: a task holds too much in one piece.
    """

    def sections() -> Iterator[_NewSection]:
        for part in parts:
            yield HEAD, part.task, 0, part.head
            for delta in part.deltas:
                for group, body in delta():
                    yield STATE, part.task, group, body

    return _file_of(sections())


def save_snapshot(
    checkpoints: Checkpoints,
    name: str,
    tasks: tuple[TaskId, ...],
    chunks: Iterable[bytes],
    *,
    partition: int | None = None,
) -> SnapshotFile:
    """Store a file of these tasks; return it as manifests list it."""
    location, checksum, size = checkpoints.save(name, chunks)
    return SnapshotFile(
        location=location, sha256=checksum, size_bytes=size, tasks=tasks, partition=partition
    )


def _file_of(sections: Iterable[_NewSection]) -> Iterator[bytes]:
    """Yield a file with these sections, small pieces together: each is to be worth a write."""
    small = bytearray()
    for piece in _pieces(sections):
        is_large = len(piece) >= _SMALL_BYTES
        if not is_large:
            small += piece
        if small and (is_large or len(small) >= _SMALL_BYTES):
            yield bytes(small)
            small.clear()
        if is_large:
            yield piece
    if small:
        yield bytes(small)


def _pieces(sections: Iterable[_NewSection]) -> Iterator[bytes]:
    yield FORMAT.header(0)
    heads, count, offset, labels = set[TaskId](), 0, HEADER_BYTES, 0
    for kind, task, group, body in sections:
        if len(body) > SECTION_BYTES_MAX:
            raise ConfigError(
                f"task {task} holds {len(body)} bytes in one piece, at most "
                f"{SECTION_BYTES_MAX} can be stored: keep them in keyed state, under several keys"
            )
        assert (kind == HEAD) != (task in heads), f"heads of task {task}"
        heads.add(task)
        header = _header_of(kind, task, group, body)
        labels = crc32(header, labels)
        yield header
        yield from chunks_of(body)
        count, offset = count + 1, offset + _SECTION.size + len(body)
    totals = _TOTALS.pack(count, offset, labels)
    yield _header_of(_END, TaskId(0, 0), 0, totals) + totals


def _header_of(kind: int, task: TaskId, group: int, body: Encoded) -> bytes:
    label = _LABEL.pack(kind, task.packed(), group, len(body))
    checksum = crc32(label)
    for chunk in chunks_of(body):
        checksum = crc32(chunk, checksum)
    return label + checksum.to_bytes(4, "big")


# -- one file, from its beginning to its end -------------------------------------------------

#: How a body is passed: it is returned, only checked, or not read at all.
_Way: TypeAlias = Literal["take", "check", "skip"]
_WayOf: TypeAlias = Callable[[SectionPlace], _Way]


def _sections_in(
    file: BinaryIO, wanted: SnapshotFile, way_of: _WayOf, *, is_hashed: bool
) -> Iterator[tuple[SectionPlace, bytes]]:
    """Yield the sections of a file in its order, with the bodies that are taken.

    Nothing that was yielded counts before the end came, which agrees with all before it.

    Args:
        way_of: says of each section how its body is passed.
        is_hashed: the SHA-256 of all bytes is checked in the end, so none may be skipped.

    Raises:
        SnapshotDamaged: the file is another one, of another version, or not whole.
    """
    source = _Input(file, wanted.location)
    if wanted.size_bytes and source.size != wanted.size_bytes:
        reason = f"the file has {source.size} bytes, stored were {wanted.size_bytes}"
        raise source.damage(reason, at=min(source.size, wanted.size_bytes))
    FORMAT.check(source.take(HEADER_BYTES), lambda at, reason: source.damage(reason, at=at))
    heads, count, labels = set[TaskId](), 0, 0
    while True:
        at = source.at
        header = source.take(_SECTION.size)
        kind, task, group, size, checksum = _SECTION.unpack(header)
        if kind not in {HEAD, STATE, _END}:
            raise source.damage(f"a section of unknown kind {kind}", at=at)
        if size > min(SECTION_BYTES_MAX, source.size - source.at):
            raise source.damage(f"a section of {size} bytes does not fit", at=at)
        place = SectionPlace(
            wanted.location, source.at, kind, TaskId.unpack(task), group, size, checksum
        )
        body, found = source.body(size, crc32(header[: _LABEL.size]), way_of(place))
        if found not in {None, checksum}:
            raise source.damage("the checksum of a section does not match", at=at)
        if kind == _END:
            break
        if (kind == HEAD) == (place.task in heads):
            raise source.damage(f"task {place.task} has no head, or two", at=place.offset)
        heads.add(place.task)
        labels, count = crc32(header, labels), count + 1
        yield place, body
    # A body that is skipped leaves its own checksum unread; its label is checked here.
    if not place.holds(_TOTALS.pack(count, at, labels)) or not source.has_ended():
        raise source.damage(f"the end is not that of these {count} sections", at=place.offset)
    if is_hashed and (digest := source.sha256.hexdigest()) != wanted.sha256:
        raise source.damage(f"SHA-256 is {digest}, stored was {wanted.sha256}", at=0)


class _Input:
    """A file that is read once from its beginning to its end, and hashed on the way."""

    def __init__(self, file: BinaryIO, location: str) -> None:
        self._file = file
        self._location = location
        self.sha256 = sha256()  #: It covers the bytes read so far.
        self.size = file.seek(0, 2)
        self.at = file.seek(0)

    def take(self, size: int) -> bytes:
        """Return the next bytes, so many as can well be in memory."""
        data = self._file.read(size)
        if len(data) != size:
            raise self.damage("the file ends too early", at=self.at)
        self.sha256.update(data)
        self.at += size
        return data

    def body(self, size: int, start: int, way: _Way) -> tuple[bytes, int | None]:
        """Pass the next bytes; return them if they are taken, and their checksum if it is known."""
        if way == "skip":
            self.at = self._file.seek(size, 1)
            return b"", None
        if way == "take":
            data = self.take(size)
            return data, crc32(data, start)
        while size:
            portion = self.take(min(size, PORTION_BYTES))
            start = crc32(portion, start)
            size -= len(portion)
        return b"", start

    def has_ended(self) -> bool:
        """Tell whether the file is at its end, also one that has grown since it was opened."""
        return self.at == self.size and not self._file.read(1)

    def damage(self, reason: str, *, at: int) -> SnapshotDamaged:
        return SnapshotDamaged(location=self._location, reason=f"byte {at}: {reason}")


def _check_tasks(places: Iterable[SectionPlace], wanted: SnapshotFile) -> None:
    """Refuse a file that lacks a task that it is listed with: that one would begin from nothing."""
    stored = {each.source for each in wanted.taken if each.task in wanted.tasks}
    missing = (stored if wanted.taken else {*wanted.tasks}) - {place.task for place in places}
    if missing:
        reason = f"there is no task {min(missing)}"
        raise SnapshotDamaged(location=wanted.location, reason=reason)


def sections_once(checkpoints: Checkpoints, file: SnapshotFile) -> Iterator[FileSection]:
    """Yield a file's sections for the tasks that it is listed with, while it is read once.

    It is verified when the end has come: until then nothing of it counts. Of a file from which
    something is taken over that part is.

    Raises:
        SnapshotDamaged: it is missing, or not what was stored.
    """
    owners, places = _owners_in(file), list[SectionPlace]()
    other: _Way = "skip" if file.taken else "check"
    with checkpoints.open(file.location) as source:
        found = _sections_in(
            source,
            file,
            lambda at: "take" if owners(at) else other,
            is_hashed=not file.taken,
        )
        for place, body in found:
            places.append(place)
            for task in owners(place):
                yield FileSection(place.kind, task, place.group, body)
    _check_tasks(places, file)


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


# -- chains ----------------------------------------------------------------------------------


class SnapshotChain:
    """Reads the files of an epoch, which were all verified when this was made.

    A file counts for the tasks that it is listed with, though it may hold others; it may be listed
    several times. Key groups that a task has taken over count as its own. Bytes read later must
    still be the verified ones. Close it, as it keeps files open.

    Runs on: any thread, in several at a time.

    Args:
        files: the oldest first.
        skims: only that part of the files is verified that is read, when it is read.
        reads: tells of tasks whether all of their keyed state is read, and so verified, once; the
            rest of the files is verified at once, by checksums.

    Raises:
        SnapshotDamaged: one of them is missing, or not what was stored.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        files: Sequence[SnapshotFile],
        *,
        skims: bool = False,
        reads: Callable[[TaskId], bool] | None = None,
    ) -> None:
        def ways_in(file: SnapshotFile) -> _WayOf:
            if skims or reads is None:
                return lambda _: "skip" if skims else "check"
            owners = _owners_in(file)

            def way_of(place: SectionPlace) -> _Way:
                is_later = place.kind == STATE and any(map(reads, owners(place)))
                return "skip" if is_later else "check"

            return way_of

        self.files = tuple(files)
        self._open = _OpenFiles(checkpoints, ways_in, is_hashed=not skims and reads is None)
        self.close = finalize(self, self._open.close)  #: May be called again.
        self._heads: dict[TaskId, SectionPlace] = {}
        self._state: dict[TaskId, list[SectionPlace]] = {}  # In the order of reading.
        self._groups: dict[TaskId, dict[int, list[SectionPlace]]] = {}  # The same, by key group.
        try:
            for file in files:
                owners = _owners_in(file)
                for place in self._open.places(file):
                    for task in owners(place):
                        if place.kind == HEAD:
                            self._heads[task] = place
                            continue
                        self._state.setdefault(task, []).append(place)
                        groups = self._groups.setdefault(task, {})
                        groups.setdefault(place.group, []).append(place)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def tasks(self) -> frozenset[TaskId]:
        return frozenset(self._heads)

    def head(self, task: TaskId) -> bytes:
        return self._open.read(self._heads[task])

    def sections(self, task: TaskId) -> Iterator[tuple[int, bytes]]:
        return ((place.group, self._open.read(place)) for place in self._state.get(task, ()))

    def groups(self, task: TaskId) -> list[int]:
        return sorted(self._groups.get(task, ()))

    def cells(self, task: TaskId, group: int) -> Cells:
        return living_cells(self.bodies(task, group))

    def bodies(self, task: TaskId, group: int) -> Iterator[Body]:
        places = self._groups.get(task, {}).get(group, ())
        return ((place.location, self._open.read(place)) for place in places)

    def size(self, task: TaskId) -> TaskSize:
        sizes = [place.size for place in self._state.get(task, ())]
        return TaskSize(self._heads[task].size, sum(sizes), len(sizes))


class _OpenFiles:
    """Keeps files open between reads: opening one may cost a request to a far machine."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        ways_in: Callable[[SnapshotFile], _WayOf],
        *,
        is_hashed: bool,
    ) -> None:
        self._checkpoints = checkpoints
        self._ways_in, self._is_hashed = ways_in, is_hashed
        self._lock = Lock()
        self._files: dict[str, BinaryIO] = {}  # The one that was opened first is closed first.
        self._places: dict[tuple[str, str], list[SectionPlace]] = {}

    def places(self, file: SnapshotFile) -> list[SectionPlace]:
        key = (file.location, file.sha256)
        with self._lock:
            if key not in self._places:
                source, ways = self._file(file.location), self._ways_in(file)
                found = _sections_in(source, file, ways, is_hashed=self._is_hashed)
                self._places[key] = [place for place, _ in found]
        _check_tasks(self._places[key], file)
        return self._places[key]

    def read(self, place: SectionPlace) -> bytes:
        with self._lock:
            file = self._file(place.location)
            file.seek(place.offset)
            body = file.read(place.size)
        if not place.holds(body):
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
        yield from _file_of(_rebased(before, newest, keeps_deleted=keeps_deleted))


def _rebased(
    before: SnapshotChain, parts: Mapping[TaskId, TaskPart], *, keeps_deleted: bool
) -> Iterator[_NewSection]:
    for task in sorted(before.tasks | parts.keys()):
        part = parts[task] if task in parts else TaskPart(task=task, head=before.head(task))
        yield HEAD, task, 0, part.head
        with _put_aside(part) as (groups, changes):
            for group in sorted({*before.groups(task), *groups}):
                cells = _merged(before.bodies(task, group), changes(group))
                for body in _portions(cells, keeps_deleted=keeps_deleted):
                    yield STATE, task, group, body


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
