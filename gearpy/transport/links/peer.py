"""The connection to one peer: queues frames of senders, and writes them."""

import logging
import random
import threading
from collections import deque

from gearpy.clocks import monotonic_ms
from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.messages.versions import PROTOCOL
from gearpy.transport.api import LinkLost, TransportLimits
from gearpy.transport.connection.protocol import WireProtocol
from gearpy.transport.connection.redial import Redial, is_refusal
from gearpy.transport.loop.loop import LoopThread
from gearpy.transport.security.credentials import Shown
from gearpy.wire.connection.auth import Purpose
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.letters import Patience
from gearpy.wire.connection.receipts import Unreceived

_log = logging.getLogger(__name__)

_Buffers = list[bytes | memoryview]


class LinkPeer(Redial):
    """Sends frames to one address, in the order they were queued.

    It connects when there is something to send. An idle connection is written to at once; while
    one is busy, frames gather and go out together. When it breaks, what is queued is
    dropped, and the next frame connects again.

    Invariant: frames are sent once or dropped, never sent again.

    Runs on: the loop thread, but for `enqueue`, which any thread may call.
    """

    def __init__(
        self,
        address: str,
        shown: Shown,
        *,
        loop: LoopThread,
        limits: TransportLimits,
        on_lost: LinkLost,
    ) -> None:
        super().__init__(address, shown, limits, Purpose.LINK)
        self._address = address
        self._loop = loop
        self._on_lost = on_lost
        # It guards `_queue`, `_queued_bytes` and `_awake`: whether the loop thread looks at the
        # queue by itself.
        self._lock = threading.Lock()
        self._queue: deque[tuple[_Buffers, int]] = deque()
        self._queued_bytes = 0
        self._awake = False
        self.version = PROTOCOL.oldest  #: It is agreed on once there is a connection.
        self._unreceived = self._new_unreceived()  # The bytes of this connection.
        self._rng = random.Random()
        self._patience = Patience(
            base_ms=limits.reconnect_base_ms,
            max_ms=limits.reconnect_max_ms,
            retries=limits.reconnect_retries,
        )

    def enqueue(self, frame: _Buffers) -> None:
        size = sum(map(len, frame))
        with self._lock:
            full = self.ended or self._queued_bytes + size > self._limits.queue_bytes_max
            wake = not (full or self._awake)
            if not full:
                self._queue.append((frame, size))
                self._queued_bytes += size
                self._awake = True
        if wake:
            self._loop.call_soon(self._wake)

    async def close(self) -> None:
        """Drop the queue, send all written bytes, close the socket."""
        self.ended = True
        self._drop_queue()
        await super().close()

    # -- writing ---------------------------------------------------------------------------

    @property
    def is_needed(self) -> bool:
        return bool(self._queue)

    def next_buffers(self) -> _Buffers:
        """Take frames for one write; fall asleep if there is none."""
        buffers: _Buffers = []
        size = 0
        with self._lock:
            while self._queue and size < self._limits.write_buffer_bytes:
                frame, frame_bytes = self._queue.popleft()
                buffers += frame
                size += frame_bytes
            self._queued_bytes -= size
            self._awake = bool(buffers)
        if buffers:
            self._unreceived.on_written(size, monotonic_ms())
            if self._ticker is None:
                self.start_ticking()
        return buffers

    def _wake(self) -> None:
        if self.ended:
            self._drop_queue()
        elif self.open is not None:
            self.flush()
        else:
            self.dial()

    def _drop_queue(self) -> None:
        with self._lock:
            self._queue.clear()
            self._queued_bytes = 0
            self._awake = False

    # -- what has arrived ------------------------------------------------------------------

    def _new_unreceived(self) -> Unreceived:
        limits = self._limits
        return Unreceived(
            interval_ms=limits.heartbeat_interval_ms, timeout_ms=limits.heartbeat_timeout_ms
        )

    def on_tick(self, now_ms: int) -> bool:
        """Check that written bytes arrive; rest once all of them have."""
        if self.open is None or self._unreceived.is_settled:
            return False
        if self._unreceived.is_lost(now_ms):
            self.open.abort(ConnectionLost(self._unreceived.reason(now_ms)))
            return False
        return True

    def on_authenticated(self, protocol: WireProtocol) -> None:
        self.version = protocol.connection.version
        self._unreceived = self._new_unreceived()
        self._patience.on_progress()
        self.opened(protocol)

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        for frame in frames:
            self._unreceived.on_receipt(frame, monotonic_ms())

    # -- what fails ------------------------------------------------------------------------

    def on_failure(self, error: Exception) -> int | None:
        """Return when to dial again; neither version nor secret will change by waiting."""
        pause_ms = None
        if not isinstance(error, ProtocolError):
            pause_ms = self._patience.on_failure(self._rng, refused=is_refusal(error))
            _log.debug("cannot reach %s: %s", self._address, error)
        if pause_ms is None:
            self._patience.on_progress()
            text = str(error) or type(error).__name__
            if isinstance(error, AuthenticationFailed):
                text = f"{error}; copy the secret file of the cluster"
            self._lose(f"cannot connect: {text}")
        return pause_ms

    def on_broken(self, error: Exception) -> None:
        self._lose(str(error))

    def on_rest(self) -> None:
        """Wait for the next frame, which dials again."""

    def _lose(self, reason: str) -> None:
        self._drop_queue()
        _log.warning("link to %s lost: %s", self._address, reason)
        self._on_lost(self._address, reason)
