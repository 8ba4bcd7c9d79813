"""Transports of one process: messages are handed over by reference."""

import logging
import threading

from gearpy.messages.data import LinkMessage
from gearpy.transport.api import LinkLost
from gearpy.transport.links.routes import RoutedTransport

_log = logging.getLogger(__name__)
_SCHEME = "memory:"


class MemoryHub:
    """The place where the transports of one process find each other. Runs on: any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._transports: dict[str, MemoryTransport] = {}

    def find(self, address: str) -> "MemoryTransport | None":
        return self._transports.get(address)

    def add(self, transport: "MemoryTransport") -> None:
        with self._lock:
            assert transport.address not in self._transports, f"{transport.address} runs twice"
            self._transports[transport.address] = transport

    def remove(self, transport: "MemoryTransport") -> None:
        with self._lock:
            if self._transports.get(transport.address) is transport:
                del self._transports[transport.address]


class MemoryTransport(RoutedTransport):
    """A `Transport` whose peers are in the same process.

    Handlers are called on the sender's thread. Bytes are not counted, as there are none.

    Runs on: any thread.
    """

    def __init__(self, hub: MemoryHub, name: str, *, on_link_lost: LinkLost | None = None) -> None:
        super().__init__()
        self._hub = hub
        self._address = _SCHEME + name
        self._on_link_lost = on_link_lost
        self._lost: set[str] = set()

    @property
    def address(self) -> str:
        return self._address

    def start(self) -> str:
        self._hub.add(self)
        return self._address

    def stop(self) -> None:
        self._hub.remove(self)

    def _send_to(self, address: str, messages: list[LinkMessage]) -> None:
        peer = self._hub.find(address)
        if peer is None:
            if address not in self._lost:
                self._lost.add(address)
                _log.info("link to %s lost: nothing runs there", address)
                if self._on_link_lost is not None:
                    self._on_link_lost(address, "nothing runs there")
            return
        self._lost.discard(address)
        peer.receive(messages)

    def receive(self, messages: list[LinkMessage]) -> None:
        here, elsewhere = self.split(messages)
        for handler, batch in here:
            handler(batch)
        for batch in elsewhere.values():
            self.log_unknown(batch)
