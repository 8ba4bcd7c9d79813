"""How roles reach each other: by path, with messages that can cross a process boundary."""

import logging
from typing import Any

from gearpy.actor.api import Ref
from gearpy.actor.system import ActorSystem
from gearpy.ids import ActorPath
from gearpy.wire.codec import decode_control, encode_control

__all__ = ["Post"]

_log = logging.getLogger(__name__)


class Post:
    """Delivers control messages to actors by path.

    Every message is encoded and decoded on its way, also within one process: what works here
    works between processes, and no role ever shares an object with another.

    Runs on: any thread.
    """

    def __init__(self, system: ActorSystem) -> None:
        self._system = system
        self.undelivered = 0

    def tell(self, path: ActorPath, message: Any) -> bool:
        """Send a message; if there is no such actor it is counted and logged, and False."""
        ref = self.find(path)
        if ref is None:
            self.undelivered += 1
            _log.debug("no actor %s for %s", path, type(message).__name__)
            return False
        ref.tell(decode_control(encode_control(message)))
        return True

    def find(self, path: ActorPath) -> Ref[Any] | None:
        """Return the actor's reference, to watch it."""
        return self._system.resolve(path)
