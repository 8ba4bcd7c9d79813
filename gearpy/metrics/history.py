"""Measurements by Gearpump's names: the newest, those of five minutes, those of three days.

Gearpump: `HistoryMetricsService`, `JvmMetricsSet`.
"""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from itertools import islice
from re import compile as regex
from typing import Final, Generic

from gearpy.messages.metrics import (
    GetHistory,
    HistoryData,
    HistoryItem,
    ProcessMetricsData,
    ProcessSample,
    ReadOption,
)
from gearpy.messages.type_variables import T
from gearpy.metrics.aggregators import aggregated
from gearpy.metrics.rings import Ring

#: Gearpump: ``retainRecentData`` and ``retainHistoryData``.
RECENT_MS: Final = 15_000
_RECENT_POINTS: Final = 20
_HISTORY_MS: Final = 3_600_000
_HISTORY_POINTS: Final = 72
#: In one answer, whatever a client asks for.
_ITEMS_MAX: Final = 2000


class History(Generic[T]):
    """The rings of one keeper of measurements. Gearpump: `HistoryMetricsService`."""

    def __init__(self, items: Callable[[int, T], Iterable[HistoryItem]]) -> None:
        self._items = items
        self._rings: dict[ReadOption, Ring[T]] = {
            "readRecent": Ring(interval_ms=RECENT_MS, points=_RECENT_POINTS),
            "readHistory": Ring(interval_ms=_HISTORY_MS, points=_HISTORY_POINTS),
        }

    def on_tick(self, at_ms: int, point: Callable[[], T]) -> None:
        due = [ring for ring in self._rings.values() if ring.is_due(at_ms)]
        if due:
            made = point()
            for ring in due:
                ring.add(at_ms, made)

    def answer(self, question: GetHistory, at_ms: int, latest: T) -> HistoryData:
        points = self.points(question.read_option, at_ms, latest)
        return named(question, (item for point in points for item in self._items(*point)))

    def points(self, option: ReadOption, at_ms: int, latest: T) -> list[tuple[int, T]]:
        ring = self._rings.get(option)
        return [(at_ms, latest)] if ring is None else ring.since()


class ProcessHistory:
    """The measurements of a master or worker, newest and past."""

    def __init__(self, name: str, sample: Callable[[], ProcessSample]) -> None:
        self.name = name
        self._sample = sample
        self._history: History[ProcessSample] = History(
            lambda at_ms, point: process_items(self.name, at_ms, point)
        )

    def on_tick(self, at_ms: int) -> None:
        self._history.on_tick(at_ms, self._sample)

    def answer(self, question: GetHistory, at_ms: int) -> HistoryData:
        return self._history.answer(question, at_ms, self._sample())

    def latest(self, at_ms: int, gauges: dict[str, float] | None = None) -> ProcessMetricsData:
        return ProcessMetricsData(
            name=self.name, at_ms=at_ms, process=self._sample(), gauges=gauges or {}
        )


def named(question: GetHistory, items: Iterable[HistoryItem]) -> HistoryData:
    pattern = regex(translate(f"{question.path}*"))
    asked = (item for item in items if pattern.match(item.name))
    limit = max(0, min(question.limit, _ITEMS_MAX))
    return HistoryData(path=question.path, items=tuple(islice(aggregated(question, asked), limit)))


def process_items(prefix: str, at_ms: int, sample: ProcessSample) -> Iterator[HistoryItem]:
    values = {"memory.total.used": sample.rss_bytes, "thread.count": sample.threads}
    for name, value in values.items():
        if value >= 0:
            yield HistoryItem(
                at_ms=at_ms, name=f"{prefix}:{name}", kind="gauge", values={"value": float(value)}
            )
