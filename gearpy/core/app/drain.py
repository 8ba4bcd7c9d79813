"""Drains: the time limits of an end that a user has asked for."""

from typing import Final

#: What is stopped since it took too long has so long to stop.
_GRACE_MS: Final = 2_000


class Drain:
    """The time limits of a drain: when it has failed, and when the remaining executors are killed.

    Invariant: a drain is late before its executors are killed.

    Args:
        now_ms: when it was asked for.
        timeout_ms: until it has failed.
    """

    def __init__(self, *, now_ms: int, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._until_ms = now_ms + timeout_ms

    def is_late(self, now_ms: int) -> bool:
        """Tell whether it should have ended by now."""
        return now_ms >= self._until_ms

    def has_had_grace(self, now_ms: int) -> bool:
        """Tell whether the running tasks were given time to stop after that."""
        return now_ms >= self._until_ms + _GRACE_MS
