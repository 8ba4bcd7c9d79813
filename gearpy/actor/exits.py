"""The end of one actor: by a failure or otherwise, and who is told of it."""

import logging
import threading
import traceback
from collections.abc import Callable

from gearpy.actor.refs import Exited, Failed
from gearpy.errors import ActorStopped
from gearpy.ids import ActorPath

_log = logging.getLogger("gearpy.actor")


def failure_of(error: BaseException) -> Failed:
    return Failed(error, "".join(traceback.format_exception(error)))


def as_answer(error: BaseException, path: ActorPath) -> Exception:
    """Return the exception for an asker.

    `SystemExit` and its like would end the asker, who did nothing wrong.
    """
    if isinstance(error, Exception):
        return error
    stopped = ActorStopped(f"actor {path} raised {error!r} before it answered")
    stopped.__cause__ = error
    return stopped


class Exit:
    """Whether an actor is gone, and who wants to know. Set once. Runs on: any thread."""

    __slots__ = ("_exited", "_lock", "_watchers", "is_set")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._exited: Exited | None = None
        self._watchers: dict[object, Callable[[Exited], None]] = {}
        self.is_set = False

    def set(self, exited: Exited) -> list[Callable[[Exited], None]] | None:
        with self._lock:
            if self.is_set:
                return None
            self._exited, self.is_set = exited, True
            watchers = list(self._watchers.values())
            self._watchers.clear()
            return watchers

    def add_watcher(self, key: object, notify: Callable[[Exited], None]) -> None:
        with self._lock:
            exited = self._exited
            if exited is None:
                self._watchers[key] = notify
        if exited is not None:
            tell_watcher(notify, exited)

    def remove_watcher(self, key: object) -> None:
        with self._lock:
            self._watchers.pop(key, None)


def tell_watcher(notify: Callable[[Exited], None], exited: Exited) -> None:
    try:
        notify(exited)
    except Exception:  # noqa: BLE001 - one watcher's bug must not hide the exit from the next
        _log.exception("watcher of actor %s failed, ignored", exited.ref.path)
