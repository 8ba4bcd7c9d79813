"""MasterWatch: hears of the end of each master that is asked, from before it can answer."""

from collections.abc import Callable, Iterable
from typing import Any

from gearpy.actor.api import ActorContext, Exited, Ref
from gearpy.cluster.net.post import Post
from gearpy.ids import ActorPath

__all__ = ["MasterWatch"]


class MasterWatch:
    """Watches masters for an actor that registers with the one that leads.

    A master may stop leading between its answer and the turn that hears it, as when the process
    of the asker was frozen meanwhile. Its connections end then, but another process, or the same
    one without leading, has its address, so a watch that begins with the answer hears of nothing.
    An answer counts only from a master that was watched before and has not ended since.

    Runs on: the actor's turns.

    Args:
        context: of the actor; it has one at its turns only.
    """

    def __init__(self, post: Post, context: Callable[[], ActorContext[Any]]) -> None:
        self._post = post
        self._context = context
        self._watched: dict[ActorPath, Ref[Any]] = {}

    def begin(self, masters: Iterable[ActorPath]) -> None:
        """Watch masters, before they are asked; masters watched already stay so."""
        for path in masters:
            if path not in self._watched and (ref := self._post.find(path)) is not None:
                self._watched[path] = ref
                self._context().watch(ref)

    def has(self, master: ActorPath) -> bool:
        """Tell whether a master is watched and has not ended since."""
        return master in self._watched

    def keep_only(self, master: ActorPath) -> None:
        """Watch no other one any more."""
        for path in [each for each in self._watched if each != master]:
            self._context().unwatch(self._watched.pop(path))

    def on_exited(self, exited: Exited) -> ActorPath | None:
        """Return the master that has ended, by the path it was asked at; None if it was another.

        It is watched no more.
        """
        for path, ref in self._watched.items():
            if ref is exited.ref:
                del self._watched[path]
                return path
        return None
