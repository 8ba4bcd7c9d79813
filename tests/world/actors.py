"""Actor systems that live in virtual time: one thread, an order that a seed decides."""

from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, Final

from gearpy.actor.api import DispatcherChoice, Ref
from gearpy.actor.dispatcher import Runnable
from gearpy.actor.local_system import LocalActorSystem
from gearpy.actor.mailbox import Reply
from gearpy.errors import ActorStopped
from gearpy.testing.world import World, WorldTimer

_TURN_MESSAGES: Final = 100
_STOP_TIMEOUT_MS: Final = 5_000


class WorldActorSystem(LocalActorSystem):
    """The actors of one process of a world.

    Killed, the process does nothing more. Paused, it does nothing until it is resumed; what was
    due comes then.
    """

    def __init__(self, world: World, node: str) -> None:
        super().__init__(node=node, stop_timeout_ms=_STOP_TIMEOUT_MS)
        self.world = world
        self.is_killed = False
        self.is_paused = False
        self._held: deque[Callable[[], object]] = deque()  # While paused.
        self._timers = _WorldTimers(self)
        #: How much longer than others the actors with such names wait for their turn now.
        self.waiting: tuple[str, Callable[[], int]] | None = None

    @property
    def timers(self) -> "_WorldTimers":
        return self._timers

    def do(self, act: Callable[[], object]) -> None:
        """Do something in the name of the process: now, when it is resumed, or never."""
        if self.is_paused and not self.is_killed:
            self._held.append(act)
        elif not self.is_killed:
            act()

    def roots(self) -> list[Ref[Any]]:
        return [life.ref for life in self.lives() if life.parent is None]

    def kill(self) -> None:
        self.is_killed = True
        self._held.clear()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self._go_on()

    def now_ms(self) -> int:
        return self.world.now_ms

    def wall_ms(self) -> int:
        return self.world.now_ms

    def wait(self, reply: Reply, timeout_s: float) -> bool:
        """See `ActorSystem`; the world goes on meanwhile, with what a pause has held back."""
        self._go_on()
        is_done = self.world.run(
            lambda: reply.is_done or self.is_killed, within_ms=int(timeout_s * 1000)
        )
        if self.is_killed and not reply.is_done:
            raise ActorStopped("the process was killed")
        return is_done

    def _go_on(self) -> None:
        while self._held and not self.is_paused:
            self._held.popleft()()

    def shutdown(self, timeout_s: float = 10.0) -> bool:
        self.stop_all()
        return True

    def dispatcher_of(self, name: str, choice: DispatcherChoice) -> "_WorldDispatcher":
        return _WorldDispatcher(name, self)


class _WorldDispatcher:
    def __init__(self, name: str, system: WorldActorSystem) -> None:
        self._system, self._world = system, system.world
        self._wait_ms: Callable[[], int] | None = None
        if system.waiting is not None and name.endswith(system.waiting[0]):
            self._wait_ms = system.waiting[1]
        self._bits = system.world.rng.getrandbits

    def start(self) -> None:
        """See `Dispatcher`; nothing to do."""

    def schedule(self, runnable: Runnable) -> None:
        wait_ms = 0 if self._wait_ms is None else self._wait_ms()
        while (draw := self._bits(2)) > 1:  # As `randrange(2)` draws, at less cost.
            pass
        turn = partial(runnable.take_turn, _TURN_MESSAGES, inf)
        self._world.later(wait_ms + draw, partial(self._system.do, turn))


class _WorldTimers:
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
