"""Measurements by Gearpump's names: the newest, those of five minutes, those of three days.

Gearpump: `HistoryMetricsService`, `JvmMetricsSet`.
"""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from re import compile as regex
from typing import Final

from gearpy.messages.metrics import (
    GetHistory,
    HistoryData,
    HistoryItem,
    ProcessMetricsData,
    ProcessSample,
)
from gearpy.metrics.rings import Ring

__all__ = ["RECENT_MS", "History", "ProcessHistory", "process_items"]

#: Gearpump: ``retainRecentData`` and ``retainHistoryData``.
RECENT_MS: Final = 15_000
_RECENT_POINTS: Final = 20
_HISTORY_MS: Final = 3_600_000
_HISTORY_POINTS: Final = 72
#: In one answer, whatever a client asks for.
_ITEMS_MAX: Final = 2000


class History:
    """The rings of one keeper of measurements. Gearpump: `HistoryMetricsService`."""

    def __init__(self) -> None:
        self._recent: Ring[tuple[HistoryItem, ...]] = Ring(
            interval_ms=RECENT_MS, points=_RECENT_POINTS
        )
        self._long: Ring[tuple[HistoryItem, ...]] = Ring(
            interval_ms=_HISTORY_MS, points=_HISTORY_POINTS
        )

    def on_tick(self, at_ms: int, items: Callable[[], tuple[HistoryItem, ...]]) -> None:
        """Keep a point in each ring where one is due."""
        due = [ring for ring in (self._recent, self._long) if ring.is_due(at_ms)]
        if due:
            point = items()
            for ring in due:
                ring.add(at_ms, point)

    def answer(self, question: GetHistory, latest: Iterable[HistoryItem]) -> HistoryData:
        """Return the items that a question names."""
        pattern = regex(translate(f"{question.path}*"))
        kept = [each for each in self._read(question, latest) if pattern.match(each.name)]
        limit = max(0, min(question.limit, _ITEMS_MAX))
        return HistoryData(path=question.path, items=tuple(kept[:limit]))

    def _read(self, question: GetHistory, latest: Iterable[HistoryItem]) -> Iterable[HistoryItem]:
        match question.read_option:
            case "readLatest":
                return latest
            case "readRecent":
                return _all_of(self._recent)
            case "readHistory":
                return _all_of(self._long)


class ProcessHistory:
    """The measurements of a master or worker, newest and past.

    Args:
        name: Gearpump's name of it: ``master``, or ``worker`` with its number.
        sample: measures the process.
    """

    def __init__(self, name: str, sample: Callable[[], ProcessSample]) -> None:
        self.name = name
        self._sample = sample
        self._history = History()

    def on_tick(self, at_ms: int) -> None:
        """Keep what is due."""
        self._history.on_tick(at_ms, lambda: tuple(self._items(at_ms)))

    def answer(self, question: GetHistory, at_ms: int) -> HistoryData:
        """Return the measurements that a question names."""
        return self._history.answer(question, self._items(at_ms))

    def latest(self, at_ms: int, gauges: dict[str, float] | None = None) -> ProcessMetricsData:
        """Return the newest measurements, beside counts that the caller knows."""
        return ProcessMetricsData(
            name=self.name, at_ms=at_ms, process=self._sample(), gauges=gauges or {}
        )

    def _items(self, at_ms: int) -> Iterator[HistoryItem]:
        return process_items(self.name, at_ms, self._sample())


def process_items(prefix: str, at_ms: int, sample: ProcessSample) -> Iterator[HistoryItem]:
    """Yield the measurements of a process by Gearpump's names, as far as Python has them."""
    values = {"memory.total.used": sample.rss_bytes, "thread.count": sample.threads}
    for name, value in values.items():
        if value >= 0:
            yield HistoryItem(
                at_ms=at_ms, name=f"{prefix}:{name}", kind="gauge", values={"value": float(value)}
            )


def _all_of(ring: Ring[tuple[HistoryItem, ...]]) -> list[HistoryItem]:
    return [item for _, items in ring.since() for item in items]
