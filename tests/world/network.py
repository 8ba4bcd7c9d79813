"""The network of a world: letters between its processes, and batches between their tasks.

Chance delays, cuts and resets connections, as with sockets. Links keep their order.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from gearpy.ids import ActorPath, TaskId, address_of, node_text
from gearpy.messages.data import DataMessage, LinkMessage
from gearpy.messages.peer import Letter
from gearpy.testing.world import World
from gearpy.transport.api import LinkHandler, LinkLost, PeerLost, TakeLetter
from gearpy.transport.links.routes import Routes
from tests.world.actors import WorldActorSystem

_REFUSED_MS: Final = 60  # A dead process is noticed within this time.
_DATA: Final = "data"  # Everything but letters.

#: The addresses of a sender and of a receiver.
_Way: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class _Wire:
    waiting: deque[Callable[[], None]]
    free_at_ms: int = 0


class Network:
    """Where the processes of a world find each other.

    Args:
        heartbeat_timeout_ms: a peer that is silent for so long is lost to its watchers.
    """

    def __init__(
        self,
        world: World,
        *,
        delay_ms: int = 5,
        heartbeat_timeout_ms: int = 3000,
        duplicates: float = 0.0,
    ) -> None:
        self.world = world
        self.delay_ms = delay_ms
        self.heartbeat_timeout_ms = heartbeat_timeout_ms
        self.duplicates = duplicates
        self.zombies = 0  #: Letters refused, because their sender was given up.
        self.on_letter: Callable[[Letter], None] = lambda _: None  #: Told of each that is sent.
        self._nodes: dict[str, WorldNodes] = {}  # By address: the newest.
        self._transports: dict[str, WorldTransport] = {}
        self._cut: set[_Way] = set()
        self._held: set[_Way] = set()  # For data alone.
        self._slow: dict[_Way, int] = {}  # With the most that each message is under way.
        self._wires: dict[tuple[str, str, str], _Wire] = {}
        self._incarnations = 0

    # -- processes -------------------------------------------------------------------------

    def join(self, system_of: Callable[[str], WorldActorSystem], address: str) -> "WorldNodes":
        """Add a process; a dead one at the same address is forgotten."""
        self._incarnations += 1
        node = node_text(address, f"{self._incarnations:016x}")
        nodes = WorldNodes(self, system_of(node), node)
        self._nodes[address] = nodes
        return nodes

    def add_transport(self, transport: "WorldTransport") -> None:
        self._transports[transport.address] = transport

    def find(self, node: str) -> "WorldNodes | None":
        found = self._nodes.get(address_of(node))
        if found is None or ("#" in node and found.node != node):
            return None
        return found

    def living(self) -> list["WorldNodes"]:
        return [
            each
            for each in self._nodes.values()
            if not each.system.is_killed and not each.system.is_paused
        ]

    def transport(self, address: str) -> "WorldTransport | None":
        found = self._transports.get(address)
        return None if found is None or found.system.is_killed else found

    def on_killed(self, node: str) -> None:
        """Tell all that are concerned, in a moment, that a process is dead."""
        for other in list(self._nodes.values()):
            delay_ms = self.world.rng.randrange(1, _REFUSED_MS)
            self.world.later(delay_ms, lambda other=other: other.on_dead(node))  # type: ignore[misc]
        for transport in list(self._transports.values()):
            if transport.system.node == node:
                self._reset_links(transport.address)

    def on_silent(self, found: "WorldNodes") -> None:
        """A process was paused; if it still is after the time-out, it is lost to others."""

        def check() -> None:
            if found.system.is_paused and not found.system.is_killed:
                for other in list(self._nodes.values()):
                    if other is not found:
                        other.give_up(found.node, "silent")
                # It hears of it when it goes on, as it asks whether others are there.
                found.system.do(found.ask_around)

        self.world.later(self.heartbeat_timeout_ms, check)

    # -- cuts ------------------------------------------------------------------------------

    def cut(self, one: str, other: str, duration_ms: int) -> None:
        self._keep(self._cut, _both_ways(one, other), duration_ms)
        self._plan_give_up(one, other, duration_ms)

    def cut_one_way(self, source: str, target: str, duration_ms: int) -> None:
        """Let nothing come from one process to another, which is heard for a while.

        Both doubt their connections after half of the time-out. New ones need both ways.
        """
        self._keep(self._cut, [_way(source, target)], duration_ms)
        until_doubt_ms = self.heartbeat_timeout_ms // 2
        if (left_ms := duration_ms - until_doubt_ms) > 0:
            back = [_way(target, source)]
            self.world.later(until_doubt_ms, lambda: self._keep(self._cut, back, left_ms))
        self._plan_give_up(source, target, duration_ms)

    def hold_data(self, one: str, other: str, duration_ms: int) -> None:
        """Let data wait on its way between two processes, as a busy network does; letters pass."""
        self._keep(self._held, _both_ways(one, other), duration_ms)

    def slow(self, source: str, target: str, delay_ms: int, duration_ms: int) -> None:
        """Let messages of one process to another take longer, so that others overtake them."""
        way = _way(source, target)
        self._slow[way] = delay_ms
        self.world.later(duration_ms, lambda: self._slow.pop(way, None))

    def _keep(self, kept: set[_Way], ways: Collection[_Way], duration_ms: int) -> None:
        kept.update(ways)

        def heal() -> None:
            kept.difference_update(ways)
            for key, wire in self._wires.items():
                if key[:2] in ways and wire.waiting:
                    self._deliver_next(key)

        self.world.later(duration_ms, heal)

    def _plan_give_up(self, one: str, other: str, duration_ms: int) -> None:
        if duration_ms >= self.heartbeat_timeout_ms:
            self.world.later(self.heartbeat_timeout_ms, lambda: self._give_up_both(one, other))

    def reset_link(self, one: str, other: str) -> None:
        """Break the data connection between two transports: messages under way are lost."""
        for pair in ((one, other), (other, one)):
            sender = self._transports.get(pair[0])
            if sender is not None:
                sender.lose(pair[1], "reset")

    def _give_up_both(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            nodes, target = self.find(here), self.find(there)
            if nodes is not None and target is not None:
                nodes.give_up(target.node, "cut off")
                self.reset_link(address_of(here), address_of(there))

    def _reset_links(self, address: str) -> None:
        for transport in list(self._transports.values()):
            if address in transport.spoken_to:
                delay_ms = self.world.rng.randrange(1, _REFUSED_MS)
                self.world.later(
                    delay_ms,
                    lambda transport=transport: transport.lose(address, "closed"),  # type: ignore[misc]
                )

    # -- messages under way ----------------------------------------------------------------

    def carry(self, source: str, target: str, kind: str, act: Callable[[], None]) -> None:
        """Have something done at the target, after all that was sent before on the same wire."""
        key = (address_of(source), address_of(target), kind)
        wire = self._wires.get(key)
        if wire is None:
            wire = self._wires[key] = _Wire(deque())
        wire.waiting.append(act)
        delay_ms = self._slow.get(key[:2], self.delay_ms) if self._slow else self.delay_ms
        at_ms = max(wire.free_at_ms, self.world.now_ms + self.world.rng.randrange(delay_ms + 1))
        wire.free_at_ms = at_ms
        self.world.at(at_ms, partial(self._deliver_next, key))

    def drop(self, source: str, target: str, kind: str) -> None:
        wire = self._wires.get((address_of(source), address_of(target), kind))
        if wire is not None:
            wire.waiting.clear()

    def _is_cut(self, key: tuple[str, str, str]) -> bool:
        way = key[:2]
        return way in self._cut or (key[2] == _DATA and way in self._held)

    def _deliver_next(self, key: tuple[str, str, str]) -> None:
        wire = self._wires[key]
        is_cut = self._is_cut(key) if self._cut or self._held else False
        while wire.waiting and not is_cut and self.world.now_ms >= wire.free_at_ms:
            wire.waiting.popleft()()
        if wire.waiting and not is_cut and self.world.now_ms < wire.free_at_ms:
            wire.waiting.popleft()()


def _way(source: str, target: str) -> _Way:
    return address_of(source), address_of(target)


def _both_ways(one: str, other: str) -> list[_Way]:
    return [_way(one, other), _way(other, one)]


class WorldNodes:
    def __init__(self, network: Network, system: WorldActorSystem, node: str) -> None:
        self._network = network
        self.system = system
        self._node = node
        self._deliver: TakeLetter | None = None
        self._watchers: dict[str, dict[object, PeerLost]] = {}
        self.given_up: set[str] = set()  # With incarnation; for ever.
        self._known: set[str] = set()  # Peers that were written to or watched.
        self._number = 0
        self.on_given_up: Callable[[str], None] = lambda _: None

    @property
    def node(self) -> str:
        return self._node

    def serve(self, deliver: TakeLetter) -> None:
        self._deliver = deliver

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
        if node in self.given_up:
            return False
        self._known.add(node)
        self._number += 1
        letter = Letter(
            number=self._number, to=to, body=body, reply_to=reply_to, ask=ask, answers=answers
        )
        self._network.on_letter(letter)
        self._network.carry(self._node, node, "letters", lambda: self._arrive(node, letter))
        return True

    def watch(self, node: str, key: object, lost: PeerLost) -> None:
        if node in self.given_up:
            lost("it was given up")
            return
        self._known.add(node)
        self._watchers.setdefault(node, {})[key] = lost
        target = self._network.find(node)
        if target is None or target.system.is_killed:
            self._network.world.later(
                _REFUSED_MS, lambda: self.system.do(lambda: self._tell(node, "refused"))
            )

    def unwatch(self, node: str, key: object) -> None:
        self._watchers.get(node, {}).pop(key, None)

    def fence(self, node: str) -> None:
        self.given_up.add(node)
        target = self._network.find(node)
        if target is not None:
            self._network.world.later(
                self._network.delay_ms, lambda: target.system.do(target.ask_around)
            )

    def ask_around(self) -> None:
        """Ask the processes that this one depends on whether they listen to it."""
        for other in self._network.living():
            is_watched = {other.node, address_of(other.node)} & self._watchers.keys()
            if is_watched and self._node in other.given_up:
                self.on_given_up(f"{other.node} refuses this process")
                return

    def on_dead(self, node: str) -> None:
        self.system.do(lambda: self.give_up(node, "connection refused"))

    def give_up(self, node: str, reason: str) -> None:
        """Count a process as lost and tell its watchers; for ever, if it was known as such.

        A process known by address alone, as masters are, may come back.
        """
        if node in self._known:
            self.given_up.add(node)
        self._tell(node, reason)
        self._tell(address_of(node), reason)

    def _tell(self, node: str, reason: str) -> None:
        for lost in list(self._watchers.pop(node, {}).values()):
            lost(reason)

    def _arrive(self, node: str, letter: Letter) -> None:
        target = self._network.find(node)
        if target is None or target.system.is_killed:
            if "#" not in node:
                self.system.do(lambda: self._tell(node, "connection refused"))
            return
        if self._node in target.given_up:
            self._network.zombies += 1
            target_node = target.node
            self.system.do(lambda: self.on_given_up(f"{target_node} refuses this process"))
            return
        target.system.do(lambda: target.take(self._node, letter))

    def take(self, sender: str, letter: Letter) -> None:
        if self._deliver is not None:
            self._deliver(sender, letter)


class WorldTransport:
    def __init__(
        self, network: Network, system: WorldActorSystem, address: str, on_lost: LinkLost
    ) -> None:
        self._network = network
        self.system = system
        self._address = address
        self._on_lost = on_lost
        self._routes = Routes()
        self.spoken_to: set[str] = set()

    @property
    def address(self) -> str:
        return self._address

    def start(self) -> str:
        self._network.add_transport(self)
        return self._address

    def stop(self) -> None:
        """See `Transport`."""

    def register(self, task: TaskId, handler: LinkHandler) -> None:
        self._routes.register(task, handler)

    def unregister(self, task: TaskId) -> None:
        self._routes.unregister(task)

    def locate(self, routes: Mapping[TaskId, str]) -> None:
        self._routes.locate(routes)

    def send(self, messages: Sequence[LinkMessage]) -> None:
        here, elsewhere = self._routes.split(messages)
        for handler, batch in here:
            handler(batch)
        for address, batch in elsewhere.items():
            if address is None or address == self._address:
                continue
            self.spoken_to.add(address)
            for message in batch:
                self._carry(address, message)

    def lose(self, address: str, reason: str) -> None:
        """Lose the connection to a peer, with the messages under way on it."""
        self._network.drop(self._address, address, _DATA)
        if not self.system.is_killed and address in self.spoken_to:
            self.system.do(lambda: self._on_lost(address, reason))

    def _carry(self, address: str, message: LinkMessage) -> None:
        if isinstance(message, DataMessage):  # The receiver decodes in place: it gets its own.
            message = replace(message)
        copies = 1
        if self._network.duplicates and self._network.world.rng.random() < self._network.duplicates:
            copies = 2
        for _ in range(copies):
            self._network.carry(
                self._address, address, _DATA, lambda: self._arrive(address, message)
            )

    def _arrive(self, address: str, message: LinkMessage) -> None:
        target = self._network.transport(address)
        if target is not None:
            target.system.do(lambda: target.take(message))

    def take(self, message: LinkMessage) -> None:
        here, _ = self._routes.split([message])
        for handler, batch in here:
            handler(batch)
