"""What every actor system in one process has: names, counters, spawning and stopping."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gearpy.actor.api import MAILBOX_MAX, Actor, DispatcherChoice, Ref
from gearpy.actor.cell import ActorCell
from gearpy.actor.dead_letters import PathCounter
from gearpy.actor.host import Blueprint, Host
from gearpy.actor.local_ref import LocalRef
from gearpy.actor.mailbox import Reply
from gearpy.actor.system import ActorSystem, Timers
from gearpy.core.base.restart import NO_RESTART, RestartPolicy
from gearpy.errors import ActorStopped, ConfigError
from gearpy.ids import ActorPath

if TYPE_CHECKING:
    from random import Random

__all__ = ["Directory", "LocalActorSystem"]

N = TypeVar("N")


class Directory:
    """The living cells of a system by name.

    Runs on: any thread.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._cells: dict[str, ActorCell[Any]] = {}
        self._is_open = True

    def add(self, cell: ActorCell[Any]) -> None:
        """Take a name.

        Raises:
            ConfigError: a living actor has it.
            ActorStopped: closed.
        """
        name = cell.path.name
        with self._changed:
            if not self._is_open:
                raise ActorStopped(f"cannot spawn {name!r}: the actor system was shut down")
            if name in self._cells:
                raise ConfigError(
                    f"cannot spawn {name!r}: a living actor has this name; choose another, or "
                    "wait for its Exited"
                )
            self._cells[name] = cell

    def remove(self, cell: ActorCell[Any]) -> None:
        """Free the name of a cell."""
        with self._changed:
            if self._cells.get(cell.path.name) is cell:
                del self._cells[cell.path.name]
            if not self._cells:
                self._changed.notify_all()

    def find(self, name: str) -> ActorCell[Any] | None:
        """Return the living cell of this name."""
        return self._cells.get(name)

    def cells(self) -> list[ActorCell[Any]]:
        """Return all living cells, oldest first."""
        with self._changed:
            return list(self._cells.values())

    def close(self) -> None:
        """Refuse new cells."""
        with self._changed:
            self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether new cells are taken."""
        return self._is_open

    def wait_empty(self, timeout_s: float) -> bool:
        """Block until no cell lives; False when that takes too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._cells, timeout_s)


class LocalActorSystem(ABC):
    """Base of the actor systems of one process: all but threads and time.

    A subclass is a `Runtime` and an `ActorSystem`: it adds `_make_host`, timers, both clocks,
    `wait` and `shutdown`.
    """

    def __init__(self, *, node: str, rng: "Random", stop_timeout_ms: int) -> None:
        self._node = node
        self.rng = rng
        self.stop_timeout_ms = stop_timeout_ms
        self.dead_letters = PathCounter()
        self.refused = PathCounter()
        self._directory = Directory()

    @property
    def system(self) -> ActorSystem:
        """See `Runtime`."""
        return self

    @property
    def is_shutting_down(self) -> bool:
        """See `Runtime`."""
        return not self._directory.is_open

    @property
    @abstractmethod
    def timers(self) -> Timers:
        """See `Runtime`."""

    @abstractmethod
    def now_ms(self) -> int:
        """See `Runtime`."""

    @abstractmethod
    def wall_ms(self) -> int:
        """See `Runtime`."""

    @abstractmethod
    def wait(self, reply: Reply, timeout_s: float) -> bool:
        """See `Runtime`."""

    @abstractmethod
    def shutdown(self, timeout_s: float = 10.0) -> bool:
        """See `ActorSystem`."""

    @abstractmethod
    def _make_host(self, cell: ActorCell[Any], dispatcher: DispatcherChoice) -> Host:
        """Return what will run the turns of a cell."""

    def spawn(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        dispatcher: DispatcherChoice = "pinned",
        supervision: RestartPolicy | None = None,
        mailbox_max: int = MAILBOX_MAX,
    ) -> Ref[N]:
        """See `ActorSystem`."""
        return self.spawn_cell(
            factory,
            name,
            parent=None,
            dispatcher=dispatcher,
            supervision=supervision or NO_RESTART,
            mailbox_max=mailbox_max,
        )

    def spawn_cell(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        parent: ActorCell[Any] | None,
        dispatcher: DispatcherChoice,
        supervision: RestartPolicy,
        mailbox_max: int,
    ) -> Ref[N]:
        """See `Runtime`."""
        blueprint = Blueprint(factory=factory, supervision=supervision, mailbox_max=mailbox_max)
        cell = ActorCell(blueprint, ActorPath(self._node, name), parent, self)
        cell.host = self._make_host(cell, dispatcher)
        self._directory.add(cell)
        self._start(cell)
        return cell.ref

    def _start(self, cell: ActorCell[Any]) -> None:
        parent = cell.parent
        if parent is not None and not parent.children.add(cell):
            self._directory.remove(cell)
            raise ActorStopped(f"cannot spawn {cell.path.name!r}: {parent.path} has stopped")
        try:
            cell.host.start()
        except BaseException:
            self._directory.remove(cell)
            if parent is not None:
                parent.children.discard(cell)
            raise

    def forget(self, cell: ActorCell[Any]) -> None:
        """See `Runtime`."""
        self._directory.remove(cell)

    def stop(self, ref: Ref[Any]) -> None:
        """See `ActorSystem`."""
        _cell_of(ref).request_stop()

    def stop_gracefully(self, ref: Ref[Any]) -> None:
        """See `ActorSystem`."""
        _cell_of(ref).request_graceful_stop()

    def resolve(self, path: ActorPath | str) -> Ref[Any] | None:
        """See `ActorSystem`."""
        if isinstance(path, ActorPath) and path.node not in ("", self._node):
            return None
        cell = self._directory.find(path if isinstance(path, str) else path.name)
        return None if cell is None else cell.ref


def _cell_of(ref: Ref[Any]) -> ActorCell[Any]:
    if not isinstance(ref, LocalRef):
        raise ConfigError(f"actor {ref.path} lives elsewhere: only its own system can stop it")
    return ref.cell
