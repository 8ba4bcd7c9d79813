"""The disk of a member: what is on it, and the writes that change it."""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from gearpy.core.base.versions import MASTERS
from gearpy.errors import ProtocolError


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """An entry of the log: a command, new members, or nothing, with which a leader begins."""

    term: int
    command: bytes = b""
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """The state that all entries up to ``index`` have led to, and the members of then."""

    index: int = 0
    term: int = 0
    members: tuple[str, ...] = ()
    state: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskWrite:
    """One change of the disk, all or nothing.

    Entries up to ``base_index``, and those from ``first`` on, are replaced by ``entries``, which
    begin at ``first``.
    """

    term: int
    vote: str
    base_index: int
    base_term: int
    first: int
    entries: tuple[LogEntry, ...] = ()
    snapshot: StateSnapshot | None = None


@dataclass(slots=True, kw_only=True)
class StoredLog:
    """All that a member remembers after a crash.

    Entries begin behind ``base_index``, which is at most the index of the snapshot.
    """

    term: int = 0
    vote: str = ""
    snapshot: StateSnapshot = field(default_factory=StateSnapshot)
    base_index: int = 0
    base_term: int = 0
    entries: list[LogEntry] = field(default_factory=list)

    @classmethod
    def of_members(cls, *members: str) -> "StoredLog":
        return cls(snapshot=StateSnapshot(members=tuple(sorted(members))))

    def apply(self, write: DiskWrite) -> None:
        assert write.term >= self.term, "terms never fall"
        del self.entries[max(0, write.first - 1 - self.base_index) :]
        del self.entries[: write.base_index - self.base_index]
        self.entries += write.entries
        self.base_index, self.base_term = write.base_index, write.base_term
        self.term, self.vote = write.term, write.vote
        self.snapshot = write.snapshot or self.snapshot

    def to_bytes(self, version: int = MASTERS.newest) -> bytes:
        return msgspec.msgpack.encode((version, self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "StoredLog":
        stored: StoredLog = _decoded(data, _STORED)
        return stored


def encode_write(write: DiskWrite, version: int = MASTERS.newest) -> bytes:
    return msgspec.msgpack.encode((version, write))


def decode_write(record: bytes) -> DiskWrite:
    write: DiskWrite = _decoded(record, _WRITE)
    return write


_ENVELOPE: Final = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])
_STORED: Final = msgspec.msgpack.Decoder(StoredLog)
_WRITE: Final = msgspec.msgpack.Decoder(DiskWrite)


def _decoded(data: bytes, decoder: "msgspec.msgpack.Decoder[Any]") -> Any:
    try:
        version, fields = _ENVELOPE.decode(data)
        MASTERS.check(version, "the log of the masters")
        return decoder.decode(fields)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(
            f"the log of the masters holds a record that is none: {error}"
        ) from error
