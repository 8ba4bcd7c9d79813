"""The actor system on threads, whose actors are listed in pykka's registry."""

import logging
from typing import Final, Self

from gearpy.actor.api import DispatcherChoice
from gearpy.actor.dispatcher import Dispatcher, OwnThread
from gearpy.actor.life import running
from gearpy.actor.local_system import LocalActorSystem
from gearpy.actor.mailbox import Reply
from gearpy.actor.timers import TimerThread
from gearpy.clocks import monotonic_ms, wall_ms
from gearpy.errors import ConfigError

_log = logging.getLogger("gearpy.actor")

#: How long a parent waits for its children to stop before it kills them.
STOP_TIMEOUT_MS: Final = 5_000


class ThreadedActorSystem(LocalActorSystem):
    """`ActorSystem` on threads: pinned actors have one each, others take turns on a dispatcher's.

    All threads are daemons. Use as a context manager, or call `shutdown`.

    Runs on: any thread.
    """

    is_registered = True

    def __init__(self, *, node: str = "", stop_timeout_ms: int = STOP_TIMEOUT_MS) -> None:
        super().__init__(node=node, stop_timeout_ms=stop_timeout_ms)
        self._timers = TimerThread()

    @property
    def timers(self) -> TimerThread:
        return self._timers

    def now_ms(self) -> int:
        return monotonic_ms()

    def wall_ms(self) -> int:
        return wall_ms()

    def wait(self, reply: Reply, timeout_s: float) -> bool:
        return reply.wait(timeout_s)

    def dispatcher_of(self, name: str, choice: DispatcherChoice) -> Dispatcher:
        if choice == "pinned":
            return OwnThread(name)
        if isinstance(choice, str):
            raise ConfigError(f"dispatcher is {choice!r}, must be 'pinned' or a dispatcher")
        return choice

    def shutdown(self, timeout_s: float = 10.0) -> bool:
        if running.life is not None:
            raise ConfigError(f"actor {running.life.path} shuts its own system down, and waits")
        self.stop_all()
        is_empty = self.wait_empty(timeout_s)
        for life in self.lives():
            _log.warning("actor %s did not stop in time, killed", life.path)
            life.kill()
        self._timers.close()
        return is_empty

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
