"""The timers of one task."""

import heapq
from itertools import count


class TaskTimers:
    """Payloads and the times at which they are due.

    Invariant: they come in the order of their times, of equal ones in the order they were set.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, object]] = []
        self._ids = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, at_ms: int, payload: object) -> None:
        """Set a timer."""
        heapq.heappush(self._heap, (at_ms, next(self._ids), payload))

    def pop(self) -> object:
        """Take the payload that is due first."""
        return heapq.heappop(self._heap)[2]

    def after(self, now_ms: int) -> list[tuple[int, object]]:
        """Return all delays from now on and payloads, in the order in which they will come."""
        timers = sorted(self._heap, key=_order)
        return [(max(0, at_ms - now_ms), payload) for at_ms, _, payload in timers]

    @property
    def due_ms(self) -> int | None:
        """When the first one is due; None where there is none."""
        return self._heap[0][0] if self._heap else None


def _order(timer: tuple[int, int, object]) -> tuple[int, int]:
    return timer[:2]
