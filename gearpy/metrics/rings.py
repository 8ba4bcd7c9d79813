"""The last points in time of something measured, bounded."""

from collections import deque
from typing import Generic

from gearpy.messages.type_variables import T


class Ring(Generic[T]):
    """Keeps the first point of each interval, and as many intervals as there is room for.

    Gearpump: `HistoryMetricsService`, which keeps the first sample of each window, too.
    """

    def __init__(self, *, interval_ms: int, points: int) -> None:
        assert interval_ms > 0 < points
        self.interval_ms = interval_ms
        self._points: deque[tuple[int, T]] = deque(maxlen=points)

    def is_due(self, now_ms: int) -> bool:
        """Tell whether a point would be kept; time that went back begins anew."""
        if not self._points:
            return True
        last_ms = self._points[-1][0]
        return now_ms // self.interval_ms != last_ms // self.interval_ms

    def add(self, now_ms: int, point: T) -> bool:
        if not self.is_due(now_ms):
            return False
        if self._points and now_ms < self._points[-1][0]:
            self._points.clear()
        self._points.append((now_ms, point))
        return True

    def since(self, after_ms: int = -1) -> list[tuple[int, T]]:
        return [point for point in self._points if point[0] > after_ms]

    def __len__(self) -> int:
        return len(self._points)
