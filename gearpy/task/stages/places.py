"""The stage that tells records by their place in the stream: the first ones, or all behind them."""

from collections.abc import Iterator
from typing import Any

from gearpy.ids import MAX_MS
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.output import Columns


class PlaceStage:
    """Lets the first records pass, or all but these; counts over restarts.

    Args:
        context: of the one task that has the stage.
        name: for people; the count is found without it.
        count: the number of first records.
        is_first: these pass; else all others.
    """

    hold_ms = MAX_MS
    place = 0

    def __init__(self, context: TaskContext, name: str, count: int, *, is_first: bool) -> None:
        self.name = name
        self._count = count
        self._is_first = is_first
        self._came = 0

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Yield the records that pass."""
        left = self._count - self._came
        self._came += min(left, len(values))
        passing = slice(left) if self._is_first else slice(left, None)
        if values[passing]:
            yield values[passing], timestamps[passing]

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Nothing waits."""
        return iter(())

    def snapshot(self) -> int:
        """Return the number of records that came, up to those counted."""
        return self._came

    def restore(self, state: int | None) -> None:
        """Go on counting."""
        self._came = min(state or 0, self._count)

    def close(self, *, completed: bool) -> None:
        """Nothing to release."""
