"""Windows and triggers by brute force: all records are kept, and all panes looked at each time.

Written from what is promised, not from the code: nothing is folded, scheduled or remembered.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gearpy.core.window.trigger import (
    AfterWatermark,
    AllOf,
    AnyOf,
    EveryCount,
    EveryEvent,
    EveryWall,
)
from gearpy.core.window.windows import (
    AlignedWindows,
    CountWindows,
    GlobalWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    Windows,
)
from gearpy.ids import MAX_MS, MIN_MS

__all__ = ["Oracle", "Row"]

#: Key, records, start, end, number, timing, whether it retracts, event time.
Row = tuple[Any, list[Any], int, int, int, str, bool, int]


@dataclass(frozen=True)
class Came:
    """A record, and when."""

    value: Any
    time_ms: int
    now_ms: int
    number: int


@dataclass(eq=False)
class Pane:
    """What one key has in one window."""

    key: Any
    start: int
    end: int
    records: list[Came] = field(default_factory=list)
    unfired: list[Came] = field(default_factory=list)
    firings: int = 0
    sent: list[Row] = field(default_factory=list)
    begun: int = 0


class Oracle:
    """See the module."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.clock = MIN_MS
        self.panes: list[Pane] = []
        self.came = 0

    # -- events ------------------------------------------------------------------------------

    def add(self, key: Any, value: Any, time_ms: int, now_ms: int) -> list[Row] | None:
        """Take a record; None if it is late."""
        self.came += 1
        record = Came(value, time_ms, now_ms, self.came)
        panes = self.panes_for(key, record)
        if not panes:
            return None
        out: list[Row] = []
        for pane in panes:
            pane.records.append(record)
            pane.unfired.append(record)
            out += self.after_record(pane, now_ms)
        return out

    def after_record(self, pane: Pane, now_ms: int) -> list[Row]:
        """Return what a pane puts out that has got one more record."""
        if isinstance(self.windows, CountWindows):
            if len(pane.records) < self.windows.records:
                return []
            self.panes.remove(pane)
            return self.fire(pane, "on-time")
        timing = "late" if pane.end <= self.clock else "early"
        return self.fire(pane, timing) if self.wants(pane, timing, now_ms) else []

    def advance(self, event_ms: int, now_ms: int) -> list[Row]:
        """Let time pass."""
        is_wall = self.windows.clock == "processing" and event_ms < MAX_MS
        before, self.clock = self.clock, max(self.clock, now_ms if is_wall else event_ms)
        return [
            row
            for pane in sorted(self.panes, key=self.order)
            for row in self.at_time(pane, before, now_ms)
        ]

    def order(self, pane: Pane) -> tuple[int, int, int]:
        """Return when a pane fires among others."""
        start, end = self.bounds(pane)
        return end, start, pane.begun

    def at_time(self, pane: Pane, before: int, now_ms: int) -> Iterator[Row]:
        """Yield what a pane puts out as time has passed."""
        if isinstance(self.windows, CountWindows):
            if self.clock == MAX_MS:
                self.panes.remove(pane)
                yield from self.fire(pane, "on-time")
            return
        is_over = pane.end + self.windows.allowed_lateness_ms <= self.clock or self.clock == MAX_MS
        timing = "late" if pane.end <= self.clock else "early"
        if before < pane.end <= self.clock:
            timing = "on-time"
            fires = bool(pane.unfired) or self.windows.accumulation != "discarding"
        elif is_over:
            fires = bool(pane.unfired)
        else:
            fires = self.wants(pane, timing, now_ms)
        if fires:
            yield from self.fire(pane, timing)
        if is_over:
            self.panes.remove(pane)

    @property
    def hold(self) -> int:
        """Oldest event time that no result shows, of windows that have still to close."""
        return min(
            (
                record.time_ms
                for pane in self.panes
                if isinstance(self.windows, CountWindows) or pane.end > self.clock
                for record in pane.unfired
            ),
            default=MAX_MS,
        )

    # -- windows -----------------------------------------------------------------------------

    def panes_for(self, key: Any, record: Came) -> list[Pane]:
        """Return the panes of a record; new ones where there are none."""
        windows = self.windows
        at = max(record.now_ms, self.clock) if windows.clock == "processing" else record.time_ms
        if isinstance(windows, CountWindows):
            return [self.pane(key, 0, 0, begun=record.number * 1000)]
        if isinstance(windows, SessionWindows):
            return self.session_for(key, at, windows.gap_ms, record)
        bounds = [each for each in self.holding(at) if not self.is_over(each[1])]
        return [
            self.pane(key, start, end, begun=record.number * 1000 + place)
            for place, (start, end) in enumerate(bounds)
        ]

    def holding(self, at: int) -> list[tuple[int, int]]:
        """Return the windows that hold a time, by looking at many."""
        windows = self.windows
        if isinstance(windows, GlobalWindows):
            return [(MIN_MS, MAX_MS)]
        assert isinstance(windows, TumblingWindows | SlidingWindows)
        step = windows.every_ms if isinstance(windows, SlidingWindows) else windows.size_ms
        first = (at - windows.size_ms - windows.offset_ms) // step
        starts = [
            windows.offset_ms + step * (first + n) for n in range(windows.size_ms // step + 3)
        ]
        return [
            (start, start + windows.size_ms)
            for start in starts
            if start <= at < start + windows.size_ms
        ]

    def session_for(self, key: Any, at: int, gap: int, record: Came) -> list[Pane]:
        """Return the session that comes of a record and those that it overlaps."""
        start, end = at, at + gap
        parts = [
            pane
            for pane in sorted(self.panes, key=lambda pane: pane.start)
            if pane.key == key and pane.start < end and pane.end > start
        ]
        start = min([start, *(pane.start for pane in parts)])
        end = max([end, *(pane.end for pane in parts)])
        if self.is_over(end):
            return []
        for pane in parts:
            self.panes.remove(pane)
        merged = Pane(
            key,
            start,
            end,
            [each for pane in parts for each in pane.records],
            sorted((each for pane in parts for each in pane.unfired), key=lambda each: each.number),
            max((pane.firings for pane in parts), default=0),
            [row for pane in parts for row in pane.sent],
            min((pane.begun for pane in parts), default=record.number),
        )
        self.panes.append(merged)
        return [merged]

    def is_over(self, end: int) -> bool:
        """Tell whether nothing is taken any more."""
        return end + self.windows.allowed_lateness_ms <= self.clock or self.clock == MAX_MS

    def pane(self, key: Any, start: int, end: int, *, begun: int) -> Pane:
        """Return a pane, a new one if there is none."""
        for pane in self.panes:
            if (pane.key, pane.start, pane.end) == (key, start, end):
                return pane
        self.panes.append(Pane(key, start, end, begun=begun))
        return self.panes[-1]

    def bounds(self, pane: Pane) -> tuple[int, int]:
        """Return start and end of a window."""
        if isinstance(self.windows, CountWindows):
            times = [record.time_ms for record in pane.records]
            return min(times), max(times) + 1
        return pane.start, pane.end

    # -- triggers ----------------------------------------------------------------------------

    def wants(self, pane: Pane, timing: str, now_ms: int) -> bool:
        """Tell whether the trigger lets a pane fire."""
        trigger = self.windows.trigger
        if isinstance(trigger, AfterWatermark):
            late = trigger.late if trigger.late is not None else EveryCount(1)
            return self.holds(late if timing == "late" else trigger.early, pane, now_ms)
        return self.holds(trigger, pane, now_ms)

    def holds(self, trigger: Any, pane: Pane, now_ms: int) -> bool:
        """Tell whether a trigger holds."""
        if trigger is None or not pane.unfired:
            return False
        if isinstance(trigger, EveryCount):
            return len(pane.unfired) >= trigger.records
        if isinstance(trigger, AnyOf):
            return any(self.holds(each, pane, now_ms) for each in trigger.triggers)
        if isinstance(trigger, AllOf):
            return all(self.holds(each, pane, now_ms) for each in trigger.triggers)
        assert isinstance(trigger, EveryEvent | EveryWall)
        if isinstance(trigger, EveryWall) or self.windows.clock == "processing":
            return now_ms >= pane.unfired[0].now_ms + trigger.interval_ms
        oldest = min(record.time_ms for record in pane.unfired)
        return self.clock >= oldest + trigger.interval_ms

    def fire(self, pane: Pane, timing: str) -> list[Row]:
        """Put out what a pane has come to."""
        is_discarding = self.windows.accumulation == "discarding"
        records = pane.unfired if is_discarding else pane.records
        start, end = self.bounds(pane)
        is_wall = self.windows.clock == "processing"
        time = max(record.time_ms for record in pane.records) if is_wall else end - 1
        values = [record.value for record in records]
        row = (pane.key, values, start, end, pane.firings, timing, False, time)
        out = [(*sent[:6], True, sent[7]) for sent in pane.sent] + [row]
        pane.firings += 1
        pane.unfired = []
        if self.windows.accumulation == "retracting":
            pane.sent = [row]
        return out


assert issubclass(GlobalWindows, AlignedWindows)
