"""An append-only log: its records are there after any crash.

A segment is a header and then frames; a frame holds what one append was given, so that after a
crash there is all of it or nothing. The checksum of a frame begins with a number that each
segment draws anew: what a record says can never look like a frame.

Beside a segment is its head: marks that say how many bytes of the segment were acknowledged. A
broken frame behind the last mark was cut off by a crash; one before it is damage.
"""

import logging
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from zlib import crc32

from msgspec import Struct

from gearpy.core.base.versions import MASTERS
from gearpy.core.coordinator.blocks import HEADER_BYTES, BlockFormat, Damaged
from gearpy.errors import LogBroken, LogDamaged
from gearpy.storage.folder.api import TEMPORARY, LogFolder
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.folder.memory import MemoryFolder

if TYPE_CHECKING:
    from random import Random

_log = logging.getLogger(__name__)
_NAME: Final = re.compile(r"(head|segment|snapshot)-(\d{20})")
#: No more marks of a head wait for the system to make them durable.
_MARKS_MAX: Final = 100

#: Its number is the salt of the segment.
_SEGMENT: Final = BlockFormat(b"gearlog\n", 3)
_SNAPSHOT: Final = BlockFormat(b"gearsnap", 3)
#: One append holds no more.
_FRAME_BYTES_MAX: Final = 1 << 30

_FRAME_MAGIC: Final = b"\xf7\x9b\x01\xe3"
_FRAME: Final = struct.Struct(">4sII")  # Magic, bytes of the body, checksum of salt, size and body.
_LENGTH: Final = struct.Struct(">I")
_MARK: Final = struct.Struct(">4sIQI")  # Magic, salt, acknowledged bytes, checksum of these.
_MARK_MAGIC: Final = b"\xf7ack"


class Replay(NamedTuple):
    """The content of a log: the newest snapshot, and the records appended since."""

    snapshot: bytes | None
    records: Sequence[bytes]


class Log(Protocol):
    """Records in order. A log that other masters hold too can take the place of a local one.

    Records and snapshots are to be in a ``version`` of `MASTERS` that all who read them know.

    Once `append` or `snapshot` has raised, both raise `LogBroken` for ever: whether the last
    records are there is then known only after the log was opened again.
    """

    @property
    def version(self) -> int:
        """The version in which records are to be written now."""
        ...

    def append(self, records: Sequence[bytes]) -> int:
        """Add records; return how many there are, from the beginning, once these are durable.

        After a crash in the midst of it there are all of them or none.

        Raises:
            LogBroken: they may or may not be there after a restart.
        """
        ...

    def replay(self) -> Replay:
        """Return all that counts.

        Raises:
            LogDamaged: a file was changed by something else than this log.
        """
        ...

    def snapshot(self, state: bytes) -> None:
        """Replace all records up to here by the state that they have led to.

        Raises:
            LogBroken: the log still holds everything, before or after the snapshot.
        """
        ...

    def close(self) -> None:
        """Let others open it. Does nothing when called again."""
        ...


class FileLog:
    """`Log` in a folder: a snapshot, and one segment with the records since.

    A snapshot is written, then the next segment begun, and only then is removed what they
    replace; so at each moment, one of both generations is whole. Both are numbered by how
    many records came before.

    Before an append returns, the head of the segment says how long the segment is; so a broken end
    is known as what a crash left, or as damage of what was promised. That costs no sync of its own:
    where the power fails, too, the newest marks may be gone, and then as many appends at the end,
    which were durable, are not told from others if something else has damaged them.

    Runs on: one thread at a time. Restart: open a new one after `close`.

    Raises:
        ConfigError: another process, or another log of this one, has the folder.
        LogDamaged: a file was changed by something else than this log.
    """

    version = MASTERS.newest  #: See `Log`: nobody else reads it.

    def __init__(self, where: Path | str | LogFolder) -> None:
        self._folder: LogFolder = (
            LocalFolder(where, private=True) if isinstance(where, str | Path) else where
        )
        self._folder.make()
        self._broken = ""
        self._start = 0  # Records before the segment that is written to.
        self._count = 0  # Records in it.
        self._salt = 0
        self._bytes = 0  # The size of the segment.
        self._marks = 0  # They are not durable yet.
        self._folder.lock()
        try:
            self._open()
        except BaseException:
            self._folder.unlock()
            raise

    def append(self, records: Sequence[bytes]) -> int:
        if records:
            frame = _frame_of(records, self._salt)
            with self._writing():
                self._folder.append(_name("segment", self._start), frame)
                size = self._bytes + len(frame)
                self._marks += 1
                add = self._folder.note if self._marks < _MARKS_MAX else self._folder.append
                add(_name("head", self._start), mark_of(size, self._salt))
                self._marks %= _MARKS_MAX
                self._bytes = size
            self._count += len(records)
        return self._start + self._count

    def replay(self) -> Replay:
        snapshots = self._numbers("snapshot")
        snapshot = None
        if snapshots:
            name = _name("snapshot", snapshots[-1])
            snapshot = _SNAPSHOT.body(self._read(name), _damaged(self._path(name)))
        name = _name("segment", self._start)
        return Replay(snapshot, _read_segment(self._read(name), self._path(name)).records)

    def snapshot(self, state: bytes) -> None:
        index = self._start + self._count
        with self._writing():
            self._folder.put(_name("snapshot", index), _SNAPSHOT.block(state))
            if self._count:
                self._begin_segment(index)
            self._remove_before(index)

    def close(self) -> None:
        if not self._broken:
            with suppress(OSError):  # Nothing is lost without it.
                self._folder.append(_name("head", self._start), b"")
        self.abandon()

    def abandon(self) -> None:
        self._broken = self._broken or "it is closed"
        self._folder.unlock()

    # -- opening ---------------------------------------------------------------------------

    def _open(self) -> None:
        for name in self._folder.names():
            if name.endswith(TEMPORARY):  # Its content was never promised to anybody.
                self._folder.remove(name)
        snapshots, segments = self._numbers("snapshot"), self._numbers("segment")
        covered = snapshots[-1] if snapshots else 0
        for number in self._numbers("head"):
            promised = _acknowledged_bytes(self._read(_name("head", number)), None)
            if promised > HEADER_BYTES and not any(each >= number for each in segments):
                path = self._path(_name("segment", number))
                reason = f"the file is missing, and {promised} bytes of it were acknowledged"
                raise LogDamaged(file=path, offset=0, reason=reason)
        if not snapshots and not segments:
            self._begin_segment(0)
            return
        if not segments:
            path = self._path(_name("segment", covered))
            raise LogDamaged(file=path, offset=0, reason="the file is missing")
        if segments[-1] > covered:
            path = self._path(_name("snapshot", segments[-1]))
            raise LogDamaged(file=path, offset=0, reason="the file is missing")
        if segments[-1] < covered:  # The crash came between the snapshot and the next segment.
            self._begin_segment(covered)
        else:
            self._recover_segment(covered)
        self.replay()  # Damage shows now, not when somebody relies on it.
        self._remove_before(covered)

    def _begin_segment(self, start: int) -> None:
        salt = int.from_bytes(os.urandom(4), "big")
        header = _SEGMENT.header(salt)
        self._folder.put(_name("head", start), mark_of(len(header), salt))
        self._folder.put(_name("segment", start), header)
        self._start, self._count, self._salt, self._bytes = start, 0, salt, len(header)

    def _recover_segment(self, start: int) -> None:
        name = _name("segment", start)
        segment = _read_segment(self._read(name), self._path(name))

        # Tell damage of promised records from an end that a crash has cut off.
        head = name.replace("segment", "head")
        marks = self._folder.read(head) or b""
        promised = _acknowledged_bytes(marks, segment.salt)
        if not promised:
            _log.warning(
                "%s does not say how much of %s was acknowledged: a broken end of it counts as cut "
                "off by a crash",
                self._path(head),
                name,
            )
        if segment.good_bytes < promised:
            raise LogDamaged(
                file=self._path(name),
                offset=segment.good_bytes,
                reason=f"from there on it is broken, and {promised} bytes were acknowledged",
                fix="restore its folder from a copy; or, to go on without what is broken, keep a "
                f"copy of the folder and remove {self._path(head)}",
            )

        if segment.torn_bytes:
            _log.warning(
                "%s: cut off %d bytes at byte %d, of an append that a crash interrupted",
                self._path(name),
                segment.torn_bytes,
                segment.good_bytes,
            )
            self._folder.truncate(name, segment.good_bytes)
        # The last process may have been killed before it did; what counts from now on is durable.
        self._folder.append(name, b"")
        self._folder.sync_names()
        self._start, self._count, self._salt = start, len(segment.records), segment.salt
        self._bytes = segment.good_bytes
        self._folder.put(_name("head", start), mark_of(self._bytes, self._salt))

    def _remove_before(self, index: int) -> None:
        for kind in ("head", "segment", "snapshot"):
            for number in self._numbers(kind):
                if number < index:
                    self._folder.remove(_name(kind, number))

    # -- files -----------------------------------------------------------------------------

    def _read(self, name: str) -> bytes:
        data = self._folder.read(name)
        if data is None:
            raise LogDamaged(file=self._path(name), offset=0, reason="the file is missing")
        return data

    def _path(self, name: str) -> str:
        return f"{self._folder.place}/{name}"

    def _numbers(self, kind: str) -> list[int]:
        found = filter(None, map(_NAME.fullmatch, self._folder.names()))
        return sorted(int(match[2]) for match in found if match[1] == kind)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._broken:
            raise LogBroken(f"the log in {self._folder.place} takes nothing more: {self._broken}")
        try:
            yield
        except OSError as error:
            # Never tried again: after a failed fsync the system may have dropped the data.
            self._broken = str(error)
            raise LogBroken(f"cannot write the log in {self._folder.place}: {error}") from error
        except BaseException as error:
            self._broken = repr(error)
            raise


class MemoryLog(FileLog):
    """`Log` in memory, for masters whose applications end with them, and for simulations."""

    def __init__(self, folder: MemoryFolder | None = None) -> None:
        self.folder = MemoryFolder() if folder is None else folder
        super().__init__(self.folder)

    def crash(self, rng: "Random | None" = None) -> "MemoryLog":
        """Return the log that the next process finds; this one is closed.

        Unsynced bytes are lost; with ``rng``, a random part of them.
        """
        self.abandon()
        self.folder.crash(rng)
        return MemoryLog(self.folder)


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number:020d}"


# -- bytes -----------------------------------------------------------------------------------


class _Segment(Struct, frozen=True, kw_only=True):
    """The content of a segment. Bytes from ``good_bytes`` on are cut off by a crash."""

    salt: int
    records: tuple[bytes, ...]
    good_bytes: int
    torn_bytes: int


def _frame_of(records: Sequence[bytes], salt: int) -> bytes:
    body = b"".join(part for each in records for part in (_LENGTH.pack(len(each)), each))
    assert len(body) <= _FRAME_BYTES_MAX, f"{len(body)} bytes in one append"
    return _FRAME.pack(_FRAME_MAGIC, len(body), _checksum(body, salt)) + body


def _read_segment(data: bytes, file: str) -> _Segment:
    salt = _SEGMENT.check(data, _damaged(file))
    at, records = HEADER_BYTES, list[bytes]()
    while at < len(data):
        body = _body_at(data, at, salt)
        if body is None:
            later = data.find(_FRAME_MAGIC, at + 1)
            while later >= 0:
                if _body_at(data, later, salt) is not None:
                    reason = f"a damaged record, with good ones after it from byte {later}"
                    raise LogDamaged(file=file, offset=at, reason=reason)
                later = data.find(_FRAME_MAGIC, later + 1)
            break
        place = 0
        while place < len(body):
            (size,) = _LENGTH.unpack_from(body, place)
            place += _LENGTH.size + size
            records.append(bytes(body[place - size : place]))
        at += _FRAME.size + len(body)
    return _Segment(
        salt=salt, records=tuple(records), good_bytes=at, torn_bytes=max(0, len(data) - at)
    )


def mark_of(acknowledged: int, salt: int) -> bytes:
    """Return the mark of a head: so many bytes of the segment with this salt are promised."""
    plain = _MARK.pack(_MARK_MAGIC, salt, acknowledged, 0)[: -_LENGTH.size]
    return plain + _LENGTH.pack(crc32(plain))


def _acknowledged_bytes(head: bytes, salt: int | None) -> int:
    """Return the most that the marks of a head promise; 0 if none of them can be trusted.

    A mark that is broken says nothing: a crash may have cut it off, and those before it promise
    less. Without a ``salt`` the segment is gone, and marks of any count.
    """
    most = 0
    for at in range(0, len(head) - _MARK.size + 1, _MARK.size):
        mark = head[at : at + _MARK.size]
        _, found, acknowledged, _ = _MARK.unpack(mark)
        if mark == mark_of(acknowledged, found) and salt in (None, found):
            most = max(most, int(acknowledged))
    return most


def _damaged(file: str) -> Damaged:
    return lambda offset, reason: LogDamaged(file=file, offset=offset, reason=reason)


def _body_at(data: bytes, at: int, salt: int) -> memoryview | None:
    """Return the body of the frame that begins there; None if that is no whole frame."""
    if len(data) - at < _FRAME.size:
        return None
    magic, size, checksum = _FRAME.unpack_from(data, at)
    start = at + _FRAME.size
    if magic != _FRAME_MAGIC or size > len(data) - start:
        return None
    body = memoryview(data)[start : start + size]
    return body if _checksum(body, salt) == checksum else None


def _checksum(body: bytes | memoryview, salt: int) -> int:
    return crc32(body, crc32(_LENGTH.pack(len(body)), salt))
