"""`Ref` to an actor of the same process, and which actor the current thread runs."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gearpy.actor.api import Exited, Ref
from gearpy.actor.mailbox import Question, Refusal, Reply
from gearpy.errors import ActorStopped, AskTimeout, ConfigError

if TYPE_CHECKING:
    from gearpy.actor.cell import ActorCell

__all__ = ["LocalRef", "running"]

M_contra = TypeVar("M_contra", contravariant=True)


class _Running(threading.local):
    """The cell whose turn the current thread runs, if any."""

    cell: "ActorCell[Any] | None" = None


running = _Running()


class LocalRef(Ref[M_contra]):
    """The one `Ref` of a cell; lives as long as anybody holds it.

    Runs on: any thread. Restart: stays valid.
    """

    __slots__ = ("_put", "cell")

    def __init__(self, cell: "ActorCell[Any]") -> None:
        self.path = cell.path
        self.cell = cell
        self._put = cell.mailbox.put

    def tell(self, message: M_contra) -> None:
        """See `Ref.tell`."""
        refusal = self._put(message)
        if refusal is not None:
            self.cell.undelivered.take(message, refusal)

    def ask(self, message: M_contra, timeout_s: float) -> Any:
        """See `Ref.ask`."""
        self._check_can_be_answered()
        reply = Reply()
        refusal = self._put(Question(message, reply))
        if refusal is Refusal.CLOSED:
            raise ActorStopped(f"actor {self.path} has stopped")
        if refusal is not None:
            self.cell.undelivered.take(message, refusal)
        if not self.cell.runtime.wait(reply, timeout_s):
            what = type(message).__name__
            raise AskTimeout(f"no answer from actor {self.path} to {what} within {timeout_s} s")
        return reply.result()

    def _check_can_be_answered(self) -> None:
        asker, asked = running.cell, self.cell
        if asker is None:
            return
        if asker is asked:
            raise ConfigError(f"actor {self.path} asks itself: nobody is left to answer, use tell")
        if asker.host.lane is not None and asker.host.lane is asked.host.lane:
            raise ConfigError(
                f"actor {asker.path} asks actor {self.path} on the only thread of their "
                "dispatcher: nobody is left to answer, use tell"
            )

    @property
    def is_alive(self) -> bool:
        """See `Ref.is_alive`."""
        return self.cell.mailbox.is_open

    def add_watcher(self, key: object, notify: Callable[[Exited], None]) -> None:
        """See `Ref.add_watcher`."""
        self.cell.add_watcher(key, notify)

    def remove_watcher(self, key: object) -> None:
        """See `Ref.remove_watcher`."""
        self.cell.remove_watcher(key)
