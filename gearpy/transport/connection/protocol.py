"""One connection of `gearpy.wire` on one asyncio socket. Runs on: the loop thread."""

import asyncio
import secrets
import socket
from collections.abc import Iterable
from typing import Final, Protocol, cast

from gearpy.clocks import monotonic_ms
from gearpy.errors import ConnectionLost, ProtocolError
from gearpy.transport.api import TransportLimits
from gearpy.transport.security.credentials import Shown, credentials_of
from gearpy.transport.security.tls import TlsPipe
from gearpy.wire.connection.auth import NONCE_BYTES, Purpose, Role
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.machine import (
    Authenticated,
    Connection,
    ConnectionClosed,
)

#: The text for a connection that ended before TLS was agreed on.
NO_TLS_THERE = (
    "the peer closed the connection during the TLS handshake: "
    'is transport.tls = "on" there, too, with a certificate of the same authority?'
)


_KEEPALIVE_PROBES: Final = 3
_KEEPALIVE_S_MAX: Final = 32_767  # More is refused by Linux.


def new_connection(
    role: Role,
    shown: Shown,
    limits: TransportLimits,
    purpose: Purpose = Purpose.LINK,
    *,
    follow: bool = False,
) -> Connection:
    return Connection(
        role=role,
        keys=credentials_of(shown).keys,
        nonce=secrets.token_bytes(NONCE_BYTES),
        now_ms=monotonic_ms(),
        purpose=purpose,
        follow=follow,
        frames=limits.frames,
        handshake=limits.handshake,
    )


class SocketOwner(Protocol):
    """The owner of a `WireProtocol`. All calls on the loop thread; `on_closed` once and last."""

    def on_connected(self, protocol: "WireProtocol") -> None:
        """The socket is connected; nothing is proved yet."""
        ...

    def on_authenticated(self, protocol: "WireProtocol") -> None:
        """Frames may be sent."""
        ...

    def on_frames(self, protocol: "WireProtocol", frames: list[Frame]) -> None:
        """Frames have arrived; a `ProtocolError` raised here closes the connection."""
        ...

    def on_writable(self, protocol: "WireProtocol") -> None:
        """Written bytes have drained far enough to go on."""
        ...

    def on_closed(self, protocol: "WireProtocol", error: ProtocolError | ConnectionLost) -> None:
        """The socket is closed."""
        ...


class WireProtocol(asyncio.Protocol):
    """Moves bytes between a socket and a `Connection`; reports events to its owner."""

    def __init__(
        self,
        connection: Connection,
        owner: SocketOwner,
        limits: TransportLimits,
        tls: TlsPipe | None = None,
    ) -> None:
        self.connection = connection
        self.paused = False
        self.closed = asyncio.get_running_loop().create_future()
        self._owner = owner
        self._limits = limits
        self._tls = tls
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._error: ProtocolError | ConnectionLost | None = None

    def write(self, buffers: Iterable[bytes | memoryview]) -> None:
        """Send buffers one after the other; does nothing once the socket is closing."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._tls is None:
            self._transport.writelines(buffers)
        else:
            self._tls.send(b"".join(buffers))
            self._flush_tls()

    def tick(self) -> None:
        self.connection.on_tick(monotonic_ms())
        self._after_input()

    def close(self, error: ProtocolError | ConnectionLost | None = None) -> None:
        """Close the socket when all written bytes are sent."""
        self._error = self._error or error
        if self._transport is None:
            return
        if self._tls is not None and not self._transport.is_closing():
            self._tls.close()
            self._flush_tls()
        self._transport.close()

    def abort(self, error: ProtocolError | ConnectionLost | None = None) -> None:
        self._error = self._error or error
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio calls these ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # It is cast, as uvloop's transports are of another class.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)
        _tune(transport.get_extra_info("socket"), self._limits.heartbeat_timeout_ms)
        timeout_s = self._limits.handshake_timeout_ms / 1000
        self._deadline = asyncio.get_running_loop().call_later(timeout_s, self._on_deadline)
        self._owner.on_connected(self)
        self._after_input()

    def data_received(self, data: bytes) -> None:
        if self._tls is not None:
            try:
                data = self._tls.receive(data)
            except ProtocolError as error:
                self._flush_tls()  # The alert, so that the peer knows why.
                self.close(error)
                data = b""
            else:
                self._flush_tls()
        self.connection.receive_data(data, monotonic_ms())
        self._after_input()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._error = self._error or ConnectionLost(str(exc))
        if self._tls is not None and not self._tls.ready:
            self._error = self._error or ConnectionLost(NO_TLS_THERE)
        self.connection.receive_eof()
        self._after_input()
        self._cancel_deadline()
        if not self.closed.done():
            self.closed.set_result(None)
        self._owner.on_closed(self, self._error or ConnectionLost("the connection was closed"))

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._owner.on_writable(self)

    # --------------------------------------------------------------------------------------

    def _on_deadline(self) -> None:
        # The loop's clock may be a little behind the one we read: the deadline has passed.
        self.connection.on_tick(self.connection.deadline_ms or 0)
        self._after_input()
        if not self.connection.authenticated:
            self.abort()

    def _flush_tls(self) -> None:
        assert self._tls is not None
        assert self._transport is not None
        data = self._tls.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _after_input(self) -> None:
        """Send the answers to the last input, and report its events."""
        data = self.connection.data_to_send()
        if data:
            self.write([data])
        try:
            frames: list[Frame] = []
            for event in self.connection.events():
                if isinstance(event, Frame):
                    frames.append(event)
                elif isinstance(event, Authenticated):
                    self._cancel_deadline()
                    self._owner.on_authenticated(self)
                elif isinstance(event, ConnectionClosed):
                    self.close(event.error)
            if frames and not (self._transport is None or self._transport.is_closing()):
                self._owner.on_frames(self, frames)
        except ProtocolError as error:
            self.close(error)
            if self.paused:
                self.abort()  # It does not read, so it would never be closed in order.

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


def client_protocol(
    shown: Shown,
    owner: SocketOwner,
    limits: TransportLimits,
    *,
    host: str,
    purpose: Purpose = Purpose.LINK,
    follow: bool = False,
) -> WireProtocol:
    """Return the protocol of a socket that is connected to ``host``.

    ``follow``: see `Connection`; then look at `Connection.principal` before the peer is believed.
    """
    tls = credentials_of(shown).tls
    connection = new_connection(Role.CLIENT, shown, limits, purpose, follow=follow)
    return WireProtocol(connection, owner, limits, None if tls is None else tls.client_pipe(host))


def server_protocol(shown: Shown, owner: SocketOwner, limits: TransportLimits) -> WireProtocol:
    tls = credentials_of(shown).tls
    connection = new_connection(Role.SERVER, shown, limits)
    return WireProtocol(connection, owner, limits, None if tls is None else tls.server_pipe())


def _tune(sock: socket.socket | None, timeout_ms: int) -> None:
    """Send small frames at once; notice in time that a peer's machine, or the way to it, is gone.

    The system finds it, also while this process is busy, if written bytes are not acknowledged,
    or after half the time if there are none.
    """
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    half_s = min(max(1, timeout_ms // 2000), _KEEPALIVE_S_MAX)
    options = {
        "TCP_USER_TIMEOUT": timeout_ms,
        "TCP_KEEPIDLE": half_s,
        "TCP_KEEPINTVL": max(1, half_s // _KEEPALIVE_PROBES),
        "TCP_KEEPCNT": _KEEPALIVE_PROBES,
    }
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
