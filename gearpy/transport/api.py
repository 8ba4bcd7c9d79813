"""The interface of transports, which carry link messages between tasks wherever they run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from gearpy.errors import ConfigError
from gearpy.ids import ActorPath, TaskId
from gearpy.messages.data import LinkMessage
from gearpy.messages.peer import Letter
from gearpy.wire.connection.frames import FrameLimits
from gearpy.wire.connection.machine import HandshakeLimits

#: Takes the messages of one target, in order. Called on the transport's thread or that of a
#: local sender, also by several at once: it must only enqueue.
LinkHandler: TypeAlias = Callable[[list[LinkMessage]], None]

#: Told the address and the reason when a peer is lost. Called on any thread: it must only enqueue.
LinkLost: TypeAlias = Callable[[str, str], None]

#: Takes the sender's node and a letter. Called in order for each sender, on the transport's
#: thread: it must only enqueue.
TakeLetter: TypeAlias = Callable[[str, Letter], None]

#: Told the reason when a node is lost. Called on any thread: it must only enqueue.
PeerLost: TypeAlias = Callable[[str], None]


class TransportLimits(Struct, frozen=True, kw_only=True):
    """Every limit of a transport; the configuration sets few of them."""

    frame_bytes_max: int = 16 << 20
    control_frame_bytes_max: int = 1 << 20
    handshake_timeout_ms: int = 3000
    handshake_bytes_max: int = 512
    unauthenticated_max: int = 64
    write_buffer_bytes: int = 1 << 20
    queue_bytes_max: int = 256 << 20  # Messages to one peer above it are dropped, counted ...
    # ... and letters are not: the node counts as lost.
    reconnect_base_ms: int = 100
    reconnect_max_ms: int = 1000
    reconnect_retries: int = 30
    control_in_flight_max: int = 64
    control_threads: int = 4
    close_timeout_ms: int = 1000  # Then what a peer has not read by then is given up.
    heartbeat_interval_ms: int = 1000  # Between two looks at what is on its way ...
    heartbeat_timeout_ms: int = 6000  # ... and a connection on which nothing arrives is lost.
    letters_max: int = 100_000  # A node that has not taken more counts as lost.
    senders_max: int = 10_000  # Conversations that can be resumed.
    fenced_max: int = 100_000  # Peers that are refused; the oldest are forgotten.

    @property
    def frames(self) -> FrameLimits:
        return FrameLimits(
            data_bytes_max=self.frame_bytes_max,
            control_bytes_max=self.control_frame_bytes_max,
            stall_ms=self.heartbeat_timeout_ms,
        )

    @property
    def handshake(self) -> HandshakeLimits:
        return HandshakeLimits(
            timeout_ms=self.handshake_timeout_ms, bytes_max=self.handshake_bytes_max
        )


class Transport(Protocol):
    """Carries link messages to tasks by their id.

    Messages from one source task to one target task arrive in the order they were sent, or,
    when a connection breaks, not at all: the counts of flow control find the loss. Nothing
    is ever sent again.

    Runs on: any thread.
    """

    @property
    def address(self) -> str:
        """The address at which peers reach this transport: ``host:port`` or ``memory:name``."""
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
        """Hand messages to their targets or to the links that lead there; never blocks."""
        ...


class Peers(Protocol):
    """Carries letters to other processes, and tells when one of them is lost.

    Letters to one node arrive in the order they were sent, each once, also when connections
    break; or the node is lost. A node with incarnation is lost for ever: it is fenced, so that
    nothing it says later is heard. A text without incarnation means any process there: when that
    one is lost, watchers are told, and what is sent later goes to the next one.

    Runs on: any thread.
    """

    @property
    def node(self) -> str:
        """The node by which other processes know this one."""
        ...

    def serve(self, deliver: TakeLetter) -> None:
        """Hand on letters for this process from now on; once."""
        ...

    def send(
        self,
        node: str,
        *,
        to: str,
        body: bytes,
        reply_to: ActorPath | None = None,
        ask: int = 0,
        answers: int = 0,
    ) -> bool:
        """Send a letter to actor ``to`` of a node; False: it is lost. Never blocks.

        Raises:
            ConfigError: the letter is larger than a frame may be.
        """
        ...

    def watch(self, node: str, key: object, lost: PeerLost) -> None:
        """Call ``lost`` once when a node is lost, at once if it is; replaces that of this key."""
        ...

    def unwatch(self, node: str, key: object) -> None:
        """Undo `watch`; a call may be under way already."""
        ...

    def fence(self, node: str) -> None:
        """Give up a node with incarnation: refuse and count all that it says from now on."""
        ...


def split_address(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004
        raise ConfigError(f"{address!r} is no address: write host:port")
    return host.strip("[]"), int(port)
