"""Length-prefixed, checksummed frames: the unit that crosses a connection after the handshake.

``u32 body size | u8 version | u8 kind | u32 crc32 | body``, little-endian. The checksum covers
the rest of the header and the body; it guards against bugs, not against attackers.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

from gearpy.errors import ConfigError, ProtocolError

__all__ = [
    "HEADER_BYTES",
    "PROTOCOL_VERSION",
    "Frame",
    "FrameDecoder",
    "FrameKind",
    "FrameLimits",
    "encode_frame",
]

#: Of everything behind a handshake; peers must agree on it.
PROTOCOL_VERSION: Final = 1

_HEAD: Final = struct.Struct("<IBB")
_CRC: Final = struct.Struct("<I")
HEADER_BYTES: Final = _HEAD.size + _CRC.size


class FrameKind(IntEnum):
    """What a frame holds. Numbers are never reused."""

    DATA = 1
    INITIAL_ACK_REQUEST = 2
    ACK_REQUEST = 3
    ACK = 4
    LATENCY_PROBE = 5
    UNMANAGED = 6
    CONTROL_REQUEST = 16
    CONTROL_REPLY = 17
    CONTROL_TELL = 18
    NODE = 19


class Frame(NamedTuple):
    """One frame as it came off the wire. ``body`` may be a view of a larger buffer."""

    kind: FrameKind
    body: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLimits:
    """How large the body of a frame may be. Checked before anything is kept for it."""

    data_bytes_max: int = 16 << 20
    control_bytes_max: int = 1 << 20
    ack_bytes_max: int = 64  # Acks, ack requests and probes have a fixed size below this.

    def body_bytes_max(self, kind: FrameKind) -> int:
        """Return the limit for one kind of frame."""
        if kind is FrameKind.DATA:
            return self.data_bytes_max
        if kind in _FIXED_SIZE:
            return self.ack_bytes_max
        return self.control_bytes_max


_FIXED_SIZE: Final = frozenset(
    {
        FrameKind.INITIAL_ACK_REQUEST,
        FrameKind.ACK_REQUEST,
        FrameKind.ACK,
        FrameKind.LATENCY_PROBE,
    }
)


def encode_frame(
    kind: FrameKind, body: Sequence[bytes | memoryview], limits: FrameLimits
) -> list[bytes | memoryview]:
    """Return a frame as buffers to send one after the other: the header, then those of ``body``.

    Raises:
        ConfigError: the body is over the limit; the peer would refuse it.
    """
    size = sum(map(len, body))
    if size > limits.body_bytes_max(kind):
        raise ConfigError(
            f"a {kind.name} frame of {size} bytes is over the limit of "
            f"{limits.body_bytes_max(kind)}: send smaller batches or values, or raise the limit"
        )
    head = _HEAD.pack(size, PROTOCOL_VERSION, kind)
    crc = crc32(head)
    for buffer in body:
        crc = crc32(buffer, crc)
    return [head + _CRC.pack(crc), *body]


class FrameDecoder:
    """Cuts received bytes into frames, however they were split on the way.

    A frame inside one received chunk is not copied; one that spans chunks is copied once.

    Invariant: holds back less than one frame. After an error it stays failed and decodes
    nothing more.
    """

    def __init__(self, limits: FrameLimits) -> None:
        self._limits = limits
        self._parts: list[memoryview] = []  # Of the frame that has not arrived completely.
        self._held = 0  # Bytes in `_parts`.
        self._needed = HEADER_BYTES  # Bytes until the next decision.
        self._error: ProtocolError | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of an incomplete frame that wait for the rest."""
        return self._held

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        """Take received bytes; return the frames they complete.

        Raises:
            ProtocolError: the peer spoke nonsense; also on every later call.
        """
        if self._error is not None:
            raise self._error
        try:
            return self._feed(memoryview(data))
        except ProtocolError as error:
            self._error = error
            self._parts.clear()
            raise

    def _feed(self, data: memoryview) -> list[Frame]:
        frames: list[Frame] = []
        start = self._complete_held(data, frames)
        if start < len(data):
            start = self._cut(data, start, frames)
            self._hold(data[start:])
        return frames

    def _complete_held(self, data: memoryview, frames: list[Frame]) -> int:
        """Finish the frame that began in earlier chunks; return how much of ``data`` it took."""
        start = 0
        while self._held and start < len(data):
            missing = data[start : start + self._needed - self._held]
            self._hold(missing)
            start += len(missing)
            if self._held == self._needed:
                self._take_held(frames)
        return start

    def _take_held(self, frames: list[Frame]) -> None:
        """Emit what is held if it is a frame; else its header now says how much is missing."""
        whole = memoryview(b"".join(self._parts))
        self._parts, self._held = [], 0
        if self._cut(whole, 0, frames) == 0:
            self._hold(whole)

    def _hold(self, part: memoryview) -> None:
        if part:
            self._parts.append(part)
            self._held += len(part)

    def _cut(self, data: memoryview, start: int, frames: list[Frame]) -> int:
        """Append the complete frames from ``start`` on; return where the first incomplete begins.

        Afterwards `_needed` is the size of that incomplete frame as far as it is known.
        """
        available = len(data)
        while start + HEADER_BYTES <= available:
            size, version, number = _HEAD.unpack_from(data, start)
            kind = self._checked_kind(size, version, number)
            body = start + HEADER_BYTES
            if body + size > available:
                self._needed = HEADER_BYTES + size
                return start
            crc = crc32(data[body : body + size], crc32(data[start : start + _HEAD.size]))
            if crc != _CRC.unpack_from(data, start + _HEAD.size)[0]:
                raise ProtocolError(f"checksum of a {kind.name} frame of {size} bytes is wrong")
            frames.append(Frame(kind, data[body : body + size]))
            start = body + size
        self._needed = HEADER_BYTES
        return start

    def _checked_kind(self, size: int, version: int, number: int) -> FrameKind:
        if version != PROTOCOL_VERSION:
            raise ProtocolError(f"frame of protocol version {version}, expected {PROTOCOL_VERSION}")
        kind = _KINDS.get(number)
        if kind is None:
            raise ProtocolError(f"unknown frame kind {number}")
        if size > self._limits.body_bytes_max(kind):
            raise ProtocolError(
                f"{kind.name} frame announces {size} bytes, over the limit of "
                f"{self._limits.body_bytes_max(kind)}"
            )
        return kind


_KINDS: Final[dict[int, FrameKind]] = {kind.value: kind for kind in FrameKind}
