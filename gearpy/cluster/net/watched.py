"""MasterWatch: knows the master that an actor belongs to, and which orders of masters count."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

from gearpy.actor.api import ActorContext, Exited, Ref
from gearpy.cluster.net.post import Post
from gearpy.core.consensus.fence import TermFence
from gearpy.ids import ActorPath
from gearpy.messages.cluster import MasterOrder

__all__ = ["MasterAnswer", "MasterWatch"]

_log: Final = logging.getLogger(__name__)

#: The meaning of a master's answer: the actor belongs to it by now, did so before, or has to ask
#: it once more, as it may have stopped leading since.
MasterAnswer: TypeAlias = Literal["new", "known", "unsure"]


class MasterWatch:
    """Watches masters for an actor that registers with the one that leads.

    A master may stop leading between its answer and the turn that hears it, as when the process
    of the asker was frozen meanwhile. Its connections end then, but another process, or the same
    one without leading, has its address, so a watch that begins with the answer hears of nothing.
    An answer counts only from a master that was watched before and has not ended since.

    Runs on: the actor's turns.

    Args:
        term: its term, if that is known; orders of earlier terms are refused.
    """

    def __init__(
        self, post: Post, context: Callable[[], ActorContext[Any]], path: ActorPath, term: int = 0
    ) -> None:
        self.path, self.is_there = path, False
        self._term = term  # It belongs to the master at `path`.
        self._fence = TermFence()
        self._fence.admits(term)
        self._post = post
        self._context = context
        self._watched: dict[ActorPath, Ref[Any]] = {}

    @property
    def refused_orders(self) -> int:
        return self._fence.refused

    def admits(self, message: object) -> bool:
        """Tell whether to take a message; an order of a former leader is refused and counted."""
        if not isinstance(message, MasterOrder) or self._fence.admits(message.term):
            return True
        _log.warning("%s was refused: %s", type(message).__name__, self._fence.why(message.term))
        return False

    def begin(self, masters: Iterable[ActorPath]) -> None:
        """Watch masters, before they are asked; masters watched already stay so."""
        for path in masters:
            if path not in self._watched and (ref := self._post.find(path)) is not None:
                self._watched[path] = ref
                self._context().watch(ref)

    def on_answer(self, master: ActorPath, term: int) -> MasterAnswer:
        """Let the actor belong to a master that has answered, and watch no other one any more."""
        if self.is_there and (master == self.path or term <= self._term):
            return "known"
        if master not in self._watched:
            self.begin([master])
            return "unsure"
        self.path, self.is_there, self._term = master, True, term
        for path in [each for each in self._watched if each != master]:
            self._context().unwatch(self._watched.pop(path))
        return "new"

    def on_exited(self, exited: Exited) -> Literal["own", "other"] | None:
        for path, ref in self._watched.items():
            if ref is exited.ref:
                del self._watched[path]
                if not self.is_there or path != self.path:
                    return "other"
                self.is_there = False
                return "own"
        return None
