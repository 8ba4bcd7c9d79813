"""Messages that actors have no use for: each is counted, and each kind logged now and then."""

import logging
import threading
from typing import Final

from gearpy.ids import ActorPath
from gearpy.metrics.process import process_meter

_log = logging.getLogger("gearpy.actor")

#: A kind is logged once in so long.
QUIET_MS: Final = 60_000
#: Kinds that are told apart; names of others may come from outside.
_KINDS_MAX: Final = 1_000
_OTHERS: Final = "messages of other kinds"


class UnknownMessages:
    """Notes messages of kinds that their actor does not take, as of another version.

    Runs on: any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logged: dict[str, tuple[int, int]] = {}  # By kind: when, and how many since then.

    def note(self, path: ActorPath, kind: str, now_ms: int) -> None:
        with self._lock:
            process_meter().count_unknown_message()
            kind = kind if kind in self._logged or len(self._logged) < _KINDS_MAX else _OTHERS
            at_ms, since = self._logged.get(kind, (now_ms - QUIET_MS, 0))
            is_due = now_ms - at_ms >= QUIET_MS
            self._logged[kind] = (now_ms, 0) if is_due else (at_ms, since + 1)
        if is_due:
            more = f", and for {since} more since the last line" if since else ""
            _log.warning("actor %s has no use for %s%s", path, kind, more)
