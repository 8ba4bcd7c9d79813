"""The connection to one peer: queues what senders hand over, connects, writes, connects again."""

import asyncio
import logging
import random
import threading
from collections import deque

from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.transport.api import Counters, LinkLost, TransportLimits, split_address
from gearpy.transport.connection.protocol import WireProtocol, client_protocol, monotonic_ms
from gearpy.transport.loop.loop import LoopThread
from gearpy.transport.security.credentials import Shown, credentials_of
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.receipts import Unreceived

__all__ = ["Peer"]

_log = logging.getLogger(__name__)

_Buffers = list[bytes | memoryview]


class Peer:
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
        counters: Counters,
        on_lost: LinkLost,
    ) -> None:
        self._address = address
        self._host_port = split_address(address)
        self._credentials = credentials_of(shown)
        self._loop = loop
        self._limits = limits
        self._counters = counters
        self._on_lost = on_lost
        # Of `_queue`, `_queued_bytes` and `_awake`; the loop thread is awake while it is going to
        # look at the queue without being called.
        self._lock = threading.Lock()
        self._queue: deque[tuple[_Buffers, int]] = deque()
        self._queued_bytes = 0
        self._awake = False
        self._protocol: WireProtocol | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._trying: WireProtocol | None = None  # The connection of this attempt ...
        self._proved: asyncio.Future[None] | None = None  # ... and its handshake.
        self._was_connected = False
        self._unreceived = self._new_unreceived()  # Of this connection.
        self._ticker: asyncio.TimerHandle | None = None
        self._closed = False

    def enqueue(self, frame: _Buffers) -> None:
        """Queue the buffers of one frame; drops it if the queue is full or closed."""
        size = sum(map(len, frame))
        with self._lock:
            full = self._closed or self._queued_bytes + size > self._limits.queue_bytes_max
            wake = not (full or self._awake)
            if not full:
                self._queue.append((frame, size))
                self._queued_bytes += size
                self._awake = True
        if full:
            self._counters.add(dropped_lost=1)
        elif wake:
            self._loop.call_soon(self._wake)

    async def close(self) -> None:
        """Drop the queue, send what was written, close the socket."""
        self._closed = True
        self._drop_queue()
        if self._ticker is not None:
            self._ticker.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        # The connection of the last attempt is the open one, or on its way to be closed.
        await _close_socket(self._trying, self._limits.close_timeout_ms)

    # -- writing ---------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._closed:
            self._drop_queue()
        elif self._protocol is not None:
            self._flush()
        elif self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def _flush(self) -> None:
        """Write what is queued, up to one buffer full; the loop serves others before the next."""
        if self._protocol is None or self._protocol.paused:
            return  # Stays awake: `on_writable` or the next connection goes on.
        frames, buffers, size = self._take()
        if not frames:
            return
        self._protocol.write(buffers)
        self._unreceived.on_written(size, monotonic_ms())
        if self._ticker is None:
            self._plan_tick()
        self._counters.add(frames_out=frames, bytes_out=size)
        asyncio.get_running_loop().call_soon(self._flush)

    def _take(self) -> tuple[int, _Buffers, int]:
        """Take frames for one write, at least one; fall asleep if there is none."""
        buffers: _Buffers = []
        frames = size = 0
        with self._lock:
            while self._queue and size < self._limits.write_buffer_bytes:
                frame, frame_bytes = self._queue.popleft()
                buffers += frame
                frames += 1
                size += frame_bytes
            self._queued_bytes -= size
            self._awake = bool(frames)
        return frames, buffers, size

    def _drop_queue(self) -> None:
        with self._lock:
            dropped = len(self._queue)
            self._queue.clear()
            self._queued_bytes = 0
            self._awake = False
        if dropped:
            self._counters.add(dropped_lost=dropped)

    # -- what has arrived ------------------------------------------------------------------

    def _new_unreceived(self) -> Unreceived:
        limits = self._limits
        return Unreceived(
            interval_ms=limits.heartbeat_interval_ms, timeout_ms=limits.heartbeat_timeout_ms
        )

    def _plan_tick(self) -> None:
        interval_s = self._unreceived.interval_ms / 1000
        self._ticker = asyncio.get_running_loop().call_later(interval_s, self._tick)

    def _tick(self) -> None:
        """Look whether what was written arrives; rest once all of it has."""
        self._ticker = None
        if self._protocol is None or self._unreceived.is_settled:
            return
        now_ms = monotonic_ms()
        if self._unreceived.is_lost(now_ms):
            self._protocol.abort(ConnectionLost(self._unreceived.reason(now_ms)))
        else:
            self._plan_tick()

    # -- connecting ------------------------------------------------------------------------

    async def _connect(self) -> None:
        """Try until there is a connection, or give up and drop what waits for it."""
        try:
            await self._try_often()
        except (OSError, TimeoutError, ConnectionLost, ProtocolError) as error:
            self._lose(f"cannot connect: {_text(error)}")
        finally:
            self._connecting = None

    async def _try_often(self) -> None:
        for attempt in range(self._limits.reconnect_retries + 1):
            if attempt:
                await asyncio.sleep(self._pause_s(attempt))
            try:
                return await self._try_once()
            except ProtocolError:
                raise  # Neither version nor secret will change by waiting.
            except (OSError, TimeoutError, ConnectionLost) as error:
                if attempt == self._limits.reconnect_retries:
                    raise
                _log.debug("attempt %d to reach %s: %s", attempt + 1, self._address, error)
        return None

    async def _try_once(self) -> None:
        loop = asyncio.get_running_loop()
        self._trying, self._proved = None, loop.create_future()
        async with asyncio.timeout(self._limits.handshake_timeout_ms / 1000):
            _, protocol = await loop.create_connection(self._new_protocol, *self._host_port)
            try:
                await self._proved
            except BaseException:
                protocol.abort()
                raise

    def _new_protocol(self) -> WireProtocol:
        host, _ = self._host_port
        return client_protocol(self._credentials, self, self._limits, host=host)

    def _pause_s(self, attempt: int) -> float:
        """Return a pause that doubles up to its limit, the upper half of it random."""
        limits = self._limits
        pause_ms = min(limits.reconnect_max_ms, limits.reconnect_base_ms << min(attempt - 1, 30))
        return pause_ms * random.uniform(0.5, 1.0) / 1000

    # -- what the socket tells -------------------------------------------------------------

    def on_connected(self, protocol: WireProtocol) -> None:
        """Wait for the proof."""
        self._trying = protocol

    def on_authenticated(self, protocol: WireProtocol) -> None:
        """Write what has gathered."""
        if self._was_connected:
            self._counters.add(reconnects=1)
        self._was_connected = True
        self._protocol, self._unreceived = protocol, self._new_unreceived()
        if self._proved is not None and not self._proved.done():
            self._proved.set_result(None)
        self._flush()

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        """Note what has arrived there; for all else a peer has a connection of its own."""
        for frame in frames:
            self._unreceived.on_receipt(frame, monotonic_ms())

    def on_writable(self, protocol: WireProtocol) -> None:
        """Go on writing."""
        self._flush()

    def on_closed(self, protocol: WireProtocol, error: ProtocolError | ConnectionLost) -> None:
        """End this attempt, or this connection."""
        if protocol is self._trying and self._proved is not None and not self._proved.done():
            self._proved.set_exception(error)
        elif protocol is self._protocol:
            self._protocol = None
            if not self._closed:
                self._lose(str(error))

    def _lose(self, reason: str) -> None:
        self._drop_queue()
        if not self._closed:
            _log.warning("link to %s lost: %s", self._address, reason)
            self._on_lost(self._address, reason)


def _text(error: Exception) -> str:
    if isinstance(error, AuthenticationFailed):
        return f"{error}; copy the secret file of the cluster"
    return str(error) or type(error).__name__


async def _close_socket(protocol: WireProtocol | None, timeout_ms: int) -> None:
    """Close a socket in order, or at once if its peer does not read."""
    if protocol is None:
        return
    protocol.close()
    await asyncio.wait([protocol.closed], timeout=timeout_ms / 1000)
    if not protocol.closed.done():
        protocol.abort()
        await asyncio.wait([protocol.closed], timeout=timeout_ms / 1000)
