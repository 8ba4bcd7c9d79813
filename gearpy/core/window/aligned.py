"""Panes of windows that are the same for all keys: tumbling, sliding, and the one of all time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias

from gearpy.core.base.in_pieces import LOOKED_AT_ONCE, emptied, in_order
from gearpy.core.window.panes import (
    FRESH,
    OLDEST_MS,
    ORDER,
    SINCE_MS,
    Bounds,
    Fired,
    Pane,
    PaneFold,
    Phase,
    TimedPanes,
    rules_of,
)
from gearpy.core.window.trigger import Pending, records_wanted
from gearpy.core.window.windows import AlignedWindows, OverlappingWindows
from gearpy.ids import MAX_MS, MIN_MS

_NOTHING: Final[Sequence[Fired]] = ()

#: The panes of a window whose triggers are due: numbers and keys, by key.
_Asked: TypeAlias = dict[Any, tuple[int, Any]]
_NUMBER: Final = itemgetter(0)


class Panes(Protocol):
    """Panes of a window by key, as dicts have them."""

    def get(self, key: Any, /) -> Pane | None:
        """Return that of a key."""
        ...

    def __getitem__(self, key: Any, /) -> Pane: ...

    def __setitem__(self, key: Any, pane: Pane, /) -> None: ...

    def __contains__(self, key: Any, /) -> bool: ...

    def __iter__(self) -> Iterator[Any]: ...


class AlignedPanes(TimedPanes[int, tuple[int, Any]]):
    """Keeps panes by window and key; takes records, gives firings.

    A record is taken by all windows that hold its time, unless the clock has come to their end and
    the lateness that is allowed. What is put out by one step of the clock comes by end and start
    of the windows, then in the order in which their keys came.

    Invariant: what is put out is a function of the records, the steps of the clocks, and nothing
    else, wherever state is taken out and put in again in between.

    Attributes:
        panes: of each window, by start: panes by key. Only added to until the window is freed. The
            owner may let others stand for them.
        touched: of each window, the keys whose panes have changed; emptied by the owner.
        clock_ms: how far the clock of the windows is.
    """

    def __init__(self, windows: AlignedWindows, fold: PaneFold) -> None:
        super().__init__(rules_of(windows, fold, shares=isinstance(windows, OverlappingWindows)))
        self.panes: dict[int, Panes] = {}
        self.touched: defaultdict[int, set[Any]] = defaultdict(set)
        self._windows = windows
        #: How many records make a pane fire early that has none since it has fired.
        self.records_missing_anew = records_wanted(
            self._rules.early.trigger, Pending(0, MAX_MS, MAX_MS, MIN_MS, MIN_MS)
        )

    @property
    def count(self) -> int:
        return sum(1 for panes in self.panes.values() for _ in panes)

    # -- records -----------------------------------------------------------------------------

    def add(self, key: Any, record: Any, time_ms: int, now_ms: int) -> Sequence[Fired] | None:
        """Take a record; return its firings, or None if it is too late for all windows.

        What user code raises leaves everything as it was.
        """
        hash(key)  # What can be no key raises before anything has changed.
        rules = self._rules
        at_ms = max(now_ms, self.clock_ms) if rules.is_wall else time_ms
        taken: list[tuple[Bounds, Pane | None, Pane]] = []
        for start_ms in self._windows.starts_of(at_ms):
            bounds = Bounds(start_ms, self._windows.end_of(start_ms))
            if self._expiry_ms(bounds) <= self.clock_ms:
                continue
            before = self.panes[start_ms].get(key) if start_ms in self.panes else None
            if before is None:
                after = rules.begun(self._orders + len(taken), record, time_ms, now_ms)
            else:
                after = rules.grown(before, record, time_ms, now_ms)
            taken.append((bounds, before, after))
        if not taken:
            return None
        return self._keep(key, taken, now_ms)

    def add_plainly(
        self, places: Iterator[int], keys: list[Any], records: list[Any], times: list[int]
    ) -> bool:
        """Take records as long as they are of the most frequent kind by far, at little cost.

        The key of such a one has something in all of its windows, of which none has closed, and is
        older there.

        Args:
            places: of the records that are left; the one that it gave last was not taken.

        Returns:
            Whether all were taken.
        """
        if not self._is_plain:
            return next(places, None) is None
        windows, clock_ms, all_panes = self._windows, self.clock_ms, self.panes
        grown = self._rules.grown
        for at in places:
            key, record, time_ms = keys[at], records[at], times[at]
            starts = windows.starts_of(time_ms)
            if windows.end_of(starts[0]) <= clock_ms:
                return False
            found: list[tuple[Panes, int, Pane]] = []
            for start_ms in starts:
                panes = all_panes.get(start_ms)
                pane = None if panes is None else panes.get(key)
                if pane is None or not pane[FRESH] or time_ms < pane[OLDEST_MS]:
                    return False
                assert panes is not None, "a pane is in it"
                found.append((panes, start_ms, pane))
            # Not before all are found: a value may change as it takes the record.
            grown_now = [grown(pane, record, time_ms, 0) for _, _, pane in found]
            for (panes, start_ms, _), pane in zip(found, grown_now, strict=True):
                panes[key] = pane
                self.touched[start_ms].add(key)
        return True

    def records_missing(self, key: Any, time_ms: int, now_ms: int) -> int:
        """Return how many records, not older than event time, make the pane of one fire early."""
        (start_ms,) = self._windows.starts_of(time_ms)
        pane = self.panes[start_ms].get(key) if start_ms in self.panes else None
        if pane is None or not pane[FRESH]:
            return self.records_missing_anew
        pending = Pending(pane[FRESH], pane[OLDEST_MS], pane[SINCE_MS], self.clock_ms, now_ms)
        wanted = records_wanted(self._rules.early.trigger, pending)
        return max(1, wanted - pane[FRESH])

    def _keep(
        self, key: Any, taken: list[tuple[Bounds, Pane | None, Pane]], now_ms: int
    ) -> Sequence[Fired]:
        out: Sequence[Fired] = _NOTHING
        changes: list[tuple[Bounds, Pane | None, Pane]] = []
        for bounds, before, after in taken:
            phase = self._phase_of(bounds.end_ms)
            if self._rules.holds(phase, after, event_ms=self.clock_ms, now_ms=now_ms):
                fired, now = self._rules.fired(key, bounds, after, phase.timing)
                out = [*out, *fired]
                changes.append((bounds, before, now))
            else:
                changes.append((bounds, before, after))
        self._orders += len(taken)
        for bounds, before, after in changes:
            self._put(key, bounds, before, after)
        return out

    def _put(self, key: Any, bounds: Bounds, before: Pane | None, after: Pane) -> None:
        """Keep a pane, and see that its trigger is asked when time has passed."""
        start_ms = bounds.start_ms
        if start_ms not in self.panes:
            self._open(bounds)
        self.panes[start_ms][key] = after
        self.touched[start_ms].add(key)
        before_ms, after_ms = _oldest_of(before), _oldest_of(after)
        if before_ms == after_ms:
            return
        phase = self._phase_of(bounds.end_ms)
        if phase is self._rules.early:
            self._unfired.move(before_ms, after_ms)
        if after_ms is not None:
            self._ask_later(phase, (start_ms, key), after, is_first=before_ms is None)

    def _ask_later(
        self, phase: Phase, place: tuple[int, Any], pane: Pane, *, is_first: bool
    ) -> None:
        for delay_ms in phase.event_delays:
            self._event_asks.put(pane[OLDEST_MS] + delay_ms, place)
        if is_first:
            for delay_ms in phase.wall_delays:
                self._wall_asks.put(pane[SINCE_MS] + delay_ms, place)

    def _open(self, bounds: Bounds) -> None:
        self.panes[bounds.start_ms] = {}
        is_open = self.clock_ms < bounds.end_ms
        self._turns.put(bounds.end_ms if is_open else self._expiry_ms(bounds), bounds.start_ms)

    # -- time --------------------------------------------------------------------------------

    def _step(
        self, event_ms: int, now_ms: int, *, due: Iterable[tuple[int, list[tuple[int, Any]]]]
    ) -> Iterator[Fired | None]:
        before_ms = self._move_clock(event_ms, now_ms)
        asked: dict[Bounds, _Asked] = {}
        yield from self._ask(due, asked)
        turned = self._turned()
        for bounds in sorted(turned | asked.keys(), key=_by_end):
            closes = before_ms < bounds.end_ms <= self.clock_ms
            is_freed = self._expiry_ms(bounds) <= self.clock_ms
            if not (closes or is_freed):
                yield from self._fire_asked(asked[bounds], bounds, now_ms)
                continue
            # They are in the order of their numbers.
            for number, key in enumerate(list(self.panes[bounds.start_ms]), 1):
                yield from self._fire_at(key, bounds, now_ms, closes=closes, is_freed=is_freed)
                if number % LOOKED_AT_ONCE == 0:
                    yield None
            if is_freed:
                start_ms = bounds.start_ms
                del self.panes[start_ms]
                self.touched.pop(start_ms, None)
            else:
                self._turns.put(self._expiry_ms(bounds), bounds.start_ms)

    def _fire_asked(self, asked: _Asked, bounds: Bounds, now_ms: int) -> Iterator[Fired | None]:
        """Let panes fire whose triggers were due, in the order of their numbers."""
        places = [*asked.values()]
        yield from emptied(asked)
        ordered = in_order(places, _NUMBER)
        for number, place in enumerate(ordered, 1):
            if place is not None:
                yield from self._fire_at(place[1], bounds, now_ms, closes=False, is_freed=False)
            if place is None or number % LOOKED_AT_ONCE == 0:
                yield None

    def _fire_at(
        self, key: Any, bounds: Bounds, now_ms: int, *, closes: bool, is_freed: bool
    ) -> Sequence[Fired]:
        pane = self.panes[bounds.start_ms][key]
        timing = self._timing_of(pane, bounds.end_ms, now_ms, closes=closes, is_freed=is_freed)
        if timing is None:
            return _NOTHING
        out, after = self._rules.fired(key, bounds, pane, timing)
        self.panes[bounds.start_ms][key] = after
        self.touched[bounds.start_ms].add(key)
        return self._marked_by_time(out, pane, timing, bounds.end_ms, is_freed=is_freed)

    def _is_asked(self, ask_ms: int, place: tuple[int, Any]) -> bool:
        start_ms, key = place
        pane = self.panes.get(start_ms, {}).get(key)
        return pane is not None and self._waits_for(ask_ms, pane, self._windows.end_of(start_ms))

    def _ask(
        self, due: Iterable[tuple[int, list[tuple[int, Any]]]], asked: dict[Bounds, _Asked]
    ) -> Iterator[None]:
        """Find the panes whose triggers are due, window by window; yields for a pause."""
        places = chain.from_iterable(places for _, places in due)
        for looked, (start_ms, key) in enumerate(places, 1):
            if start_ms in self.panes and (pane := self.panes[start_ms].get(key)) is not None:
                asked.setdefault(self._bounds_of(start_ms), {})[key] = pane[ORDER], key
            if looked % LOOKED_AT_ONCE == 0:
                yield

    def _turned(self) -> set[Bounds]:
        turned = [start_ms for _, starts in self._turns.due(self.clock_ms) for start_ms in starts]
        return set(map(self._bounds_of, turned))

    # -- what it is --------------------------------------------------------------------------

    def restore(self, clock_ms: int, panes: Iterable[tuple[int, dict[Any, Pane]]]) -> None:
        """Go on from the clock and the panes that there were; called before all else."""
        self.clock_ms = clock_ms
        for start_ms, kept in panes:
            bounds = self._bounds_of(start_ms)
            self._open(bounds)
            in_order = self.panes[start_ms] = dict(sorted(kept.items(), key=_by_order))
            self._orders = max(self._orders, 1 + max(pane[ORDER] for pane in kept.values()))
            phase = self._phase_of(bounds.end_ms)
            for key, pane in in_order.items():
                self._reopen(phase, (start_ms, key), pane)

    def _reopen(self, phase: Phase, place: tuple[int, Any], pane: Pane) -> None:
        oldest_ms = _oldest_of(pane)
        if oldest_ms is None:
            return
        if phase is self._rules.early:
            self._unfired.add(oldest_ms)
        self._ask_later(phase, place, pane, is_first=True)

    def _bounds_of(self, start_ms: int) -> Bounds:
        return Bounds(start_ms, self._windows.end_of(start_ms))

    def _expiry_ms(self, bounds: Bounds) -> int:
        return min(bounds.end_ms + self._rules.lateness_ms, MAX_MS)


def _oldest_of(pane: Pane | None) -> int | None:
    return pane[OLDEST_MS] if pane is not None and pane[FRESH] else None


def _by_end(bounds: Bounds) -> tuple[int, int]:
    return bounds.end_ms, bounds.start_ms


def _by_order(item: tuple[Any, Pane]) -> int:
    return item[1][ORDER]
