"""Turns of tasks that last: which to tell of, and which one has lasted too long.

A turn is one call of a task, on one thread. When it began is in monotonic ms.
"""

from collections.abc import Mapping
from typing import Final

from gearpy.ids import TaskId

#: A turn that has lasted so long is told of. Most are over within a few ms.
LONG_MS: Final = 2000


def long_of(began_ms: Mapping[TaskId, int], now_ms: int) -> dict[TaskId, int]:
    return {task: now_ms - at for task, at in began_ms.items() if now_ms - at >= LONG_MS}


class TurnLimit:
    """Finds the turn for which a whole process is given up.

    Invariant: it is found once, and there is no second one, as one is reason enough.
    """

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._is_found = False

    def overdue(self, began_ms: Mapping[TaskId, int], now_ms: int) -> TaskId | None:
        if self._is_found or not self._limit_ms or not began_ms:
            return None
        first = min(began_ms, key=lambda task: (began_ms[task], task))
        if now_ms - began_ms[first] < self._limit_ms:
            return None
        self._is_found = True
        return first
