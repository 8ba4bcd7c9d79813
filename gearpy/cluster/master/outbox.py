"""The workers and app masters that a master tells and watches."""

import logging
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from gearpy.actor.api import ActorContext, Ref
from gearpy.cluster.net.post import Post
from gearpy.errors import ConfigError, MailboxFull
from gearpy.ids import ActorPath
from gearpy.messages.cluster import MasterOrder, MastersChanged

_log = logging.getLogger(__name__)


class MasterOutbox:
    """Tells and watches workers and app masters by path.

    What is told waits until all that has led to it is durable.

    Runs on: the master's turns.
    """

    def __init__(
        self, post: Post, context: Callable[[], ActorContext[Any]], *, term: int = 0
    ) -> None:
        self._post = post
        self._term = term
        self._context = context
        self._watched: dict[ActorPath, Ref[Any]] = {}
        self._waiting: list[tuple[ActorPath, object, Callable[[], object]]] = []
        self._masters = MastersChanged(masters=())

    def on_masters(self, message: MastersChanged) -> None:
        self._masters = message
        for path in list(self._watched):
            self.tell_masters(path)

    def tell_masters(self, path: ActorPath) -> None:
        if self._masters.masters:
            self.tell(path, self._masters)

    def tell(self, path: ActorPath, message: object, or_else: Callable[[], object] = bool) -> None:
        self._waiting.append((path, message, or_else))

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def send_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for path, told, or_else in waiting:
            message = replace(told, term=self._term) if isinstance(told, MasterOrder) else told
            try:
                is_told = self._post.tell(path, message)
            except (MailboxFull, ConfigError) as error:  # Full, or too large to travel.
                _log.warning("%s was not told %s: %s", path, type(message).__name__, error)
                is_told = False
            if not is_told:
                or_else()

    def watch(self, path: ActorPath) -> None:
        ref = self._post.find(path)
        if ref is not None:
            self._watched[path] = ref
            self._context().watch(ref)

    def unwatch(self, path: ActorPath) -> None:
        ref = self._watched.pop(path, None)
        if ref is not None:
            self._context().unwatch(ref)

    def on_exited(self, path: ActorPath) -> None:
        self._watched.pop(path, None)
