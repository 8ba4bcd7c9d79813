"""The timers of one task, and when it is called since wall time has passed."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from operator import itemgetter

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Task


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
        heapq.heappush(self._heap, (at_ms, next(self._ids), payload))

    def pop(self) -> object:
        return heapq.heappop(self._heap)[2]

    def after(self, now_ms: int) -> list[tuple[int, object]]:
        timers = sorted(self._heap, key=itemgetter(0, 1))
        return [(max(0, at_ms - now_ms), payload) for at_ms, _, payload in timers]

    @property
    def due_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None


class Wakes:
    """Asks a task when it wants to be called. Nothing is set, so nothing outlives its reason.

    Invariant: a task is woken at most once in each ms, so that one that always wants to be lets
    records through.
    """

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._woken_ms = MIN_MS

    def wait_ms(self, task: Task, clock_ms: int) -> int | None:
        """Return how long until the task is to be called; None if it is not waiting for it.

        At the end of the stream, which ``clock_ms`` may have come to, nothing is called any more,
        as the end may have been stored, and results would be lost: but for a record that was
        injected since then.
        """
        at_ms = task.wake_ms
        if at_ms is None or at_ms >= MAX_MS:
            return None
        if clock_ms == MAX_MS and task.hold_ms == MAX_MS:
            return None
        now_ms = self._wall_ms()
        return max(at_ms - now_ms, 1 if now_ms == self._woken_ms else 0)

    def wake(self, task: Task) -> Iterator[Batch]:
        self._woken_ms = self._wall_ms()
        yield from task.on_wake(self._woken_ms) or ()


def earlier_of(one_ms: int | None, other_ms: int | None) -> int | None:
    """Return the earlier of two times; None is never."""
    if one_ms is None or (other_ms is not None and other_ms < one_ms):
        return other_ms
    return one_ms


def is_due(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and at_ms <= now_ms
