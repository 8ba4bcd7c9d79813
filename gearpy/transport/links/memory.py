"""Transports of one process: messages are handed over by reference."""

import logging
import threading
from collections.abc import Mapping, Sequence

from gearpy.ids import TaskId
from gearpy.messages.data import LinkMessage
from gearpy.transport.api import Counters, LinkHandler, LinkLost, TransportStats
from gearpy.transport.links.routes import Routes
from gearpy.wire.connection.frames import FrameDecoder, FrameLimits
from gearpy.wire.link_codec import LinkCodec

__all__ = ["MemoryHub", "MemoryTransport"]

_log = logging.getLogger(__name__)
_SCHEME = "memory:"


class MemoryHub:
    """Where the transports of one process find each other. Runs on: any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._transports: dict[str, MemoryTransport] = {}

    def find(self, address: str) -> "MemoryTransport | None":
        """Return the running transport with an address."""
        return self._transports.get(address)

    def add(self, transport: "MemoryTransport") -> None:
        """Let others find a transport."""
        with self._lock:
            assert transport.address not in self._transports, f"{transport.address} runs twice"
            self._transports[transport.address] = transport

    def remove(self, transport: "MemoryTransport") -> None:
        """Let others find it no more."""
        with self._lock:
            if self._transports.get(transport.address) is transport:
                del self._transports[transport.address]


class MemoryTransport:
    """A `Transport` whose peers are in the same process.

    Handlers are called on the sender's thread. With ``encode`` messages for other transports
    are turned into bytes and back on their way, as on a socket.

    Runs on: any thread.
    """

    def __init__(
        self,
        hub: MemoryHub,
        name: str,
        *,
        encode: bool = False,
        on_link_lost: LinkLost | None = None,
    ) -> None:
        self._hub = hub
        self._address = _SCHEME + name
        self._codec = LinkCodec() if encode else None
        self._routes = Routes()
        self._counters = Counters()
        self._on_link_lost = on_link_lost
        self._lost: set[str] = set()

    @property
    def address(self) -> str:
        """``memory:name``."""
        return self._address

    @property
    def stats(self) -> TransportStats:
        """What the transport has done so far; bytes are counted only with ``encode``."""
        return self._counters.snapshot()

    def start(self) -> str:
        """Let others find this transport; return its address."""
        self._hub.add(self)
        return self._address

    def stop(self) -> None:
        """Take no more messages."""
        self._hub.remove(self)

    def register(self, task: TaskId, handler: LinkHandler) -> None:
        """Deliver messages for ``task`` to ``handler`` from now on."""
        self._routes.register(task, handler)

    def unregister(self, task: TaskId) -> None:
        """Drop and count messages for ``task`` from now on."""
        self._routes.unregister(task)

    def locate(self, routes: Mapping[TaskId, str]) -> None:
        """Learn the addresses of the transports where tasks are registered."""
        self._routes.locate(routes)

    def send(self, messages: Sequence[LinkMessage]) -> None:
        """Hand messages to the handlers of their targets, on this thread."""
        here, elsewhere = self._routes.split(messages)
        for handler, batch in here:
            handler(batch)
        for address, batch in elsewhere.items():
            self._send_to(address, batch)

    def _send_to(self, address: str | None, messages: list[LinkMessage]) -> None:
        if address is None or address == self._address:
            self._counters.add(dropped_unknown=self._routes.log_unknown(messages))
            return
        peer = self._hub.find(address)
        if peer is None:
            self._lose(address, len(messages))
            return
        self._lost.discard(address)
        size = 0
        if self._codec is not None:
            messages, size = _over_the_wire(self._codec, messages)
        self._counters.add(frames_out=len(messages), bytes_out=size)
        peer.receive(messages, size)

    def receive(self, messages: list[LinkMessage], size: int) -> None:
        """Take messages from a peer, on its sender's thread."""
        self._counters.add(frames_in=len(messages), bytes_in=size)
        here, elsewhere = self._routes.split(messages)
        for handler, batch in here:
            handler(batch)
        for batch in elsewhere.values():
            self._counters.add(dropped_unknown=self._routes.log_unknown(batch))

    def _lose(self, address: str, messages: int) -> None:
        self._counters.add(dropped_lost=messages)
        if address not in self._lost:
            self._lost.add(address)
            _log.info("link to %s lost: nothing runs there", address)
            if self._on_link_lost is not None:
                self._on_link_lost(address, "nothing runs there")


def _over_the_wire(codec: LinkCodec, messages: list[LinkMessage]) -> tuple[list[LinkMessage], int]:
    """Return messages as a socket's other end would see them, and how many bytes they took."""
    data = b"".join([buffer for message in messages for buffer in codec.encode(message)])
    frames = FrameDecoder(FrameLimits()).feed(data)
    return [codec.decode(frame) for frame in frames], len(data)
