"""What a transport is: it carries link messages between tasks, wherever they run."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from gearpy.errors import ConfigError
from gearpy.ids import TaskId
from gearpy.messages.data import LinkMessage
from gearpy.wire.connection import HandshakeLimits
from gearpy.wire.frames import FrameLimits

__all__ = [
    "Counters",
    "LinkHandler",
    "LinkLost",
    "Transport",
    "TransportLimits",
    "TransportStats",
    "split_address",
]

#: Takes the messages of one target, in order. Called on the transport's thread or that of a
#: local sender, also by several at once: it must only enqueue.
LinkHandler: TypeAlias = Callable[[list[LinkMessage]], None]

#: Told the address and the reason when a peer is lost. Called on any thread: it must only enqueue.
LinkLost: TypeAlias = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportLimits:
    """Every limit of a transport. The configuration has the same keys and reasons."""

    frame_bytes_max: int = 16 << 20
    control_frame_bytes_max: int = 1 << 20
    handshake_timeout_ms: int = 3000
    handshake_bytes_max: int = 512
    unauthenticated_max: int = 64
    write_buffer_bytes: int = 1 << 20
    queue_bytes_max: int = 256 << 20  # Of one peer; above it messages are dropped and counted.
    reconnect_base_ms: int = 100
    reconnect_max_ms: int = 1000
    reconnect_retries: int = 30
    control_in_flight_max: int = 64
    control_threads: int = 4
    close_timeout_ms: int = 1000  # Then what a peer has not read by then is given up.

    @property
    def frames(self) -> FrameLimits:
        """Return the limits of the frames on a connection."""
        return FrameLimits(
            data_bytes_max=self.frame_bytes_max, control_bytes_max=self.control_frame_bytes_max
        )

    @property
    def handshake(self) -> HandshakeLimits:
        """Return the limits of a connection that has not proved itself."""
        return HandshakeLimits(
            timeout_ms=self.handshake_timeout_ms, bytes_max=self.handshake_bytes_max
        )


@dataclass(slots=True, kw_only=True)
class TransportStats:
    """What a transport has done since it was made. Local deliveries are not counted.

    ``dropped_unknown``: messages to a task that is not where it should be.
    ``dropped_lost``: messages dropped with a broken or overfull connection before they were
    written; what was on its way then is known only to flow control.
    """

    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    dropped_unknown: int = 0
    dropped_lost: int = 0
    reconnects: int = 0
    refused: int = 0  # Connections that ended before they had proved themselves.


class Counters:
    """The counters behind `TransportStats`. Runs on: any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stats = TransportStats()

    def add(self, **counts: int) -> None:
        """Add to the counters with these names."""
        with self._lock:
            for name, count in counts.items():
                setattr(self._stats, name, getattr(self._stats, name) + count)

    def snapshot(self) -> TransportStats:
        """Return the counters as they are now."""
        with self._lock:
            return replace(self._stats)


class Transport(Protocol):
    """Carries link messages to tasks by their id.

    Messages from one source task to one target task arrive in the order they were sent, or,
    when a connection breaks, not at all: the counts of flow control find the loss. Nothing
    is ever sent again.

    Runs on: any thread.
    """

    @property
    def address(self) -> str:
        """Where peers reach this transport: ``host:port`` or ``memory:name``."""
        ...

    @property
    def stats(self) -> TransportStats:
        """What the transport has done so far."""
        ...

    def start(self) -> str:
        """Begin to accept messages; return the address."""
        ...

    def stop(self) -> None:
        """Close everything; messages that are still queued are dropped. May be called twice."""
        ...

    def register(self, task: TaskId, handler: LinkHandler) -> None:
        """Deliver messages for ``task`` to ``handler`` from now on."""
        ...

    def unregister(self, task: TaskId) -> None:
        """Drop and count messages for ``task`` from now on."""
        ...

    def locate(self, routes: Mapping[TaskId, str]) -> None:
        """Learn the addresses of the transports where tasks are registered; adds to earlier."""
        ...

    def send(self, messages: Sequence[LinkMessage]) -> None:
        """Hand messages to their targets or to the links that lead there; never blocks.

        Raises:
            ConfigError: a value in a message for another process cannot travel.
        """
        ...


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``host:port`` or ``[ipv6]:port``, or raise `ConfigError`."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004
        raise ConfigError(f"{address!r} is no address: write host:port")
    return host.strip("[]"), int(port)
