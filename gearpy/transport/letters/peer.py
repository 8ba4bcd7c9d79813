"""Letters to one other node: the connection, and whether anybody is there."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable

from gearpy.clocks import monotonic_ms
from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.ids import address_of, incarnation_of, is_same_node
from gearpy.messages.peer import Fenced, LettersTaken, PeerMessage, Pong, Welcome
from gearpy.transport.api import PeerLost, TransportLimits
from gearpy.transport.connection.protocol import WireProtocol
from gearpy.transport.connection.redial import Redial, is_refusal
from gearpy.transport.loop.loop import LoopThread
from gearpy.transport.security.credentials import Shown
from gearpy.wire.codec import decode_peer, encode_peer
from gearpy.wire.connection.auth import Purpose
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.keys import Principal
from gearpy.wire.connection.letters import Heartbeat, Outbox, Patience

_log = logging.getLogger(__name__)


class LetterPeer(Redial):
    """Sends the letters of an `Outbox`; connects when there is a need, and again when it breaks.

    There is a need while letters are not taken or somebody watches. Then the other end is asked
    for signs of life; if it is gone, `on_gone` is told once and nothing happens here any more.

    Runs on: the loop thread, but for `poke`, `is_needed`, and `ended`, which any thread may set.
    ``lock`` guards ``outbox`` and ``watchers``.
    """

    def __init__(
        self,
        node: str,
        outbox: Outbox,
        *,
        own: str,
        shown: Shown,
        loop: LoopThread,
        lock: threading.Lock,
        limits: TransportLimits,
        principal_of: Callable[[str], Principal | None],
        on_gone: Callable[["LetterPeer", str], None],
        on_idle: Callable[["LetterPeer"], None],
        on_given_up: Callable[[str], None],
    ) -> None:
        # A process of the cluster proves an application's key to its processes. A process at a
        # mere address must know our own.
        is_incarnated = bool(incarnation_of(node))
        super().__init__(address_of(node), shown, limits, Purpose.PEER, follow=is_incarnated)
        self.node = node
        self.outbox = outbox
        self.watchers: dict[object, PeerLost] = {}
        self.reached = ""  # The node that welcomed us last.
        self._own = own
        self._loop = loop
        self._lock = lock
        self._principal_of = principal_of
        self._on_gone, self._on_idle = on_gone, on_idle
        self._on_given_up = on_given_up
        self._heartbeat = Heartbeat(
            interval_ms=limits.heartbeat_interval_ms, timeout_ms=limits.heartbeat_timeout_ms
        )
        self._patience = Patience(
            base_ms=limits.reconnect_base_ms,
            max_ms=limits.reconnect_max_ms,
            is_incarnated=is_incarnated,
        )
        self._rng = random.Random()
        self._poked = self._beats = False
        self._trouble: Exception | None = None  # Why the last call or connection failed.
        self._progress: asyncio.Future[None] | None = None  # Somebody waits for letters taken.

    @property
    def is_needed(self) -> bool:
        return bool(self.watchers) or self.outbox.untaken > 0

    def poke(self) -> None:
        if not self._poked:
            self._poked = True
            self._loop.call_soon(self._wake)

    async def drain(self) -> None:
        while self.outbox.untaken and not self.ended and self._trouble is None:
            self._progress = asyncio.get_running_loop().create_future()
            await self._progress

    def end(self) -> None:
        self._tell_progress()
        super().end()

    async def close(self) -> None:
        self.ended = True
        self._tell_progress()
        await super().close()

    # -- what is needed --------------------------------------------------------------------

    def _wake(self) -> None:
        self._poked = False
        if self.ended or not self.is_needed:
            return
        if not self._beats:
            self._beats = True
            self._heartbeat.start(monotonic_ms())
            self.start_ticking()
        if self.open is not None:
            self.flush()
        else:
            self.dial()

    def on_tick(self, now_ms: int) -> bool:
        """Ask the other end for a sign of life; give it up if it was silent for too long."""
        ping = self._heartbeat.on_tick(now_ms) if self.is_needed else None
        silence = f"silent for {self._heartbeat.silent_ms(now_ms)} ms"
        self._beats = ping is not None
        if ping is None:
            if self.is_needed:
                error = self._trouble
                why = "" if error is None else f" ({str(error) or type(error).__name__})"
                self._give_up(silence + why)
        elif self.open is not None and self._heartbeat.is_doubtful:
            # It may be only this connection: another one has half of the time to find that out.
            self.open.abort(ConnectionLost(silence))
        elif self.open is not None and not self.open.paused:
            self._write(self.open, ping)
        return self._beats

    def next_buffers(self) -> list[bytes | memoryview]:
        assert self.open is not None, "asked while it is of use"
        version, limits = self.open.connection.version, self._limits
        with self._lock:
            letters = self.outbox.unsent(limits.write_buffer_bytes)
        return [part for each in letters for part in encode_peer(each, limits.frames, version)]

    def _write(self, protocol: WireProtocol, message: PeerMessage) -> None:
        protocol.write(encode_peer(message, self._limits.frames, protocol.connection.version))

    def _give_up(self, reason: str) -> None:
        if not self.ended:
            self.ended = True
            self._on_gone(self, reason)

    def _tell_progress(self) -> None:
        if self._progress is not None and not self._progress.done():
            self._progress.set_result(None)

    # -- what fails ------------------------------------------------------------------------

    def on_failure(self, error: Exception) -> int | None:
        """Return when to dial again; give the node up if nobody listens there any more."""
        _log.debug("cannot reach %s: %s", self.node, error)
        self._trouble = error
        self._tell_progress()
        pause_ms = self._patience.on_failure(self._rng, refused=is_refusal(error))
        if pause_ms is None:
            self._give_up(f"nobody listens at {address_of(self.node)} any more")
        return pause_ms

    def on_broken(self, error: Exception) -> None:
        if self.is_needed:
            _log.info("connection to %s broken: %s", self.node, error)
            self.dial(after=error)
        else:
            self._on_idle(self)

    def on_rest(self) -> None:
        """Have this peer forgotten, until the next letter."""
        self._on_idle(self)

    # -- what the other end says -----------------------------------------------------------

    def on_authenticated(self, protocol: WireProtocol) -> None:
        """Send the greeting, unless the node speaks for another principal than expected."""
        principal, expected = protocol.connection.principal, self._principal_of(self.node)
        if expected is not None and principal != expected:
            raise AuthenticationFailed(f"{self.node} speaks for {expected}, not for {principal}")
        with self._lock:
            greeting = self.outbox.greeting(sender=self._own, receiver=self.node)
        self._write(protocol, greeting)

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        self._heartbeat.on_heard(monotonic_ms())
        for frame in frames:
            if self.ended:
                break
            message = decode_peer(frame)
            match message:
                case Welcome() if self.open is None:
                    self._on_welcome(protocol, message)
                case Fenced(node=node, reason=reason, given_up=given_up):
                    text = f"{node} refuses this process: {reason}"
                    self._give_up(text)
                    if given_up:
                        self._on_given_up(text)
                case LettersTaken(number=number) if self.open is not None:
                    with self._lock:
                        self.outbox.on_taken(number)
                    self._on_progress()
                case Pong() if self.open is not None:
                    self._on_progress()
                case _:
                    raise ProtocolError(f"unexpected {type(message).__name__} from {self.node}")

    def _on_welcome(self, protocol: WireProtocol, welcome: Welcome) -> None:
        if incarnation_of(self.node) and not is_same_node(self.node, welcome.node):
            self._give_up(f"{welcome.node} is there now")
            return
        with self._lock:
            goes_on = self.outbox.on_welcome(welcome.taken)
        if not goes_on:
            self._give_up(f"{welcome.node} does not know any more which letters it has")
            return
        self.reached = welcome.node
        self._patience.on_welcome()
        self.opened(protocol)

    def _on_progress(self) -> None:
        self._trouble = None
        self._patience.on_progress()
        self._tell_progress()
