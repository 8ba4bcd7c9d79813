"""Looks: what a cluster has answered about an application, at one time."""

from collections import deque
from typing import Final

from msgspec import Struct

from gearpy.messages.metrics import MetricsData, SeriesData
from gearpy.messages.summaries import ApplicationDetail, ApplicationSummary

#: Rates are over so long: executors report once a second, and not all at once.
_SPAN_MS: Final = 4_000
_LOOKS_MAX: Final = 64


class Look(Struct, frozen=True, kw_only=True):
    """The answers about one application that were got together."""

    at_ms: int
    summary: ApplicationSummary
    detail: ApplicationDetail | None = None
    metrics: MetricsData | None = None
    series: SeriesData | None = None

    @property
    def known_ms(self) -> int:
        return self.detail.known_ms if self.detail else 0


class Looks:
    """Keeps looks for as long as rates need them.

    Invariant: `before` is older than the newest look by as much as is kept, at most by a span and
    the pause between two looks.
    """

    def __init__(self) -> None:
        self._kept: deque[Look] = deque(maxlen=_LOOKS_MAX)

    def add(self, look: Look) -> None:
        self._kept.append(look)
        while len(self._kept) > 1 and look.at_ms - self._kept[1].at_ms >= _SPAN_MS:
            self._kept.popleft()

    @property
    def newest(self) -> Look | None:
        return self._kept[-1] if self._kept else None

    @property
    def before(self) -> Look | None:
        return self._kept[0] if len(self._kept) > 1 else None
