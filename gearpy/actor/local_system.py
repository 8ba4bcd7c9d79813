"""The common half of actor systems in one process: names, spawning and stopping."""

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from gearpy.actor.api import MAILBOX_MAX, Actor, ActorSystem, DispatcherChoice, Ref
from gearpy.actor.dispatcher import Dispatcher
from gearpy.actor.life import ActorLife, LocalRef
from gearpy.errors import ActorStopped, ConfigError
from gearpy.ids import ActorPath

N = TypeVar("N")


class LocalActorSystem(ActorSystem):
    """Base of the actor systems of one process: all but threads and time.

    A subclass adds `dispatcher_of`, timers, both clocks, `wait` and `shutdown`.
    """

    def __init__(self, *, node: str, stop_timeout_ms: int) -> None:
        super().__init__(stop_timeout_ms=stop_timeout_ms)
        self.node = node
        self.is_shutting_down = False
        self._changed = threading.Condition()
        self._lives: dict[str, ActorLife[Any]] = {}

    @abstractmethod
    def dispatcher_of(self, name: str, choice: DispatcherChoice) -> Dispatcher:
        """Return the dispatcher for an actor of this name."""

    def spawn(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        dispatcher: DispatcherChoice = "pinned",
        mailbox_max: int = MAILBOX_MAX,
        parent: Ref[Any] | None = None,
    ) -> Ref[N]:
        life = ActorLife(
            factory,
            ActorPath(self.node, name),
            None if parent is None else _life_of(parent),
            self,
            self.dispatcher_of(name, dispatcher),
            mailbox_max=mailbox_max,
        )

        name = life.path.name
        with self._changed:
            if self.is_shutting_down:
                raise ActorStopped(f"cannot spawn {name!r}: the actor system was shut down")
            if name in self._lives:
                raise ConfigError(
                    f"cannot spawn {name!r}: a living actor has this name; choose another, or "
                    "wait for its Exited"
                )
            self._lives[name] = life

        above = life.parent
        if above is not None and not above.children.add(life):
            self.forget(life.ref)
            raise ActorStopped(f"cannot spawn {name!r}: {above.path} has stopped")
        try:
            life.start()
        except BaseException:
            self.forget(life.ref)
            if above is not None:
                above.children.discard(life)
            raise
        return life.ref

    def forget(self, ref: Ref[Any]) -> None:
        with self._changed:
            life = self._lives.get(ref.path.name)
            if life is not None and life.ref is ref:
                del self._lives[ref.path.name]
            if not self._lives:
                self._changed.notify_all()

    def stop(self, ref: Ref[Any]) -> None:
        _life_of(ref).request_stop()

    def stop_gracefully(self, ref: Ref[Any]) -> None:
        _life_of(ref).mailbox.put_last()

    def resolve(self, path: ActorPath | str) -> Ref[Any] | None:
        if isinstance(path, ActorPath) and path.node not in ("", self.node):
            return None
        life = self._lives.get(path if isinstance(path, str) else path.name)
        return None if life is None else life.ref

    def lives(self) -> list[ActorLife[Any]]:
        with self._changed:
            return list(self._lives.values())

    def stop_all(self) -> None:
        with self._changed:
            self.is_shutting_down = True
        for life in reversed(self.lives()):
            if life.parent is None:
                life.request_stop()

    def wait_empty(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._lives, timeout_s)


def _life_of(ref: Ref[Any]) -> ActorLife[Any]:
    if not isinstance(ref, LocalRef):
        raise ConfigError(f"actor {ref.path} lives elsewhere: only its own system can stop it")
    return ref.life
