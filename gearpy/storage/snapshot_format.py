"""The bytes of a snapshot file: sections with checksums, and how it is seen that all are there.

A file is a header and then sections: for each task a head, which is all that is not keyed state,
and after it cells of its key groups; the last section says how many there were. So a file that was
cut off at any byte is not taken for a whole one. See `snapshot_files` for what it means.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from struct import Struct
from typing import BinaryIO, Final, NamedTuple, TypeAlias
from zlib import crc32

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.wire.values.pieces import Encoded, chunks_of, joined

#: Raised when files can no longer be read by an older gearpy.
FORMAT_VERSION: Final = 2
#: What one section may hold; more in one piece is refused before it is stored.
SECTION_BYTES_MAX: Final = 1 << 30
#: What is hashed, read or written at once: worth a step, and soon over.
PORTION_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 1 << 19

#: Kinds of sections.
HEAD: Final = 1
STATE: Final = 2
_END: Final = 3

_MAGIC: Final = b"gearpart"
_HEADER: Final = Struct(">8sHI")  # Magic, version, checksum of these.
_LABEL: Final = Struct(">BQII")  # Kind, task, key group, bytes of the body.
_SECTION: Final = Struct(">BQIII")  # The same, and the checksum of label and body.
_CHECKSUM: Final = Struct(">I")
_TOTALS: Final = Struct(">QQI")  # Sections and bytes before the end, checksum of all their labels.


class FileSection(NamedTuple):
    """A part of a file."""

    kind: int
    task: TaskId
    group: int
    body: bytes


class NewSection(NamedTuple):
    """A part of a file that is written."""

    kind: int
    task: TaskId
    group: int
    body: Encoded


class SectionPlace(NamedTuple):
    """The place of the body of a verified section."""

    location: str
    offset: int
    kind: int
    task: TaskId
    group: int
    size: int
    checksum: int


#: What is done with the body of a section, given the checksum of its label: it is returned if it
#: was taken, or else empty bytes.
_Look: TypeAlias = Callable[["_Input", SectionPlace, int], bytes]


# -- writing ---------------------------------------------------------------------------------


def file_of(sections: Iterable[NewSection]) -> Iterator[bytes]:
    """Yield a file with these sections, in portions.

    Raises:
        ConfigError: one of them is too large.
    """
    return _gathered(_pieces(sections))


def _pieces(sections: Iterable[NewSection]) -> Iterator[bytes]:
    plain = _HEADER.pack(_MAGIC, FORMAT_VERSION, 0)[: -_CHECKSUM.size]
    yield plain + _CHECKSUM.pack(crc32(plain))
    heads, count, offset, labels = set[TaskId](), 0, _HEADER.size, 0
    for section in sections:
        if len(section.body) > SECTION_BYTES_MAX:
            raise ConfigError(
                f"task {section.task} holds {len(section.body)} bytes in one piece, at most "
                f"{SECTION_BYTES_MAX} can be stored: keep them in keyed state, under several keys"
            )
        assert (section.kind == HEAD) != (section.task in heads), f"heads of task {section.task}"
        heads.add(section.task)
        header = _header_of(section)
        labels = crc32(header, labels)
        yield header
        yield from chunks_of(section.body)
        count, offset = count + 1, offset + _SECTION.size + len(section.body)
    end = _end_of(count, offset, labels)
    yield _header_of(end)
    yield from chunks_of(end.body)


def _header_of(section: NewSection) -> bytes:
    label = _LABEL.pack(section.kind, section.task.packed(), section.group, len(section.body))
    checksum = crc32(label)
    for chunk in chunks_of(section.body):
        checksum = crc32(chunk, checksum)
    return label + _CHECKSUM.pack(checksum)


def _end_of(count: int, offset: int, labels: int) -> NewSection:
    return NewSection(_END, TaskId(0, 0), 0, _TOTALS.pack(count, offset, labels))


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, small pieces together: each is to be worth a write."""
    small = bytearray()
    for piece in pieces:
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


# -- reading ---------------------------------------------------------------------------------


def _begun(file: BinaryIO, wanted: SnapshotFile) -> "_Input":
    source = _Input(file, wanted.location)
    if wanted.size_bytes and source.size != wanted.size_bytes:
        reason = f"the file has {source.size} bytes, stored were {wanted.size_bytes}"
        raise source.damage(reason, at=min(source.size, wanted.size_bytes))
    _check_header(source)
    return source


def verified(file: BinaryIO, wanted: SnapshotFile) -> list[SectionPlace]:
    """Check every byte of a file, and return the places of its sections.

    Raises:
        SnapshotDamaged: the file is another one, of another version, or not whole.
        OSError: it cannot be read.
    """
    return [place for place, _ in read_once(file, wanted, lambda _: False)]


def read_once(
    file: BinaryIO,
    wanted: SnapshotFile,
    is_needed: Callable[[SectionPlace], bool],
    *,
    skims: bool = False,
) -> Iterator[tuple[SectionPlace, bytes]]:
    """Yield the sections of a file in its order, with their bodies where these are needed.

    Nothing that was yielded counts before the end came.

    Args:
        file: is read once, from its beginning to its end.
        wanted: what it should be.
        is_needed: tells of a section whether its body is.
        skims: bodies that are not needed are not looked at; else every byte is checked.

    Raises:
        SnapshotDamaged: the file is another one, of another version, or not whole.
        OSError: it cannot be read.
    """

    def look(source: _Input, place: SectionPlace, start: int) -> bytes:
        leave = _skip if skims else _check
        return (_take if is_needed(place) else leave)(source, place, start)

    source = _begun(file, wanted)
    yield from _sections(source, wanted.location, look)
    if not skims and source.sha256() != wanted.sha256:
        raise source.damage(f"SHA-256 is {source.sha256()}, stored was {wanted.sha256}", at=0)


def skimmed(file: BinaryIO, wanted: SnapshotFile) -> list[SectionPlace]:
    """Return the places of the sections of a file, without a look at their content.

    Raises:
        SnapshotDamaged: the file is another one, of another version, or not whole.
        OSError: it cannot be read.
    """
    return [place for place, _ in read_once(file, wanted, lambda _: False, skims=True)]


def checked(
    file: BinaryIO, wanted: SnapshotFile, is_later: Callable[[SectionPlace], bool]
) -> list[SectionPlace]:
    """Return the places of the sections of a file, without a look at those that are read later.

    All others are checked by their checksums.

    Raises:
        SnapshotDamaged: the file is another one, of another version, or not whole.
        OSError: it cannot be read.
    """

    def look(source: _Input, place: SectionPlace, start: int) -> bytes:
        return (_skip if is_later(place) else _check)(source, place, start)

    return [place for place, _ in _sections(_begun(file, wanted), wanted.location, look)]


def check_tasks(places: Iterable[SectionPlace], wanted: SnapshotFile) -> None:
    """Refuse a file that lacks a task that it is listed with: that one would begin from nothing.

    Raises:
        SnapshotDamaged: it does.
    """
    stored = {each.source for each in wanted.taken if each.task in wanted.tasks}
    missing = (stored if wanted.taken else {*wanted.tasks}) - {place.task for place in places}
    if missing:
        reason = f"there is no task {min(missing)}"
        raise SnapshotDamaged(location=wanted.location, reason=reason)


def is_at(place: SectionPlace, body: bytes) -> bool:
    label = _LABEL.pack(place.kind, place.task.packed(), place.group, len(body))
    return len(body) == place.size and crc32(body, crc32(label)) == place.checksum


class _Input:
    """A file that is read once from its beginning to its end, and hashed on the way."""

    def __init__(self, file: BinaryIO, location: str) -> None:
        self._file = file
        self._location = location
        self._digest = sha256()
        self.labels = 0
        self.size = file.seek(0, 2)
        self.at = file.seek(0)

    def take(self, size: int) -> bytes:
        """Return the next bytes, so many as can well be in memory."""
        data = self._file.read(size)
        if len(data) != size:
            raise self.damage("the file ends too early")
        self._digest.update(data)
        self.at += size
        return data

    def checksum(self, size: int, start: int) -> int:
        """Return the checksum of the next bytes, however many, and keep none of them."""
        while size:
            portion = self.take(min(size, PORTION_BYTES))
            start = crc32(portion, start)
            size -= len(portion)
        return start

    def skip(self, size: int) -> None:
        """Go on behind the next bytes."""
        self.at = self._file.seek(size, 1)

    def has_ended(self) -> bool:
        """Tell whether the file is at its end, also one that has grown since it was opened."""
        return self.at == self.size and not self._file.read(1)

    def sha256(self) -> str:
        """Return the SHA-256 of the bytes read so far."""
        return self._digest.hexdigest()

    def damage(self, reason: str, *, at: int | None = None) -> SnapshotDamaged:
        where = self.at if at is None else at
        return SnapshotDamaged(location=self._location, reason=f"byte {where}: {reason}")


def _check_header(source: _Input) -> None:
    header = source.take(_HEADER.size)
    magic, version, checksum = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise source.damage("the file does not begin as it must", at=0)
    if checksum != crc32(header[: -_CHECKSUM.size]):
        raise source.damage("the checksum of the header does not match", at=0)
    if version != FORMAT_VERSION:
        reason = f"format version {version}, this gearpy reads version {FORMAT_VERSION}"
        raise source.damage(reason, at=0)


def _sections(source: _Input, location: str, look: _Look) -> Iterator[tuple[SectionPlace, bytes]]:
    """Yield the sections, up to an end that agrees with them."""
    heads, count = set[TaskId](), 0
    while (found := _section(source, location, look))[0].kind != _END:
        place = found[0]
        if (place.kind == HEAD) == (place.task in heads):
            raise source.damage(f"task {place.task} has no head, or two", at=place.offset)
        heads.add(place.task)
        count += 1
        yield found
    place = found[0]
    # A body that is skipped leaves its own checksum unread: what its label says is checked here.
    end = _end_of(count, place.offset - _SECTION.size, source.labels)
    if not is_at(place, joined(end.body)) or not source.has_ended():
        raise source.damage(f"the end is not that of these {count} sections", at=place.offset)


def _section(source: _Input, location: str, look: _Look) -> tuple[SectionPlace, bytes]:
    """Return the next section."""
    at = source.at
    header = source.take(_SECTION.size)
    kind, task, group, size, checksum = _SECTION.unpack(header)
    if kind not in {HEAD, STATE, _END}:
        raise source.damage(f"a section of unknown kind {kind}", at=at)
    if kind != _END:
        source.labels = crc32(header, source.labels)
    if size > min(SECTION_BYTES_MAX, source.size - source.at):
        raise source.damage(f"a section of {size} bytes does not fit", at=at)
    place = SectionPlace(location, source.at, kind, TaskId.unpack(task), group, size, checksum)
    return place, look(source, place, crc32(header[: _LABEL.size]))


def _take(source: _Input, place: SectionPlace, start: int) -> bytes:
    body = source.take(place.size)
    _check_sum(source, place, crc32(body, start))
    return body


def _check(source: _Input, place: SectionPlace, start: int) -> bytes:
    _check_sum(source, place, source.checksum(place.size, start))
    return b""


def _skip(source: _Input, place: SectionPlace, _: int) -> bytes:
    source.skip(place.size)
    return b""


def _check_sum(source: _Input, place: SectionPlace, found: int) -> None:
    if found != place.checksum:
        at = place.offset - _SECTION.size
        raise source.damage("the checksum of a section does not match", at=at)
