"""What windows give for a stream, replayed step by step from their definition.

All records are kept, and each firing is computed anew from those that it is about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from gearpy.ids import MAX_MS, MIN_MS

#: A trigger as plain data: ("count", n), ("event", ms), ("wall", ms), ("any", ...), ("all", ...).
Condition: TypeAlias = tuple[Any, ...]

EACH_RECORD: Final[Condition] = ("count", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    kind: Literal["tumbling", "sliding", "session", "count", "global"]
    size_ms: int = 10
    every_ms: int = 5
    offset_ms: int = 0
    gap_ms: int = 5
    records: int = 2
    clock: Literal["event", "processing"] = "event"
    early: Condition | None = None
    late: Condition | None = None
    is_bare: bool = False  #: The trigger stands alone, and is early and late.
    accumulation: Literal["discarding", "accumulating", "retracting"] = "discarding"
    lateness_ms: int = 0
    policy: Literal["drop", "restamp", "side"] = "drop"


class Arrival(NamedTuple):
    number: int
    wall_ms: int
    time_ms: int
    row: Any


class Firing(NamedTuple):
    """A result: the records that it is about stand for its value."""

    key: Any
    arrivals: tuple[Arrival, ...]
    start: int
    end: int
    firing: int
    timing: str
    retracts: bool
    time_ms: int


@dataclass(slots=True, eq=False)
class _Pane:
    key: Any
    start: int
    end: int
    order: int
    done: list[Arrival] = field(default_factory=list)
    fresh: list[Arrival] = field(default_factory=list)  # Since the last firing.
    firing: int = 0
    shown: list[Firing] = field(default_factory=list)  # What the next one would retract.
    has_closed: bool = False


class WindowReplay:
    def __init__(self, plan: WindowPlan, wall_ms: int = 0) -> None:
        self.late: list[Arrival] = []
        self.watermark_ms = MIN_MS
        self._plan = plan
        self._wall_ms = wall_ms
        self._panes: list[_Pane] = []
        self._arrived = self._begun = 0

    # -- steps -------------------------------------------------------------------------------

    def on_record(self, key: Any, row: Any, time_ms: int) -> list[Firing]:
        arrival = Arrival(self._arrived, self._wall_ms, time_ms, row)
        self._arrived += 1
        fired = self._add(key, arrival)
        if fired is None:
            self.late.append(arrival)
            fired = []
            if self._plan.policy == "restamp":
                fired = self._add(key, arrival._replace(time_ms=self.watermark_ms)) or []
        return fired

    def on_watermark(self, watermark_ms: int) -> list[Firing]:
        if watermark_ms <= self.watermark_ms:
            return []
        if self._plan.clock == "processing":
            self.watermark_ms = watermark_ms
            return self._step(MAX_MS) if watermark_ms == MAX_MS else []
        return self._steps_to(watermark_ms)

    def on_place(self, place_ms: int) -> list[Firing]:
        """Let event time come to a record in order, where windows may fire for it early."""
        fired: list[Firing] = []
        if self._plan.early is None:
            return fired
        while (due_ms := min(self._due_in_order(), default=MAX_MS)) <= place_ms:
            fired += self._steps_to(due_ms)
        return fired

    def on_wall(self, until_ms: int) -> list[Firing]:
        """Let wall time go on; what waits for it happens in the order of its times."""
        fired: list[Firing] = []
        while (due_ms := min(self._due(), default=until_ms + 1)) <= until_ms:
            self._wall_ms = due_ms
            fired += self._step(due_ms if self._plan.clock == "processing" else self.watermark_ms)
        self._wall_ms = until_ms
        return fired

    def on_clocks(self, event_ms: int, wall_ms: int) -> list[Firing]:
        """Let both times go on in one step, for what is asked only now and then."""
        self._wall_ms = wall_ms
        if self._plan.clock == "event":
            return self._steps_to(max(self.watermark_ms, event_ms))
        self.watermark_ms = max(self.watermark_ms, event_ms)
        return self._step(MAX_MS if event_ms == MAX_MS else wall_ms)

    def pass_wall(self, wall_ms: int) -> None:
        self._wall_ms = wall_ms

    @property
    def hold_ms(self) -> int:
        """Oldest event time that no result shows, of windows that have still to close."""
        fresh = [each for pane in self._panes if not pane.has_closed for each in pane.fresh]
        return min((each.time_ms for each in fresh), default=MAX_MS)

    # -- panes -------------------------------------------------------------------------------

    @property
    def _now_ms(self) -> int:
        return self._wall_ms if self._plan.clock == "processing" else self.watermark_ms

    def _add(self, key: Any, arrival: Arrival) -> list[Firing] | None:
        if self._plan.kind == "count":
            return self._add_counted(key, arrival)
        if self._plan.kind == "session":
            panes = self._session_of(key, arrival)
        else:
            panes = self._aligned_of(key, arrival)
        if not panes:
            return None
        fired: list[Firing] = []
        for pane in panes:
            pane.fresh.append(arrival)
            fired += self._if_due(pane)
        return fired

    def _add_counted(self, key: Any, arrival: Arrival) -> list[Firing]:
        pane = self._find(key, 0, MAX_MS)
        pane.fresh.append(arrival)
        if len(pane.fresh) < self._plan.records:
            return []
        self._panes.remove(pane)
        return self._fire(pane, "on-time")

    def _aligned_of(self, key: Any, arrival: Arrival) -> list[_Pane]:
        wall = self._plan.clock == "processing"
        bounds = self._bounds(arrival.wall_ms if wall else arrival.time_ms)
        return [self._find(key, *each) for each in bounds if self._is_open(each[1])]

    def _bounds(self, at_ms: int) -> Iterator[tuple[int, int]]:
        plan = self._plan
        if plan.kind == "global":
            yield MIN_MS, MAX_MS
            return
        every = plan.size_ms if plan.kind == "tumbling" else plan.every_ms
        newest = at_ms - (at_ms - plan.offset_ms) % every
        starts = range(newest, at_ms - plan.size_ms, -every)
        yield from sorted((start, start + plan.size_ms) for start in starts)

    def _is_open(self, end_ms: int) -> bool:
        return self._now_ms < end_ms + self._plan.lateness_ms

    def _find(self, key: Any, start: int, end: int) -> _Pane:
        for pane in self._panes:
            if (pane.key, pane.start, pane.end) == (key, start, end):
                return pane
        pane = _Pane(key, start, end, self._begun, has_closed=end <= self._now_ms)
        self._begun += 1
        self._panes.append(pane)
        return pane

    def _session_of(self, key: Any, arrival: Arrival) -> list[_Pane]:
        """Return the session of a record, made of all that it overlaps; none if it is late."""
        at_ms = arrival.wall_ms if self._plan.clock == "processing" else arrival.time_ms
        start, end = at_ms, at_ms + self._plan.gap_ms
        parts = [
            pane
            for pane in self._panes
            if pane.key == key and pane.start < end and start < pane.end
        ]
        start = min([start, *(pane.start for pane in parts)])
        end = max([end, *(pane.end for pane in parts)])
        if not self._is_open(end):
            return []
        merged = _Pane(
            key,
            start,
            end,
            min((pane.order for pane in parts), default=self._begun),
            done=sorted(each for pane in parts for each in pane.done),
            fresh=sorted(each for pane in parts for each in pane.fresh),
            firing=max((pane.firing for pane in parts), default=0),
            shown=[each for pane in sorted(parts, key=_bounds_of_pane) for each in pane.shown],
            has_closed=end <= self._now_ms,
        )
        self._begun += not parts
        self._panes = [pane for pane in self._panes if pane not in parts] + [merged]
        return [merged]

    # -- firings -----------------------------------------------------------------------------

    def _steps_to(self, watermark_ms: int) -> list[Firing]:
        """Let event time go on; triggers that wait for it are asked in the order of their times."""
        fired: list[Firing] = []
        while (due_ms := min(self._due_events(), default=watermark_ms)) < watermark_ms:
            self.watermark_ms = due_ms
            self._wall_ms, wall_ms = MIN_MS, self._wall_ms  # It is asked for at the end.
            fired += self._step(due_ms)
            self._wall_ms = wall_ms
        self.watermark_ms = watermark_ms
        return fired + self._step(watermark_ms)

    def _step(self, now_ms: int) -> list[Firing]:
        fired: list[Firing] = []
        for pane in sorted(self._panes, key=self._order_of):
            if not pane.has_closed and pane.end <= now_ms:
                pane.has_closed = True
                if pane.fresh or self._plan.accumulation != "discarding":
                    fired += self._fire(pane, "on-time")
            if pane.has_closed and pane.end + self._plan.lateness_ms <= now_ms:
                if pane.fresh:
                    fired += self._fire(pane, "late")
                self._panes.remove(pane)
            else:
                fired += self._if_due(pane)
        return fired

    def _order_of(self, pane: _Pane) -> tuple[int, int, int]:
        times = [each.time_ms for each in pane.fresh]
        if self._plan.kind == "count":
            return max(times) + 1, min(times), pane.order
        return pane.end, pane.start, pane.order

    def _if_due(self, pane: _Pane) -> list[Firing]:
        condition = self._condition_of(pane)
        if condition is None or not pane.fresh or not self._holds(condition, pane):
            return []
        return self._fire(pane, "late" if pane.has_closed else "early")

    def _condition_of(self, pane: _Pane) -> Condition | None:
        if pane.has_closed and not self._plan.is_bare:
            return self._plan.late or EACH_RECORD
        return self._plan.early

    def _holds(self, condition: Condition, pane: _Pane) -> bool:
        kind, *rest = condition
        if kind in {"any", "all"}:
            held = [self._holds(each, pane) for each in rest]
            return any(held) if kind == "any" else all(held)
        if kind == "count":
            return len(pane.fresh) >= int(rest[0])
        if kind == "wall" or self._plan.clock == "processing":
            return self._wall_ms >= min(each.wall_ms for each in pane.fresh) + int(rest[0])
        return self.watermark_ms >= min(each.time_ms for each in pane.fresh) + int(rest[0])

    def _fire(self, pane: _Pane, timing: str) -> list[Firing]:
        told = pane.fresh if self._plan.accumulation == "discarding" else pane.done + pane.fresh
        start, end, time_ms = pane.start, pane.end, pane.end - 1
        times = [each.time_ms for each in pane.done + pane.fresh]
        if self._plan.kind == "count":
            start, end, time_ms = min(times), max(times) + 1, max(times)
        elif self._plan.clock == "processing":
            time_ms = max(times)
        retractions = [each._replace(retracts=True) for each in pane.shown]
        firing = Firing(
            pane.key, tuple(sorted(told)), start, end, pane.firing, timing, False, time_ms
        )
        pane.done, pane.fresh = pane.done + pane.fresh, []
        pane.firing += 1
        pane.shown = [firing] if self._plan.accumulation == "retracting" else []
        return [*retractions, firing]

    def _due_events(self) -> Iterator[int]:
        for pane in self._panes:
            oldest_ms = min((each.time_ms for each in pane.fresh), default=MAX_MS)
            for delay_ms in _delays(self._condition_of(pane), "event"):
                if oldest_ms + delay_ms > self.watermark_ms:
                    yield oldest_ms + delay_ms

    def _due_in_order(self) -> Iterator[int]:
        """Return the event times, after now, at which something may happen."""
        yield from self._due_events()
        for pane in self._panes:
            for turn_ms in (pane.end, pane.end + self._plan.lateness_ms):
                if turn_ms > self.watermark_ms:
                    yield turn_ms

    def _due(self) -> Iterator[int]:
        """Return the wall times, after now, at which something may happen."""
        is_wall = self._plan.clock == "processing"
        for pane in self._panes:
            if is_wall and self._plan.kind != "count":
                yield pane.end
            since_ms = min((each.wall_ms for each in pane.fresh), default=MAX_MS)
            for delay_ms in _delays(self._condition_of(pane), "wall", *["event"] * is_wall):
                if since_ms + delay_ms > self._wall_ms:
                    yield since_ms + delay_ms


def _bounds_of_pane(pane: _Pane) -> tuple[int, int]:
    return pane.start, pane.end


def _delays(condition: Condition | None, *kinds: str) -> Sequence[int]:
    kind, *rest = condition or ("none",)
    if kind in {"any", "all"}:
        return [delay_ms for each in rest for delay_ms in _delays(each, *kinds)]
    return [rest[0]] if kind in kinds else []
