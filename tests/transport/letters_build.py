"""Processes that write to each other, and a client that does so by hand."""

import queue
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeAlias

from msgspec.structs import replace

from gearpy.messages.peer import Letter, PeerMessage
from gearpy.transport.api import TransportLimits, split_address
from gearpy.transport.letters.peers import LetterPeers
from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.security.credentials import Credentials
from gearpy.wire.codec import decode_peer, encode_peer
from gearpy.wire.connection.auth import NONCE_BYTES, Purpose, Role
from gearpy.wire.connection.frames import Frame, FrameLimits
from gearpy.wire.connection.keys import KeyRing
from gearpy.wire.connection.machine import Connection
from tests.transport.build import PATIENCE_S, SECRET
from tests.transport.fault_proxy import FaultProxy, Network

PATIENT = TransportLimits(
    handshake_timeout_ms=300, close_timeout_ms=300, reconnect_base_ms=5, reconnect_max_ms=20
)
QUICK = replace(PATIENT, heartbeat_interval_ms=50, heartbeat_timeout_ms=400)


class Process:
    def __init__(
        self,
        limits: TransportLimits = PATIENT,
        *,
        port: int = 0,
        shown: Credentials | bytes = SECRET,
        serve: bool = True,
        hostname: str = "",
    ) -> None:
        self.letters: queue.SimpleQueue[tuple[str, Letter]] = queue.SimpleQueue()
        self.losses: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.is_frozen = False
        self.transport = TcpTransport(shown, port=port, limits=limits)
        self.address = self.transport.start()
        self.nodes: LetterPeers = self.transport.serve_peers(hostname=hostname)
        self.node = self.nodes.node
        if serve:
            self.serve()

    def serve(self) -> None:
        self.nodes.serve(lambda sender, letter: self.letters.put((sender, letter)))

    def tell(self, node: str, body: bytes = b"hello") -> bool:
        return self.nodes.send(node, to="x", body=body)

    def take(self, wanted: int = 1) -> list[bytes]:
        return [self.letters.get(timeout=PATIENCE_S)[1].body for _ in range(wanted)]

    def watch(self, node: str, key: object = "watcher") -> None:
        self.nodes.watch(node, key, self.losses.put)

    def lost(self) -> str:
        return self.losses.get(timeout=PATIENCE_S)

    def freeze(self) -> threading.Event:
        """Hold up the loop, as SIGSTOP does, until the event that is returned is set."""
        thaw, frozen = threading.Event(), threading.Event()
        self.is_frozen = True

        def hold() -> None:
            frozen.set()
            thaw.wait(PATIENCE_S)
            self.is_frozen = False

        self.transport._loop.call_soon(hold)  # noqa: SLF001 - nothing else stands for a signal
        assert frozen.wait(PATIENCE_S)
        return thaw


Make: TypeAlias = Callable[..., Process]


def proxied(network: Network, process: Process, *, frames: bool = True) -> tuple[FaultProxy, str]:
    """Return a proxy to a process, and the process's node as seen through it."""
    proxy = network.proxy(process.address, frames=frames)
    return proxy, process.node.replace(process.address, proxy.address)


class Raw:
    def __init__(self, stack: ExitStack, address: str) -> None:
        self._sock = socket.create_connection(split_address(address), PATIENCE_S)
        stack.enter_context(self._sock)
        self._connection = Connection(
            role=Role.CLIENT,
            keys=KeyRing.of_cluster(SECRET),
            nonce=bytes(NONCE_BYTES),
            now_ms=0,
            purpose=Purpose.PEER,
        )
        self._heard: list[PeerMessage] = []
        self._sock.sendall(self._connection.data_to_send())
        while not self._connection.authenticated:
            self._receive()
        self._connection.events()

    def say(self, *messages: PeerMessage) -> None:
        frames = [encode_peer(message, FrameLimits()) for message in messages]
        self._sock.sendall(b"".join(buffer for frame in frames for buffer in frame))

    def hear(self, wanted: int = 1) -> list[PeerMessage]:
        """Wait for messages; fewer when the connection has ended."""
        while len(self._heard) < wanted and self._receive():
            frames = [event for event in self._connection.events() if isinstance(event, Frame)]
            self._heard += [decode_peer(frame) for frame in frames]
        heard, self._heard = self._heard[:wanted], self._heard[wanted:]
        return heard

    def _receive(self) -> bool:
        data = self._sock.recv(65_536)
        self._connection.receive_data(data, 1)
        self._sock.sendall(self._connection.data_to_send())
        return bool(data)


def a_letter(number: int) -> Letter:
    return Letter(number=number, to="x", body=b"%d" % number)


def maker(stack: ExitStack) -> Make:
    def make(*args: Any, **kwargs: Any) -> Process:
        process = Process(*args, **kwargs)
        stack.callback(process.transport.stop)
        return process

    return make
