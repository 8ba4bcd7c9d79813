"""What a task promises downstream: as much as was promised to it, less what it holds up."""

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.interfaces import Task
from gearpy.task.runtime.outlet import Outlet

__all__ = ["Promises"]


class Promises:
    """Passes on watermarks and idleness as far as `Task.passes_ms` lets.

    A task is not idle as long as it holds a watermark up: what it has will come.

    Args:
        outlet: tells them.
    """

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._is_idle = False
        self.promised_ms = MIN_MS  #: By the inputs, or by the task itself if it has none.

    def restore(self, promised_ms: int, watermark_ms: int) -> None:
        """Go on from what had been promised, and what of that had been passed on."""
        self.promised_ms = max(promised_ms, watermark_ms)
        self._outlet.restore(watermark_ms)

    def pass_on(self, watermark_ms: int, task: Task | None) -> None:
        """Take a promise; what was put out before must have been sent."""
        self.promised_ms = max(self.promised_ms, watermark_ms)
        passes_ms = MAX_MS if task is None else task.passes_ms
        idle = self._is_idle and passes_ms == MAX_MS
        self._outlet.announce(min(self.promised_ms, passes_ms), idle=idle)

    def set_idle(self, idle: bool, task: Task | None) -> None:  # noqa: FBT001 - its only question
        """Learn whether nothing comes at present."""
        if not (idle or self._is_idle):
            return  # The rule, with each batch.
        self._is_idle = idle
        idle = idle and (task is None or task.passes_ms == MAX_MS)
        self._outlet.announce(self._outlet.watermark_ms, idle=idle)
