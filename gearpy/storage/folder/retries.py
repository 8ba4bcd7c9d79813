"""Decides whether a step in a store is tried again, and after which pause."""

import errno
from random import Random
from typing import Final

from gearpy.core.base.pauses import pause_after
from gearpy.errors import causes_of

#: Half of the time in which a task has to start: else nobody would hear which store is away.
PATIENCE_MS: Final = 15_000
_FIRST_MS: Final = 100
_LONGEST_MS: Final = 5_000

_NUMBERS: Final = frozenset(
    {
        *(errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET),
        *(errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EPIPE, errno.ETIMEDOUT),
        getattr(errno, "EREMOTEIO", errno.EAGAIN),
    }
)
#: Names of classes in the libraries of stores: none of them is imported here.
_CLASSES: Final = frozenset(
    {
        *("ConnectionError", "TimeoutError", "Timeout", "ChunkedEncodingError"),  # requests
        *("HTTPClientError", "ConnectionClosedError", "ResponseParserError"),  # botocore
        *("ClientConnectionError", "ClientPayloadError", "ServerDisconnectedError"),  # aiohttp
        *("ServiceRequestError", "ServiceResponseError"),  # azure
        "FSTimeoutError",
    }
)
_TOO_MANY: Final = 429
_NOT_IMPLEMENTED: Final = 501
_SERVER_FAILED: Final = 500
_STATUSES: Final = ("status_code", "status", "code")


class Retries:
    """The tries of one step: pauses double up to 5 s, and end when patience does.

    Args:
        rng: draws a part of each pause, so that many do not come back at once.
        patience_ms: no try begins later than this after the first.
    """

    def __init__(self, now_ms: float, rng: Random, *, patience_ms: float = PATIENCE_MS) -> None:
        self._until_ms = now_ms + patience_ms
        self._rng = rng
        self._failures = 0

    def pause_ms(self, error: BaseException, now_ms: float) -> float | None:
        """Return how long to wait before the step is tried again; None if it is not."""
        if not passes(error):
            return None
        self._failures += 1
        pause = pause_after(self._failures, _FIRST_MS, _LONGEST_MS, self._rng)
        return pause if now_ms + pause <= self._until_ms else None


def passes(error: BaseException) -> bool:
    """Tell whether an error may be gone in a moment: a busy server, or one out of reach.

    An error that a library has made of another is judged by that one, too.
    """
    for seen in causes_of(error):
        if isinstance(seen, OSError) and seen.errno in _NUMBERS:
            return True
        if not _CLASSES.isdisjoint(each.__name__ for each in type(seen).__mro__):
            return True
        sources = (seen, getattr(seen, "response", None))
        for status in (getattr(each, name, None) for each in sources for name in _STATUSES):
            if isinstance(status, int) and (
                status == _TOO_MANY or (status >= _SERVER_FAILED and status != _NOT_IMPLEMENTED)
            ):
                return True
    return False
