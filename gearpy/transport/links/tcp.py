"""The transport between processes: TCP with proof of a shared key, and TLS where configured."""

import asyncio
import logging
import threading

from gearpy.errors import CannotTravel, ConfigError
from gearpy.messages.data import LinkMessage
from gearpy.transport.api import (
    LinkLost,
    TransportLimits,
)
from gearpy.transport.letters.answers import ClientServer, ControlAllows, ControlHandler
from gearpy.transport.letters.peers import LetterPeers
from gearpy.transport.links.listener import Listener
from gearpy.transport.links.peer import LinkPeer
from gearpy.transport.links.routes import RoutedTransport
from gearpy.transport.loop.loop import LoopThread
from gearpy.transport.security.credentials import Shown, credentials_of, is_loopback
from gearpy.wire.connection.frames import Frame
from gearpy.wire.link_codec import LinkCodec
from gearpy.wire.values.records import DEFAULT_REGISTRY

_log = logging.getLogger(__name__)


class TcpTransport(RoutedTransport):
    """A `Transport` with one listener, and one connection to each peer it sends to.

    Senders encode on their own threads; the loop thread writes what they have queued. Tasks of
    this transport hand messages to each other by reference, on the sender's thread.

    Runs on: any thread, except `start` and `stop`, which wait for the loop thread.
    Restart: none; make a new one.
    """

    def __init__(
        self,
        shown: Shown,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        listen_host: str = "",
        limits: TransportLimits = TransportLimits(),  # noqa: B008 - frozen
        loop: LoopThread | None = None,
        on_link_lost: LinkLost | None = None,
    ) -> None:
        """Prepare a transport; port 0 lets the system choose.

        ``host`` is what others know it by; it listens there, unless at ``listen_host``.
        ``loop`` may be shared with others and is then not stopped.

        Raises:
            ConfigError: ``host`` is beyond this machine and that was not allowed, see
                `Credentials.check_host`.
        """
        super().__init__()
        self._credentials = credentials_of(shown)
        self._credentials.check_host(host, listen_host)
        self._host, self._port = host, port
        self._listen_host = listen_host or host
        self._limits = limits
        self._codec = LinkCodec(DEFAULT_REGISTRY, limits.frames)
        self._owns_loop = loop is None
        self._loop = loop or LoopThread()
        self._on_link_lost = on_link_lost or (lambda *_: None)
        self._listener = Listener(
            self._credentials,
            limits=limits,
            on_frames=self._on_frames,
        )
        self._lock = threading.Lock()  # It guards `_peers`, `_running` and `_stopped`.
        self._peers: dict[str, LinkPeer] = {}
        self._letters: LetterPeers | None = None
        self._running = False
        self._stopped = False

    @property
    def address(self) -> str:
        return _address(self._host, self._port)

    def start(self) -> str:
        if self._owns_loop:
            self._loop.start()
        try:
            bound, self._port = self._loop.call(self._listener.start(self._listen_host, self._port))
        except OSError as error:
            if self._owns_loop:
                self._loop.stop()
            place = _address(self._listen_host, self._port)
            raise ConfigError(f"cannot listen on {place}: {error}") from error
        if is_loopback(bound) and not is_loopback(self._listen_host):
            _log.warning(
                "%s is %s on this machine: others cannot reach what listens there; set "
                "listen-host = 0.0.0.0",
                self._listen_host,
                bound,
            )
        with self._lock:
            self._running = not self._stopped
        return self.address

    def stop(self) -> None:
        with self._lock:
            if self._stopped:
                return
            self._stopped, self._running = True, False
            peers = list(self._peers.values())
        if self._letters is not None:
            self._letters.stop()
        if self._loop.running:
            self._loop.call(self._close(peers))
        if self._owns_loop:
            self._loop.stop()

    def serve_control(self, handler: ControlHandler, allows: ControlAllows | None = None) -> None:
        """Answer control messages on the same listener with the result of ``handler``.

        It is called on worker threads, by several at once. ``allows`` decides which principal may
        send which message; without it, only holders of the own key of this process may.
        """
        assert self._listener.clients is None, "one handler for clients"
        own = self._credentials.keys.own
        allows = allows or (lambda principal, _: principal == own)
        self._listener.clients = ClientServer(handler, self._loop, self._limits, allows)

    def serve_peers(self, *, hostname: str = "") -> LetterPeers:
        """Return the carrier of letters to and from this process; after `start`, once.

        ``hostname`` is this host as others see it; the one that is listened on if not given.
        """
        assert self._running, "the port is part of the node: start first"
        assert self._letters is None, "a process is one node"
        self._letters = LetterPeers(
            _address(hostname or self._host, self._port),
            self._credentials,
            loop=self._loop,
            limits=self._limits,
        )
        self._listener.letters = self._letters.server
        return self._letters

    def _send_to(self, address: str, messages: list[LinkMessage]) -> None:
        peer = self._peers.get(address) or self._new_peer(address)
        if peer is None:
            return
        for at, message in enumerate(messages):
            try:
                peer.enqueue(self._codec.encode(message, peer.version))
            except CannotTravel as error:
                error.unsent = messages[at:]
                raise

    def _new_peer(self, address: str) -> LinkPeer | None:
        """Return the peer with an address, made if need be; None unless this transport runs."""
        with self._lock:
            if self._running and address not in self._peers:
                self._peers[address] = LinkPeer(
                    address,
                    self._credentials,
                    loop=self._loop,
                    limits=self._limits,
                    on_lost=self._on_link_lost,
                )
            return self._peers.get(address)

    # -- on the loop thread ----------------------------------------------------------------

    def _on_frames(self, frames: list[Frame]) -> None:
        here, elsewhere = self.split([self._codec.decode(frame) for frame in frames])
        for handler, batch in here:
            try:
                handler(batch)
            except Exception:  # noqa: BLE001 - one handler must not end what others use
                _log.exception("a handler refused %d messages", len(batch))
        for unknown in elsewhere.values():
            self.log_unknown(unknown)

    async def _close(self, peers: list[LinkPeer]) -> None:
        await asyncio.gather(*(peer.close() for peer in peers), self._listener.close())


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
