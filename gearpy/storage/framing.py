"""The bytes of a log's files: frames of records, snapshots, and their mistakes.

A segment is a header and then frames; a frame holds what one append was given, so that after a
crash there is all of it or nothing. The checksum of a frame begins with a number that each
segment draws anew: what a record says can never look like a frame.

Beside a segment is its head: marks that say how many bytes of the segment were acknowledged. A
broken frame behind the last mark was cut off by a crash; one before it is damage.
"""

import struct
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from msgspec import Struct

from gearpy.core.coordinator.blocks import HEADER_BYTES, BlockFormat, Damaged
from gearpy.errors import LogDamaged

#: Its number is the salt of the segment.
_SEGMENT: Final = BlockFormat(b"gearlog\n", 3)
_SNAPSHOT: Final = BlockFormat(b"gearsnap", 3)
#: What one append may hold.
FRAME_BYTES_MAX: Final = 1 << 30

_FRAME_MAGIC: Final = b"\xf7\x9b\x01\xe3"
_FRAME: Final = struct.Struct(">4sII")  # Magic, bytes of the body, checksum of salt, size and body.
_LENGTH: Final = struct.Struct(">I")
_MARK: Final = struct.Struct(">4sIQI")  # Magic, salt, acknowledged bytes, checksum of these.
_MARK_MAGIC: Final = b"\xf7ack"


class Segment(Struct, frozen=True, kw_only=True):
    """The content of a segment. Bytes from ``good_bytes`` on are cut off by a crash."""

    salt: int
    records: tuple[bytes, ...]
    good_bytes: int
    torn_bytes: int


def header_of(salt: int) -> bytes:
    return _SEGMENT.header(salt)


def frame_of(records: Sequence[bytes], salt: int) -> bytes:
    body = b"".join(part for each in records for part in (_LENGTH.pack(len(each)), each))
    assert len(body) <= FRAME_BYTES_MAX, f"{len(body)} bytes in one append"
    return (
        _FRAME.pack(_FRAME_MAGIC, len(body), crc32(body, crc32(_LENGTH.pack(len(body)), salt)))
        + body
    )


def read_segment(data: bytes, file: str) -> Segment:
    """Return the content of a segment."""
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
    return Segment(
        salt=salt, records=tuple(records), good_bytes=at, torn_bytes=max(0, len(data) - at)
    )


def mark_of(acknowledged: int, salt: int) -> bytes:
    """Return the mark of a head: so many bytes of the segment with this salt are promised."""
    plain = _MARK.pack(_MARK_MAGIC, salt, acknowledged, 0)[: -_LENGTH.size]
    return plain + _LENGTH.pack(crc32(plain))


def acknowledged_bytes(head: bytes, salt: int | None) -> int:
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


def snapshot_of(state: bytes) -> bytes:
    return _SNAPSHOT.block(state)


def read_snapshot(data: bytes, file: str) -> bytes:
    """Return the state that a snapshot holds."""
    return _SNAPSHOT.body(data, _damaged(file))


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
    return body if crc32(body, crc32(_LENGTH.pack(len(body)), salt)) == checksum else None
