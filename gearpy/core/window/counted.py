"""Panes of count windows: so many records of a key, in the order in which they come."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gearpy.core.base.agenda import OldestTime
from gearpy.core.window.panes import (
    FRESH,
    NEWEST_MS,
    OLDEST_MS,
    ORDER,
    Bounds,
    ChangedKeys,
    Fired,
    Pane,
    PaneFold,
    PaneRules,
)
from gearpy.core.window.windows import CountWindows
from gearpy.ids import MAX_MS, MIN_MS

_NOTHING: Final[Sequence[Fired]] = ()


class CountPanes(ChangedKeys):
    """Keeps a pane for each key; it fires when it is full, or when the stream ends.

    A window begins at its oldest record and ends behind its newest one.

    Invariant: no pane has as many records as fill a window.
    """

    wake_ms = next_ms = MAX_MS
    fires_early = False

    def __init__(self, windows: CountWindows, fold: PaneFold) -> None:
        super().__init__()
        self.clock_ms = MIN_MS
        self._records = windows.records
        self._rules = PaneRules(windows, fold)
        self._unfired = OldestTime()

    @property
    def count(self) -> int:
        return len(self.panes)

    def add(self, key: Any, record: Any, time_ms: int, now_ms: int) -> Sequence[Fired] | None:
        before = self.panes.get(key)
        self.touched.add(key)  # Before it changes.
        if before is None:
            after = self._rules.begun(self._orders, record, time_ms, now_ms)
        else:
            after = self._rules.grown(before, record, time_ms, now_ms)
        out = self._fired(key, after) if after[FRESH] == self._records else _NOTHING
        self._orders += 1
        self._unfired.move(before and before[OLDEST_MS], None if out else after[OLDEST_MS])
        if not out:
            self.panes[key] = after
        elif before is None:
            self._untouch(key)
        else:
            del self.panes[key]
            self._note_end(key, before[ORDER])
        return out

    def add_plainly(self, places: Iterator[int], *_: object) -> bool:
        """Take no record but by `add`; see `SessionPanes.add_plainly`."""
        return next(places, None) is None

    def advance(self, event_ms: int, now_ms: int) -> Iterator[Fired | None]:
        """Move event time on; yield the firings of all panes, if it has ended."""
        self.clock_ms = max(self.clock_ms, event_ms)
        if event_ms < MAX_MS:
            return
        for key, pane in sorted(self.panes.items(), key=_by_end):
            self.touched.add(key)
            yield from self._fired(key, pane)
            self._unfired.remove(pane[OLDEST_MS])
            del self.panes[key]
            self._note_end(key, pane[ORDER])

    @property
    def hold_ms(self) -> int:
        return self._unfired.oldest_ms

    def restore(self, clock_ms: int, panes: Mapping[Any, Pane]) -> None:
        """Go on from the clock and the panes that there were; called before all else."""
        self.clock_ms = clock_ms
        self.panes = dict(panes)
        self._orders = self._told = 1 + max((pane[ORDER] for pane in panes.values()), default=-1)
        for pane in panes.values():
            self._unfired.add(pane[OLDEST_MS])

    def _fired(self, key: Any, pane: Pane) -> Sequence[Fired]:
        return self._rules.last_of(
            key, Bounds(pane[OLDEST_MS], pane[NEWEST_MS] + 1), pane, "on-time"
        )


def _by_end(item: tuple[Any, Pane]) -> tuple[int, int, int]:
    pane = item[1]
    return pane[NEWEST_MS], pane[OLDEST_MS], pane[ORDER]
