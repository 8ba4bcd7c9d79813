"""What this node says to one other: the connection, and whether anybody is there."""

import asyncio
import errno
import logging
import random
import re
import threading
from collections.abc import Callable
from typing import Protocol

from gearpy.errors import AuthenticationFailed, ConnectionLost, ProtocolError
from gearpy.ids import address_of, incarnation_of, is_same_node
from gearpy.messages.node import Fenced, LettersTaken, NodeMessage, Pong, Welcome
from gearpy.transport.api import NodeLimits, NodeLost, TransportLimits
from gearpy.transport.connection.protocol import SocketOwner, WireProtocol, monotonic_ms
from gearpy.transport.loop.loop import LoopThread
from gearpy.wire.codec import decode_node, encode_node
from gearpy.wire.connection.frames import Frame
from gearpy.wire.connection.keys import Principal
from gearpy.wire.connection.mail import Heartbeat, Outbox, Patience

__all__ = ["Dial", "NodeLink"]

_log = logging.getLogger(__name__)


class Dial(Protocol):
    """How to connect to an address; returns when the socket is there, nothing is proved yet."""

    async def __call__(self, address: str, owner: SocketOwner, *, follow: bool) -> None:
        """Connect. With ``follow`` the other end may name the key: look whose it is."""
        ...


class NodeLink:
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
        dial: Dial,
        loop: LoopThread,
        lock: threading.Lock,
        limits: NodeLimits,
        wire: TransportLimits,
        principal_of: Callable[[str], Principal | None],
        on_gone: Callable[["NodeLink", str], None],
        on_idle: Callable[["NodeLink"], None],
        on_given_up: Callable[[str], None],
    ) -> None:
        self.node = node
        self.outbox = outbox
        self.watchers: dict[object, NodeLost] = {}
        self.reached = ""  # The node that welcomed us last.
        self.reconnects = 0
        self.ended = False
        self._own = own
        self._dial = dial
        self._loop = loop
        self._lock = lock
        self._wire = wire
        self._principal_of = principal_of
        self._on_gone, self._on_idle = on_gone, on_idle
        self._on_given_up = on_given_up
        self._heartbeat = Heartbeat(
            interval_ms=limits.heartbeat_interval_ms, timeout_ms=limits.heartbeat_timeout_ms
        )
        self._patience = Patience(
            is_incarnated=bool(incarnation_of(node)),
            base_ms=limits.reconnect_base_ms,
            max_ms=limits.reconnect_max_ms,
        )
        self._rng = random.Random()
        self._poked = False
        self._ticker: asyncio.TimerHandle | None = None
        self._calling: asyncio.Task[None] | None = None
        self._trying: WireProtocol | None = None  # The newest connection ...
        self._open: WireProtocol | None = None  # ... and the same once it is welcome.
        self._outcome: asyncio.Future[Exception | None] | None = None  # Of the call under way.
        self._trouble: Exception | None = None  # Why the last call or connection failed.
        self._progress: asyncio.Future[None] | None = None  # Somebody waits for letters taken.

    @property
    def is_needed(self) -> bool:
        """Tell whether somebody depends on the other end."""
        return bool(self.watchers) or self.outbox.untaken > 0

    def poke(self) -> None:
        """Have a look at what has changed, soon. Runs on any thread."""
        if not self._poked:
            self._poked = True
            self._loop.call_soon(self._wake)

    async def drain(self) -> None:
        """Wait until all letters are taken, unless there is trouble."""
        while self.outbox.untaken and not self.ended and self._trouble is None:
            self._progress = asyncio.get_running_loop().create_future()
            await self._progress

    def end(self) -> None:
        """Do nothing any more; close the connection, soon also if the other end is frozen."""
        self.ended = True
        self._stop_waiting()
        if self._calling is not None and self._calling is not asyncio.current_task():
            self._calling.cancel()
        if self._trying is not None:
            self._trying.close()
            timeout_s = self._wire.close_timeout_ms / 1000
            asyncio.get_running_loop().call_later(timeout_s, self._trying.abort)

    async def close(self) -> None:
        """Do nothing any more; send what was written, close the connection."""
        self.ended = True
        self._stop_waiting()
        if self._calling is not None:
            self._calling.cancel()
            await asyncio.wait([self._calling])
        if self._trying is not None:
            protocol, timeout_s = self._trying, self._wire.close_timeout_ms / 1000
            protocol.close()
            await asyncio.wait([protocol.closed], timeout=timeout_s)
            protocol.abort()
            await asyncio.wait([protocol.closed], timeout=timeout_s)

    # -- what is needed --------------------------------------------------------------------

    def _wake(self) -> None:
        self._poked = False
        if self.ended or not self.is_needed:
            return
        if self._ticker is None:
            self._heartbeat.start(monotonic_ms())
            self._plan_tick()
        if self._open is not None:
            self._flush()
        else:
            self._call()

    def _plan_tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(self._heartbeat.interval_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        if self.ended or not self.is_needed:
            return
        now_ms = monotonic_ms()
        ping = self._heartbeat.on_tick(now_ms)
        if ping is None:
            trouble = f" ({_text(self._trouble)})" if self._trouble is not None else ""
            self._give_up(f"silent for {self._heartbeat.silent_ms(now_ms)} ms{trouble}")
            return
        self._plan_tick()
        if self._open is not None and self._heartbeat.is_doubtful:
            # It may be only this connection: another one has half of the time to find that out.
            self._open.abort(ConnectionLost(f"silent for {self._heartbeat.silent_ms(now_ms)} ms"))
        elif self._open is not None and not self._open.paused:
            self._write(ping)

    def _flush(self) -> None:
        """Write letters, up to one buffer full; the loop serves others before the next."""
        if self._open is None or self._open.paused or self.ended:
            return
        with self._lock:
            letters = self.outbox.unsent(self._wire.write_buffer_bytes)
        if letters:
            self._write(*letters)
            asyncio.get_running_loop().call_soon(self._flush)

    def _write(self, *messages: NodeMessage) -> None:
        assert self._trying is not None
        frames = (encode_node(message, self._wire.frames) for message in messages)
        self._trying.write([buffer for frame in frames for buffer in frame])

    def _give_up(self, reason: str) -> None:
        if not self.ended:
            self.ended = True
            self._on_gone(self, reason)

    def _stop_waiting(self) -> None:
        self._tell_progress()
        if self._ticker is not None:
            self._ticker.cancel()

    def _tell_progress(self) -> None:
        if self._progress is not None and not self._progress.done():
            self._progress.set_result(None)

    # -- connecting ------------------------------------------------------------------------

    def _call(self) -> None:
        if self._calling is None:
            self._calling = asyncio.get_running_loop().create_task(self._call_often())

    async def _call_often(self) -> None:
        """Try until the other end welcomes us, or is gone, or not needed any more."""
        try:
            while self._open is None and self.is_needed and not self.ended:
                error = await self._call_once()
                if error is not None:
                    await self._pause_after(error)
        finally:
            self._calling = None
        if self._open is None and not self.ended:
            self._on_idle(self)

    async def _call_once(self) -> Exception | None:
        self._outcome = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._wire.handshake_timeout_ms / 1000):
                # A process of the cluster proves an application's key to its processes. Whoever
                # is at a mere address must know our own.
                follow = bool(incarnation_of(self.node))
                await self._dial(address_of(self.node), self, follow=follow)
                return await self._outcome
        except TimeoutError:
            error = ConnectionLost(f"no answer in {self._wire.handshake_timeout_ms} ms")
        except OSError as failure:
            return failure
        if self._trying is not None:
            self._trying.abort()
        return error

    async def _pause_after(self, error: Exception) -> None:
        if self.ended:
            return
        _log.debug("cannot reach %s: %s", self.node, error)
        self._trouble = error
        self._tell_progress()
        pause_ms = self._patience.on_failure(self._rng, refused=_is_refusal(error))
        if pause_ms is None:
            self._give_up(f"nobody listens at {address_of(self.node)} any more")
        else:
            await asyncio.sleep(pause_ms / 1000)

    async def _call_again(self, error: Exception) -> None:
        try:
            await self._pause_after(error)
        finally:
            self._calling = None
        if not self.ended and self.is_needed:
            self._call()

    # -- what the socket tells -------------------------------------------------------------

    def on_connected(self, protocol: WireProtocol) -> None:
        """Wait for the proof."""
        self._trying = protocol
        if self.ended:
            protocol.abort()

    def on_authenticated(self, protocol: WireProtocol) -> None:
        """Say who we are, unless somebody else answers than writes to us from there.

        Raises:
            AuthenticationFailed: the node is known to speak for another principal.
        """
        principal, expected = protocol.connection.principal, self._principal_of(self.node)
        if expected is not None and principal != expected:
            raise AuthenticationFailed(f"{self.node} speaks for {expected}, not for {principal}")
        with self._lock:
            greeting = self.outbox.greeting(sender=self._own, receiver=self.node)
        self._write(greeting)

    def on_frames(self, protocol: WireProtocol, frames: list[Frame]) -> None:
        """Hear what the other end says."""
        self._heartbeat.on_heard(monotonic_ms())
        for frame in frames:
            if not self.ended:
                self._on_message(protocol, decode_node(frame))

    def _on_message(self, protocol: WireProtocol, message: NodeMessage) -> None:
        match message:
            case Welcome() if self._open is None:
                self._on_welcome(protocol, message)
            case Fenced(node=node, reason=reason, given_up=given_up):
                text = f"{node} refuses this process: {reason}"
                self._give_up(text)
                if given_up:
                    self._on_given_up(text)
            case LettersTaken(number=number) if self._open is not None:
                with self._lock:
                    self.outbox.on_taken(number)
                self._on_progress()
            case Pong() if self._open is not None:
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
        self.reconnects += bool(self.reached)
        self.reached = welcome.node
        self._open = protocol
        self._patience.on_welcome()
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(None)
        self._flush()

    def _on_progress(self) -> None:
        self._trouble = None
        self._patience.on_progress()
        self._tell_progress()

    def on_writable(self, protocol: WireProtocol) -> None:
        """Go on writing."""
        self._flush()

    def on_closed(self, protocol: WireProtocol, error: ProtocolError | ConnectionLost) -> None:
        """End this call, or make the next one."""
        if protocol is not self._trying:
            return
        self._trying = None
        was_open, self._open = self._open is not None, None
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(error)
        elif was_open and not self.ended:
            self._on_broken(error)

    def _on_broken(self, error: Exception) -> None:
        if not self.is_needed:
            self._on_idle(self)
        elif self._calling is None:
            _log.info("connection to %s broken: %s", self.node, error)
            self._calling = asyncio.get_running_loop().create_task(self._call_again(error))


def _is_refusal(error: Exception) -> bool:
    """Tell whether nobody listens, at none of the addresses that a host name has."""
    if isinstance(error, ConnectionRefusedError):
        return True
    causes = set(re.findall(r"\[Errno (\d+)\]", str(error)))
    return isinstance(error, OSError) and causes == {str(errno.ECONNREFUSED)}


def _text(error: Exception | None) -> str:
    return str(error) or type(error).__name__
