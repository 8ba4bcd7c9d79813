"""What becomes of messages that no mailbox takes: counted and logged, or raised."""

import logging
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from gearpy.actor.mailbox import PoisonPill, Question, Refusal
from gearpy.errors import ActorStopped, MailboxFull
from gearpy.ids import ActorPath

if TYPE_CHECKING:
    from gearpy.actor.system import Runtime

__all__ = ["OTHER_PATHS", "PathCounter", "Undelivered"]

_log = logging.getLogger("gearpy.actor")

#: Paths counted apart by a `PathCounter`; a limit, as names may come from outside.
_PATHS_MAX: Final = 10_000
#: Stands for all paths beyond the limit.
OTHER_PATHS: Final = ActorPath("", "*")


class PathCounter:
    """Counts something for each actor path.

    Runs on: any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[ActorPath, int] = {}
        self._total = 0

    def add(self, path: ActorPath) -> None:
        """Count one."""
        with self._lock:
            known = path in self._counts or len(self._counts) < _PATHS_MAX
            key = path if known else OTHER_PATHS
            self._counts[key] = self._counts.get(key, 0) + 1
            self._total += 1

    @property
    def total(self) -> int:
        """All that were counted."""
        return self._total

    def of(self, path: ActorPath) -> int:
        """Return what was counted for one path."""
        return self._counts.get(path, 0)

    def by_path(self) -> dict[ActorPath, int]:
        """Return a copy of all counts."""
        with self._lock:
            return dict(self._counts)


class Undelivered:
    """Takes what the mailbox of one actor refused, or held when it closed.

    Runs on: any thread.
    """

    __slots__ = ("_mailbox_max", "_path", "_runtime")

    def __init__(self, path: ActorPath, mailbox_max: int, runtime: "Runtime") -> None:
        self._path = path
        self._mailbox_max = mailbox_max
        self._runtime = runtime

    def take(self, message: Any, refusal: Refusal) -> None:
        """Count a message that was told; raise `MailboxFull` if that is the reason."""
        if refusal is Refusal.FULL:
            self._runtime.refused.add(self._path)
            raise MailboxFull(
                f"mailbox of actor {self._path} is full: {self._mailbox_max} messages wait"
            )
        self._runtime.dead_letters.add(self._path)
        _log.debug("dead letter: %s to actor %s", type(message).__name__, self._path)

    def take_all(self, items: Iterable[Any]) -> None:
        """Answer the questions among these and count the rest as dead letters."""
        for item in items:
            if isinstance(item, Question):
                item.reply.fail(ActorStopped(f"actor {self._path} stopped before it answered"))
            elif not isinstance(item, PoisonPill):
                self.take(item, Refusal.CLOSED)
