"""Receipts: the other end of a link says how many bytes have arrived.

Links go one way, and a task that is slow answers late. So it is the receiving process that says
now and then what has arrived, before any task has read it. Without that, a network that takes
bytes and delivers none, as a broken proxy or firewall does, would stop an application without a
word.
"""

import struct
from typing import Final

from gearpy.errors import ProtocolError
from gearpy.wire.connection.frames import Frame, FrameKind, FrameLimits, encode_frame
from gearpy.wire.connection.letters import Heartbeat

_RECEIPT: Final = struct.Struct("<Q")


def encode_receipt(received: int, limits: FrameLimits) -> list[bytes | memoryview]:
    return encode_frame(FrameKind.RECEIPT, [_RECEIPT.pack(received)], limits)


class Unreceived:
    """The bytes written on one connection that no receipt has confirmed.

    The other end sends a receipt on each of its own ticks on which something new is there, so a
    slow network, on which something arrives all the time, is told from a dead one.

    Invariant: nobody is lost whose receipt came within the timeout, or who owes none.
    """

    def __init__(self, *, interval_ms: int, timeout_ms: int) -> None:
        self.interval_ms = interval_ms  # Between two calls of `is_lost`, while not `is_settled`.
        self._heartbeat = Heartbeat(interval_ms=interval_ms, timeout_ms=timeout_ms)
        self._written = 0
        self._received = 0

    @property
    def is_settled(self) -> bool:
        return self._received == self._written

    def on_written(self, size: int, now_ms: int) -> None:
        """Count bytes of frames; silence counts from the first that are not confirmed."""
        if self.is_settled:
            self._heartbeat.start(now_ms)
        self._written += size

    def on_receipt(self, frame: Frame, now_ms: int) -> None:
        """Note the bytes that have arrived."""
        if frame.kind is not FrameKind.RECEIPT or len(frame.body) != _RECEIPT.size:
            raise ProtocolError(f"unexpected {frame.kind.name} frame on a link that goes one way")
        (received,) = _RECEIPT.unpack(frame.body)
        if not self._received <= received <= self._written:
            raise ProtocolError(
                f"a receipt for {received} bytes: {self._written} were sent and "
                f"{self._received} confirmed before"
            )
        self._received = received
        self._heartbeat.on_heard(now_ms)

    def is_lost(self, now_ms: int) -> bool:
        return not self.is_settled and self._heartbeat.on_tick(now_ms) is None

    def reason(self, now_ms: int) -> str:
        return (
            f"{self._written - self._received} bytes did not arrive, "
            f"silent for {self._heartbeat.silent_ms(now_ms)} ms"
        )
