"""Outgoing connections: made when there is a need, and made again when they break."""

import asyncio
import errno
import re
from abc import ABC, abstractmethod
from functools import partial

from gearpy.clocks import monotonic_ms
from gearpy.errors import ConnectionLost, ProtocolError
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.connection.protocol import WireProtocol, client_protocol
from gearpy.transport.security.credentials import Shown, credentials_of
from gearpy.wire.connection.auth import Purpose
from gearpy.wire.connection.frames import Frame


class Redial(ABC):
    """One connection to one address: dials, writes, ticks, and dials again after a pause.

    A subclass decides when there is a need, what to write, how long to wait after a failure, and
    what a broken connection means. A connection is of use once the subclass calls `opened`.

    Runs on: the loop thread. ``ended`` may be set by any thread; then nothing more is begun.
    """

    def __init__(
        self,
        address: str,
        shown: Shown,
        limits: TransportLimits,
        purpose: Purpose,
        *,
        follow: bool = False,
    ) -> None:
        self.ended = False
        self.open: WireProtocol | None = None  # The connection, once it is of use.
        self._host_port = split_address(address)
        self._credentials = credentials_of(shown)
        self._limits = limits
        self._purpose, self._follow = purpose, follow
        self._newest: WireProtocol | None = None  # The same, from the beginning of its handshake.
        self._dialling: asyncio.Task[None] | None = None
        self._outcome: asyncio.Future[Exception | None] | None = None  # That of the newest one.
        self._ticker: asyncio.TimerHandle | None = None

    # -- what a subclass decides -----------------------------------------------------------

    @property
    @abstractmethod
    def is_needed(self) -> bool:
        """Tell whether a connection is wanted."""

    @abstractmethod
    def next_buffers(self) -> list[bytes | memoryview]:
        """Return the next bytes to write, about one write buffer; empty if there are none."""

    @abstractmethod
    def on_authenticated(self, protocol: WireProtocol) -> None:
        """Begin the conversation, or call `opened`: the peer has proved itself."""

    @abstractmethod
    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        """Take frames of the peer."""

    @abstractmethod
    def on_failure(self, error: Exception) -> int | None:
        """Return after how many ms to dial again; None: not before there is another need."""

    @abstractmethod
    def on_broken(self, error: Exception) -> None:
        """Hear that the open connection has ended."""

    @abstractmethod
    def on_tick(self, now_ms: int) -> bool:
        """Look whether the peer is there; return whether to look again after an interval."""

    @abstractmethod
    def on_rest(self) -> None:
        """Hear that there is no connection, and no attempt to make one."""

    # -- what a subclass calls -------------------------------------------------------------

    def dial(self, after: Exception | None = None) -> None:
        if self._dialling is None:
            self._dialling = asyncio.get_running_loop().create_task(self._dial_often(after))

    def opened(self, protocol: WireProtocol) -> None:
        """Write from now on: the connection is of use."""
        self.open = protocol
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(None)
        self.flush()

    def flush(self) -> None:
        """Write up to one buffer full; the loop serves others before the next."""
        if self.open is None or self.open.paused or self.ended:
            return  # `on_writable` or the next connection goes on.
        buffers = self.next_buffers()
        if buffers:
            self.open.write(buffers)
            asyncio.get_running_loop().call_soon(self.flush)

    def start_ticking(self) -> None:
        """Call `on_tick` after each interval, unless that is done already."""
        if self._ticker is None:
            interval_s = self._limits.heartbeat_interval_ms / 1000
            self._ticker = asyncio.get_running_loop().call_later(interval_s, self._tick)

    def end(self) -> None:
        """Begin nothing more; close the connection, soon also if the other end is frozen."""
        self._stop()
        if self._newest is not None:
            self._newest.close()
            timeout_s = self._limits.close_timeout_ms / 1000
            asyncio.get_running_loop().call_later(timeout_s, self._newest.abort)

    async def close(self) -> None:
        """Begin nothing more; send the rest, then close, at once if nobody reads it."""
        self._stop()
        if self._dialling is not None:
            await asyncio.wait([self._dialling])
        if self._newest is not None:
            protocol, timeout_s = self._newest, self._limits.close_timeout_ms / 1000
            protocol.close()
            await asyncio.wait([protocol.closed], timeout=timeout_s)
            protocol.abort()
            await asyncio.wait([protocol.closed], timeout=timeout_s)

    # -- dialling --------------------------------------------------------------------------

    async def _dial_often(self, error: Exception | None) -> None:
        """Dial until the connection is of use, or hopeless, or not needed any more."""
        try:
            while error is None or await self._pause_after(error):
                if self.ended or self.open is not None or not self.is_needed:
                    break
                error = await self._dial_once()
        finally:
            self._dialling = None
        if self.open is None and not self.ended:
            self.on_rest()

    async def _dial_once(self) -> Exception | None:
        """Return None if the connection is of use now."""
        loop = asyncio.get_running_loop()
        self._outcome = loop.create_future()
        new_protocol = partial(
            client_protocol,
            self._credentials,
            self,
            self._limits,
            host=self._host_port[0],
            purpose=self._purpose,
            follow=self._follow,
        )
        try:
            async with asyncio.timeout(self._limits.handshake_timeout_ms / 1000):
                await loop.create_connection(new_protocol, *self._host_port)
                return await self._outcome
        except TimeoutError:
            error = ConnectionLost(f"no answer in {self._limits.handshake_timeout_ms} ms")
        except OSError as failure:
            return failure
        if self._newest is not None:
            self._newest.abort()
        return error

    async def _pause_after(self, error: Exception) -> bool:
        """Wait before the next attempt; return False if there is to be none."""
        pause_ms = None if self.ended else self.on_failure(error)
        if pause_ms is None:
            return False
        await asyncio.sleep(pause_ms / 1000)
        return True

    def _stop(self) -> None:
        self.ended = True
        if self._ticker is not None:
            self._ticker.cancel()
        if self._dialling is not None and self._dialling is not asyncio.current_task():
            self._dialling.cancel()

    def _tick(self) -> None:
        self._ticker = None
        if not self.ended and self.on_tick(monotonic_ms()):
            self.start_ticking()

    # -- what the socket tells -------------------------------------------------------------

    def on_connected(self, protocol: WireProtocol) -> None:
        self._newest = protocol
        if self.ended:
            protocol.abort()

    def on_writable(self, protocol: WireProtocol) -> None:
        self.flush()

    def on_closed(self, protocol: WireProtocol, error: ProtocolError | ConnectionLost) -> None:
        if protocol is not self._newest:
            return
        self._newest = None
        was_open, self.open = self.open is not None, None
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(error)
        elif was_open and not self.ended:
            self.on_broken(error)


def is_refusal(error: Exception) -> bool:
    """Tell whether nobody listens, at none of the addresses that a host name has."""
    if isinstance(error, ConnectionRefusedError):
        return True
    causes = set(re.findall(r"\[Errno (\d+)\]", str(error)))
    return isinstance(error, OSError) and causes == {str(errno.ECONNREFUSED)}
