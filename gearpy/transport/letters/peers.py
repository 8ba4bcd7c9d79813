"""Letters between the actors of different processes, over TCP: `Peers`."""

import asyncio
import logging
import secrets
import threading
from collections.abc import Callable
from typing import Final

from gearpy.errors import ConfigError
from gearpy.ids import ActorPath, address_of, incarnation_of, node_text
from gearpy.transport.api import PeerLost, TakeLetter, TransportLimits, split_address
from gearpy.transport.letters.peer import LetterPeer
from gearpy.transport.letters.server import LetterServer
from gearpy.transport.loop.loop import LoopThread
from gearpy.transport.security.credentials import Shown
from gearpy.wire.connection.keys import Principal
from gearpy.wire.connection.letters import Intake, Outbox

_log = logging.getLogger(__name__)

_INCARNATION_BYTES: Final = 8
_STOPPED: Final = "this process has stopped"
_STOPPING: Final = "it is stopping"


class LetterPeers:
    """`Peers` over TCP: one connection to each node it writes to or watches.

    A connection is made when needed and again when it breaks; letters that were not taken are
    sent again on the next one. Made by `TcpTransport.serve_peers`, which stops it, too.

    Runs on: any thread, except `stop`, which waits for the loop thread.
    Restart: none; a new one has another incarnation.
    """

    def __init__(
        self,
        address: str,
        shown: Shown,
        *,
        loop: LoopThread,
        limits: TransportLimits = TransportLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._node = node_text(address, secrets.token_hex(_INCARNATION_BYTES))
        self._shown, self._loop, self._limits = shown, loop, limits
        self._lock = threading.Lock()  # It guards all below, and links' outboxes and watchers.
        self._intake = Intake(
            self._node, senders_max=limits.senders_max, fenced_max=limits.fenced_max
        )
        self._links: dict[str, LetterPeer] = {}
        self._sessions = 0
        self._stopped = False
        #: Told, on the loop thread, that another node counts this process as lost: it was
        #: frozen or cut off for too long, and whatever it does is in vain. It should end.
        self.on_given_up: Callable[[str], None] = lambda _: None
        #: The listener hands connections of peers to it.
        self.server = LetterServer(self._intake, lock=self._lock, limits=limits)

    @property
    def node(self) -> str:
        return self._node

    def principal_of(self, node: str) -> Principal | None:
        return self.server.principal_of(node)

    def serve(self, deliver: TakeLetter) -> None:
        assert self.server.deliver is None, "one taker of letters"
        self.server.deliver = deliver

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
        with self._lock:
            link = self._link(node)
            if isinstance(link, str):
                return False
            kept = link.outbox.post(to=to, body=body, reply_to=reply_to, ask=ask, answers=answers)
        if kept:
            link.poke()
        else:
            self._lose(link, f"{link.outbox.untaken} letters were not taken, no room for more")
        return kept

    def watch(self, node: str, key: object, lost: PeerLost) -> None:
        with self._lock:
            link = self._link(node)
            if isinstance(link, LetterPeer):
                link.watchers[key] = lost
        if isinstance(link, str):
            lost(link)
        else:
            link.poke()

    def unwatch(self, node: str, key: object) -> None:
        with self._lock:
            link = self._links.get(node)
            if link is not None:
                link.watchers.pop(key, None)

    def fence(self, node: str) -> None:
        with self._lock:
            link = self._links.get(node)
            self._intake.fence(node, "this process gave it up")
        if link is not None:
            self._lose(link, "this process gave it up")
        else:
            self._loop.call_soon(self._drop, node)

    def stop(self) -> None:
        """Let go of all other peers, and tell them; may be called twice.

        Letters that are on their way are waited for, as long as a close may take.
        """
        with self._lock:
            stopped, self._stopped = self._stopped, True
            links = list(self._links.values())
        if not stopped and self._loop.running:
            self._loop.call(self._close(links))

    async def _close(self, links: list[LetterPeer]) -> None:
        drains = [asyncio.ensure_future(link.drain()) for link in links]
        if drains:
            _, late = await asyncio.wait(drains, timeout=self._limits.close_timeout_ms / 1000)
            for drain in late:
                drain.cancel()
        self.server.close(_STOPPING)
        await asyncio.gather(*(link.close() for link in links))

    def _link(self, node: str) -> LetterPeer | str:
        if self._stopped:
            return _STOPPED
        reason = self._intake.reason(node)
        if reason is not None:
            return reason
        if node not in self._links:
            try:
                split_address(address_of(node))
            except ConfigError as error:
                return str(error)
            self._sessions += 1
            outbox = Outbox(
                self._sessions,
                letters_max=self._limits.letters_max,
                bytes_max=self._limits.queue_bytes_max,
                letter_bytes_max=self._limits.control_frame_bytes_max,
            )
            self._links[node] = LetterPeer(
                node,
                outbox,
                own=self._node,
                shown=self._shown,
                loop=self._loop,
                lock=self._lock,
                limits=self._limits,
                principal_of=self.principal_of,
                on_gone=self._lose,
                on_idle=self._forget,
                on_given_up=lambda why: self.on_given_up(why),  # noqa: PLW0108 - set later
            )
        return self._links[node]

    def _lose(self, link: LetterPeer, reason: str) -> None:
        """Give up a node: for ever if it has an incarnation."""
        with self._lock:
            if self._links.get(link.node) is not link:
                return
            link.ended = True
            del self._links[link.node]
            if incarnation_of(link.node):
                self._intake.fence(link.node, reason)
            watchers = list(link.watchers.values())
            # One that says that it stops ends in good order.
            is_fault = link.is_needed and not reason.endswith(_STOPPING)
            level = logging.WARNING if is_fault else logging.INFO
        _log.log(level, "node %s lost: %s", link.node, reason)
        self._loop.call_soon(link.end)
        self._loop.call_soon(self._drop, link.node)
        for lost in watchers:
            try:
                lost(reason)
            except Exception:  # noqa: BLE001 - one watcher must not cost the others their news
                _log.exception("a watcher of a lost node failed")

    def _drop(self, node: str) -> None:
        """Drop the connections of a fenced node. Runs on the loop thread."""
        with self._lock:
            reason = self._intake.reason(node)
        if reason is not None:
            self.server.drop(node, f"fenced: {reason}")

    def _forget(self, link: LetterPeer) -> None:
        """Drop a link without connection that nobody needs; the next letter makes a new one."""
        with self._lock:
            if self._links.get(link.node) is link and not link.is_needed:
                link.ended = True
                del self._links[link.node]
