"""Length-prefixed, checksummed frames: the unit that crosses a connection after the handshake.

``u32 body size | u8 version | u8 kind | u16 check | u32 crc32 | body``, little-endian. The check
covers what is before it, so that a damaged size is found at once, not after the receiver has
waited for bytes that nobody has sent. The checksum covers that and the body. Both guard against
bugs and bad networks, not against attackers.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

from msgspec import Struct

from gearpy.errors import ConfigError, FrameTooLarge, ProtocolError

#: The version of the form of frames; messages have versions of their own, which a handshake agrees
#: on (`messages.versions`).
FRAME_VERSION: Final = 1

_HEAD: Final = struct.Struct("<IBB")
_SUMS: Final = struct.Struct("<HI")  # One of the head, and one of all.
_CHECK_MASK: Final = 0xFFFF
HEADER_BYTES: Final = _HEAD.size + _SUMS.size


class FrameKind(IntEnum):
    """The kind of a frame. Numbers are never reused."""

    DATA = 1
    INITIAL_ACK_REQUEST = 2
    ACK_REQUEST = 3
    ACK = 4
    LATENCY_PROBE = 5
    UNMANAGED = 6
    RECEIPT = 7
    PEER = 16


class Frame(NamedTuple):
    """One frame as it came off the wire. ``body`` may be a view of a larger buffer."""

    kind: FrameKind
    body: memoryview


class FrameLimits(Struct, frozen=True, kw_only=True):
    """The largest sizes of the body of a frame. Checked before anything is kept for it."""

    data_bytes_max: int = 16 << 20
    control_bytes_max: int = 1 << 20
    stall_ms: int = 6000  # A frame that has begun and does not go on for so long is an error.
    ack_bytes_max: int = 64  # Acks, receipts, ack requests, probes: a fixed size below this.

    def body_bytes_max(self, kind: FrameKind) -> int:
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
        FrameKind.RECEIPT,
    }
)


_LARGER_FRAMES: Final = (
    "raise transport.frame-max-bytes in the configuration of every process of the cluster, or put "
    "less into one record"
)


def encode_frame(
    kind: FrameKind, body: Sequence[bytes | memoryview], limits: FrameLimits
) -> list[bytes | memoryview]:
    """Return a frame as buffers to send one after the other: the header, then those of ``body``.

    Raises:
        ConfigError: the body is over the limit; the peer would refuse it. `FrameTooLarge` if it is
            of a link.
    """
    size = sum(map(len, body))
    if size > (limit := limits.body_bytes_max(kind)):
        if kind is FrameKind.DATA:
            raise FrameTooLarge("a record", size, limit, _LARGER_FRAMES)
        if kind is FrameKind.UNMANAGED:
            raise FrameTooLarge("an unmanaged value", size, limit, "send it as a record")
        raise ConfigError(
            f"a {kind.name} frame of {size} bytes is over the limit of {limit}: send less at a time"
        )
    head = _HEAD.pack(size, FRAME_VERSION, kind)
    crc = check = crc32(head)
    for buffer in body:
        crc = crc32(buffer, crc)
    return [head + _SUMS.pack(check & _CHECK_MASK, crc), *body]


class FrameDecoder:
    """Cuts received bytes into frames, however they were split on the way.

    A frame inside one received chunk is not copied; one that spans chunks is copied once.

    Invariant: holds back less than one frame. After an error it stays failed and decodes
    nothing more.
    """

    def __init__(self, limits: FrameLimits) -> None:
        self._limits = limits
        self._parts: list[memoryview] = []  # The frame that is not complete.
        self._held = 0  # Bytes in `_parts`.
        self._needed = HEADER_BYTES  # Bytes until the next decision.
        self._error: ProtocolError | None = None
        self._complete = 0  # Frames so far.
        self._mark = 0, 0  # How far the stream was ...
        self._mark_ms = 0  # ... since then, when `on_tick` saw it move last.

    @property
    def held_bytes(self) -> int:
        return self._held

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        if self._error is not None:
            raise self._error
        try:
            return self._feed(memoryview(data))
        except ProtocolError as error:
            self._error = error
            self._parts.clear()
            raise

    def on_tick(self, now_ms: int) -> None:
        """Give up on a frame that has begun and hardly goes on; to be called now and then."""
        mark = self._complete, self._held // _GROWTH_BYTES
        if not self._held or mark != self._mark:
            self._mark, self._mark_ms = mark, now_ms
        elif now_ms - self._mark_ms >= self._limits.stall_ms:
            raise ProtocolError(
                f"a frame has not gone on for {now_ms - self._mark_ms} ms: "
                f"{self._held} of {self._needed} bytes have arrived"
            )

    def _feed(self, data: memoryview) -> list[Frame]:
        frames: list[Frame] = []

        start = 0
        while self._held and start < len(data):
            missing = data[start : start + self._needed - self._held]
            self._hold(missing)
            start += len(missing)
            if self._held == self._needed:
                whole = memoryview(b"".join(self._parts))
                self._parts, self._held = [], 0
                if self._cut(whole, 0, frames) == 0:
                    self._hold(whole)

        if start < len(data):
            start = self._cut(data, start, frames)
            self._hold(data[start:])
        self._complete += len(frames)
        return frames

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
            check, crc = _SUMS.unpack_from(data, start + _HEAD.size)
            head_crc = crc32(data[start : start + _HEAD.size])

            if version != FRAME_VERSION:
                raise ProtocolError(f"frame of version {version}, expected {FRAME_VERSION}")
            kind = _KINDS.get(number)
            if kind is None:
                raise ProtocolError(f"unknown frame kind {number}")
            if size > self._limits.body_bytes_max(kind):
                raise ProtocolError(
                    f"{kind.name} frame announces {size} bytes, over the limit of "
                    f"{self._limits.body_bytes_max(kind)}"
                )

            if check != head_crc & _CHECK_MASK:
                raise ProtocolError(f"the header of a {kind.name} frame is damaged")
            body = start + HEADER_BYTES
            if body + size > available:
                self._needed = HEADER_BYTES + size
                return start
            if crc != crc32(data[body : body + size], head_crc):
                raise ProtocolError(f"checksum of a {kind.name} frame of {size} bytes is wrong")
            frames.append(Frame(kind, data[body : body + size]))
            start = body + size
        self._needed = HEADER_BYTES
        return start


#: A frame that grows by less within `FrameLimits.stall_ms` does not go on. Slower networks than
#: that are of no use; less than that, such as a few acks, may flow behind a frame's lost rest.
_GROWTH_BYTES: Final = 65_536

_KINDS: Final[dict[int, FrameKind]] = {kind.value: kind for kind in FrameKind}
