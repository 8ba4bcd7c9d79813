"""Virtual time, and actor systems that live in it: one thread, an order that a seed decides."""

import heapq
import random
from collections.abc import Callable
from functools import partial
from itertools import count
from math import inf
from typing import Any, Final

from gearpy.actor.api import DispatcherChoice, Ref
from gearpy.actor.dispatcher import Runnable
from gearpy.actor.local_system import LocalActorSystem
from gearpy.actor.mailbox import Reply

_START_MS: Final = 1_000_000
_TURN_MESSAGES: Final = 100
_READINGS_PER_MS: Final = 8
_STOP_TIMEOUT_MS: Final = 5_000


class WorldTimer:
    """Something that will happen, unless cancelled; a `Cancellable`."""

    __slots__ = ("act", "is_cancelled")

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.is_cancelled = False

    def cancel(self) -> None:
        """Make it not happen."""
        self.is_cancelled = True


class World:
    """Everything that will happen, in the order of its time; among equals the seed decides.

    The same seed gives the same run, as long as nothing else is asked for time or chance.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now_ms = _START_MS
        self.events = 0
        self._readings = 0
        self._heap: list[tuple[int, float, int, WorldTimer]] = []
        self._ids = count()

    @property
    def elapsed_ms(self) -> int:
        """Virtual time since the beginning."""
        return self.now_ms - _START_MS

    def read_clock(self) -> int:
        """Return the time to a task; it passes with the work of tasks, too, so that turns end."""
        self._readings += 1
        if self._readings % _READINGS_PER_MS == 0:
            self.now_ms += 1
        return self.now_ms

    def later(self, delay_ms: int, act: Callable[[], object]) -> WorldTimer:
        """Have something happen ``delay_ms`` from now."""
        return self.at(self.now_ms + delay_ms, act)

    def at(self, at_ms: int, act: Callable[[], object]) -> WorldTimer:
        """Have something happen at a time; at once, if that has passed."""
        timer = WorldTimer(act)
        heapq.heappush(
            self._heap, (max(at_ms, self.now_ms), self.rng.random(), next(self._ids), timer)
        )
        return timer

    def step(self) -> bool:
        """Let the next thing happen; False if nothing ever will."""
        while self._heap:
            at_ms, _, _, timer = heapq.heappop(self._heap)
            if timer.is_cancelled:
                continue
            self.now_ms = max(self.now_ms, at_ms)
            self.events += 1
            timer.act()
            return True
        return False

    def run(self, until: Callable[[], bool], *, within_ms: int) -> bool:
        """Let things happen until something holds; False when it does not within the time."""
        deadline_ms = self.now_ms + within_ms
        while not until():
            if self.now_ms > deadline_ms or not self.step():
                return until()
        return True


class WorldActorSystem(LocalActorSystem):
    """The actors of one process of a world.

    Killed, the process does nothing more. Paused, it does nothing until it is resumed; what was
    due comes then.
    """

    def __init__(self, world: World, node: str) -> None:
        super().__init__(node=node, rng=world.rng, stop_timeout_ms=_STOP_TIMEOUT_MS)
        self.world = world
        self.is_killed = False
        self.is_paused = False
        self._held: list[Callable[[], object]] = []  # While paused.
        self._timers = _WorldTimers(self)
        #: How much longer than others an actor waits for its turn now, by its name.
        self.wait_ms: Callable[[str], int] = lambda _: 0

    @property
    def timers(self) -> "_WorldTimers":
        """See `ActorSystem`."""
        return self._timers

    def do(self, act: Callable[[], object]) -> None:
        """Do something in the name of the process: now, when it is resumed, or never."""
        if self.is_paused and not self.is_killed:
            self._held.append(act)
        elif not self.is_killed:
            act()

    def roots(self) -> list[Ref[Any]]:
        """Return the actors that have no parent."""
        return [life.ref for life in self.lives() if life.parent is None]

    def kill(self) -> None:
        """End the process as SIGKILL does."""
        self.is_killed = True
        self._held.clear()

    def pause(self) -> None:
        """Stop the process as SIGSTOP does."""
        self.is_paused = True

    def resume(self) -> None:
        """Let it go on as SIGCONT does."""
        self.is_paused = False
        held, self._held = self._held, []
        for act in held:  # In the order in which it came.
            self.do(act)

    def now_ms(self) -> int:
        """See `ActorSystem`."""
        return self.world.now_ms

    def wall_ms(self) -> int:
        """See `ActorSystem`."""
        return self.world.now_ms

    def wait(self, reply: Reply, timeout_s: float) -> bool:
        """See `ActorSystem`; the world goes on meanwhile."""
        return self.world.run(lambda: reply.is_done, within_ms=int(timeout_s * 1000))

    def shutdown(self, timeout_s: float = 10.0) -> bool:
        """See `ActorSystem`; does not wait."""
        self.stop_all()
        return True

    def dispatcher_of(self, name: str, choice: DispatcherChoice) -> "_WorldDispatcher":
        """See `LocalActorSystem`."""
        return _WorldDispatcher(name, self)


class _WorldDispatcher:
    """Gives one actor its turns, a moment later than asked for."""

    threads = 1

    def __init__(self, name: str, system: WorldActorSystem) -> None:
        self._name = name
        self._system = system

    def start(self) -> None:
        """See `Dispatcher`; nothing to do."""

    def schedule(self, runnable: Runnable) -> None:
        """See `Dispatcher`."""
        world, wait_ms = self._system.world, self._system.wait_ms(self._name)
        turn = partial(runnable.take_turn, _TURN_MESSAGES, inf)
        world.later(wait_ms + world.rng.randrange(2), lambda: self._system.do(turn))


class _WorldTimers:
    """`Timers` on virtual time."""

    def __init__(self, system: WorldActorSystem) -> None:
        self._system = system

    def call_later(self, delay_ms: int, call: Callable[[], object], /) -> WorldTimer:
        return self._system.world.later(delay_ms, lambda: self._system.do(call))

    def call_every(self, interval_ms: int, call: Callable[[], object], /) -> WorldTimer:
        handle = WorldTimer(call)

        def fire() -> None:
            if not handle.is_cancelled and not self._system.is_killed:
                self._system.world.later(interval_ms, fire)
                self._system.do(lambda: None if handle.is_cancelled else call())

        self._system.world.later(interval_ms, fire)
        return handle
