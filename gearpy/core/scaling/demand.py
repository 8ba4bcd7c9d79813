"""The work that one step has had lately, and how many tasks that is worth."""

import math
from collections import deque
from typing import Final

from gearpy.messages.summaries import ScaleBounds

#: Slices of a cool-down: to grow, the last ones must agree; to shrink, all of them.
SLICES: Final = 6
_TO_GROW: Final = 2
#: Work that is above what fits by so little is not worth a task.
_ROUNDING: Final = 0.02


class Demand:
    """The work of one step, in tasks that would be busy all the time, by slices of a cool-down.

    Growing is quick and shrinking slow, so that noise does not make tasks come and go: more tasks
    if the last two slices ask for them, fewer only if all slices would be content.
    """

    def __init__(self, slice_ms: int) -> None:
        self._slice_ms = slice_ms
        self._slices: deque[float] = deque(maxlen=SLICES)
        self._began_ms: int | None = None
        self._total, self._count = 0.0, 0

    def add(self, work: float, now_ms: int) -> None:
        if self._began_ms is None:
            self._began_ms = now_ms
        self._total += work
        self._count += 1
        if now_ms - self._began_ms >= self._slice_ms:
            self._slices.append(self._total / self._count)
            self._began_ms, self._total, self._count = now_ms, 0.0, 0

    def clear(self) -> None:
        self._slices.clear()
        self._began_ms, self._total, self._count = None, 0.0, 0

    @property
    def newest(self) -> float | None:
        return self._slices[-1] if self._slices else None

    def wanted(self, tasks: int, bounds: ScaleBounds) -> int:
        if not bounds.least <= tasks <= bounds.most:
            return min(max(tasks, bounds.least), bounds.most)
        slices = [*self._slices]
        lately = slices[-_TO_GROW:]
        too_busy = tasks * (bounds.busy + 1) / 2
        if len(lately) == _TO_GROW and min(lately) > too_busy:
            return min(
                max(1, math.ceil(min(lately) / (bounds.busy * (1 + _ROUNDING)))), bounds.most
            )
        if len(slices) == SLICES:
            return max(
                min(max(1, math.ceil(max(slices) / (bounds.busy * (1 + _ROUNDING)))), tasks),
                bounds.least,
            )
        return tasks
