"""Accepts connections and passes on what authenticated peers send."""

import asyncio
import logging
from collections.abc import Callable

from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.transport.api import TransportLimits
from gearpy.transport.connection.protocol import WireProtocol, server_protocol
from gearpy.transport.letters.answers import ClientServer
from gearpy.transport.letters.server import LetterServer
from gearpy.transport.security.credentials import Shown, credentials_of
from gearpy.wire.connection.auth import Purpose
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.receipts import encode_receipt

_log = logging.getLogger(__name__)


class Listener:
    """One listening socket for links, letters and the questions of clients.

    Invariant: at most ``unauthenticated_max`` connections have not proved themselves. When one
    more comes the oldest of them is closed: who knows the secret proves it within moments, so
    connections that say nothing keep nobody out.

    Runs on: the loop thread.
    """

    def __init__(
        self,
        shown: Shown,
        *,
        limits: TransportLimits,
        on_frames: Callable[[list[Frame]], None],
    ) -> None:
        self.clients: ClientServer | None = None
        self.letters: LetterServer | None = None
        self._credentials = credentials_of(shown)
        self._limits = limits
        self._on_link_frames = on_frames
        self._server: asyncio.Server | None = None
        self._protocols: set[WireProtocol] = set()
        self._unproved: dict[WireProtocol, None] = {}  # Oldest first.
        self._closing = False
        self._ticker: asyncio.TimerHandle | None = None
        self._seen: dict[WireProtocol, int] = {}  # Bytes of frames, when it was last looked at.

    async def start(self, host: str, port: int) -> tuple[str, int]:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: server_protocol(self._credentials, self, self._limits), host, port
        )
        self._plan_tick()
        bound: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return bound

    async def close(self) -> None:
        self._closing = True
        if self._ticker is not None:
            self._ticker.cancel()
        if self._server is not None:
            self._server.close()
        if self.clients is not None:
            self.clients.close()
        for protocol in self._protocols:
            protocol.close()
        await self._wait_closed()
        for protocol in self._protocols:
            protocol.abort()
        await self._wait_closed()

    async def _wait_closed(self) -> None:
        if self._protocols:
            closed = [protocol.closed for protocol in self._protocols]
            await asyncio.wait(closed, timeout=self._limits.close_timeout_ms / 1000)

    # -- what is on its way ----------------------------------------------------------------

    def _plan_tick(self) -> None:
        interval_s = self._limits.heartbeat_interval_ms / 1000
        self._ticker = asyncio.get_running_loop().call_later(interval_s, self._tick)

    def _tick(self) -> None:
        self._plan_tick()
        for protocol in list(self._seen):
            protocol.tick()
            arrived = protocol.connection.frame_bytes_in
            if self._seen.get(protocol, arrived) != arrived:
                self._seen[protocol] = arrived
                connection = protocol.connection
                if connection.purpose is Purpose.LINK and not protocol.paused:
                    protocol.write(encode_receipt(arrived, self._limits.frames))
                elif connection.held_bytes and self.letters is not None:
                    self.letters.reassure(protocol)

    # -- what sockets tell -----------------------------------------------------------------

    def on_connected(self, protocol: WireProtocol) -> None:
        self._protocols.add(protocol)
        self._unproved[protocol] = None
        if self._closing:  # It was accepted just before.
            protocol.abort()
        elif len(self._unproved) > self._limits.unauthenticated_max:
            oldest = next(iter(self._unproved))
            del self._unproved[oldest]
            oldest.abort()

    def on_authenticated(self, protocol: WireProtocol) -> None:
        connection = protocol.connection
        own = self._credentials.keys.own
        if connection.purpose is Purpose.LINK and connection.principal != own:
            raise AuthenticationFailed(
                f"{connection.principal} may not send records to a process of {own}"
            )
        self._unproved.pop(protocol, None)
        self._seen[protocol] = 0

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        if protocol.connection.purpose is Purpose.LINK:
            self._on_link_frames(frames)
        elif protocol.connection.purpose is Purpose.PEER:
            if self.letters is None:
                raise ProtocolError("this process takes no letters")
            self.letters.on_frames(protocol, frames)
        elif self.clients is not None:
            self.clients.on_frames(protocol, frames)
        else:
            raise ProtocolError("this process answers no questions")

    def on_writable(self, protocol: WireProtocol) -> None:
        """Nothing waits: answers are written as they come."""

    def on_closed(self, protocol: WireProtocol, error: ProtocolError | ConnectionLost) -> None:
        self._protocols.discard(protocol)
        self._seen.pop(protocol, None)
        if self.letters is not None:
            self.letters.on_closed(protocol)
        self._unproved.pop(protocol, None)
        if isinstance(error, ProtocolError):
            _log.warning("connection closed: %s", error)
