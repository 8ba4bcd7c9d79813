"""Panes, the state of a key in one window: how they grow, merge and fire.

`aligned_panes`, `session_panes` and `count_panes` keep them, for the kinds of windows. No record is
kept. Each record and each step of a clock gives the firings that follow from it, and nothing else
does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from gearpy.core.base.agenda import Agenda, OldestTime
from gearpy.core.base.copies import own
from gearpy.core.base.in_pieces import LOOKED_AT_ONCE
from gearpy.core.base.key_copy import KeyCopy
from gearpy.core.window.trigger import (
    EveryEvent,
    EveryWall,
    Pending,
    Repeat,
    by_wall_time,
    delays_of,
    phases_of,
)
from gearpy.core.window.windows import Windows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.late_time import late_time


class PaneFold(Protocol):
    """The way in which records become a value."""

    @property
    def first(self) -> Callable[..., Any]:
        """Makes a value of a record; where ``timed``, it is given its event time, too."""
        ...

    @property
    def add(self) -> Callable[..., Any]:
        """Returns a value with one more record, as `first`. It may change the old value."""
        ...

    @property
    def merge(self) -> Callable[[Any, Any], Any] | None:
        """Merges two values; it may change the first. None if values cannot be merged."""
        ...

    @property
    def result(self) -> Callable[[Any], Any] | None:
        """Makes the result of a value that goes on. None: the value itself."""
        ...

    @property
    def timed(self) -> bool:
        """Whether the functions are given event times."""
        ...

    @property
    def takes_parts(self) -> bool:
        """Whether it takes a `PanePart` for several records, instead of a record."""
        ...


#: Key, value, start, end, number, timing, whether it retracts; and the event time of all that.
Fired: TypeAlias = tuple[tuple[Any, Any, int, int, int, str, bool], int]

#: What a key has in a window: a plain tuple that never changes, so that it can be stored while
#: more records come. `ORDER` and the names behind it are the places of its fields.
Pane: TypeAlias = tuple[int, Any, int, int, int, int, int, tuple[Any, ...] | None]
#: Number of the pane among all, in the order in which they were begun.
ORDER: Final = 0
#: None where there is no value.
VALUE: Final = 1
#: Number of records since the last firing.
FRESH: Final = 2
#: Number of the next firing.
FIRING: Final = 3
#: Oldest event time of the records since the last firing.
OLDEST_MS: Final = 4
#: Wall time of the first record since the last firing.
SINCE_MS: Final = 5
#: Newest event time of all records.
NEWEST_MS: Final = 6
#: What the next firing retracts: value, start, end, number, timing and event time of each; None for
#: nothing, since a tuple in a tuple costs more to store.
SHOWN: Final = 7


class PanePart(NamedTuple):
    """Some records of a key, which the same windows hold, as one value."""

    key: Any
    value: Any
    records: int  #: How many.
    newest_ms: int


class Bounds(NamedTuple):
    """Start and end of a window."""

    start_ms: int
    end_ms: int


class Phase(NamedTuple):
    """Trigger of panes before their window closes, or after.

    Attributes:
        trigger: None: nothing fires.
        event_delays: how long after the oldest record it must be asked again, in event time.
        wall_delays: how long after the first record it must be asked again, in wall time.
    """

    timing: str
    trigger: Repeat | None
    event_delays: Sequence[int]
    wall_delays: Sequence[int]


class PaneRules:
    """Rules by which a pane grows, merges and fires, for all kinds of windows.

    Args:
        shares: records belong to several windows, which must not share what can change.
    """

    def __init__(self, windows: Windows, fold: PaneFold, *, shares: bool = False) -> None:
        self._first = fold.first
        #: Returns a value with one more record, given its time.
        self.taken: Callable[[Any, Any, int], Any] = fold.add if fold.timed else _untimed(fold.add)
        self._is_timed = fold.timed
        self._merge = fold.merge
        self._result = fold.result
        self._shares = shares
        self._keeps_all = windows.accumulation != "discarding"
        self._retracts = windows.accumulation == "retracting"
        self.lateness_ms = windows.allowed_lateness_ms
        self.is_wall = windows.clock == "processing"
        early, late = phases_of(windows.trigger)
        self.early = self._phase("early", early)
        self.late = self._phase("late", late)

    def _phase(self, timing: str, trigger: Repeat | None) -> Phase:
        if trigger is not None and self.is_wall:
            trigger = by_wall_time(trigger)
        return Phase(timing, trigger, delays_of(trigger, EveryEvent), delays_of(trigger, EveryWall))

    def begun(self, order: int, record: Any, time_ms: int, now_ms: int) -> Pane:
        return order, self._begun(record, time_ms), 1, 0, time_ms, now_ms, time_ms, None

    def grown(
        self,
        pane: Pane,
        record: Any,
        time_ms: int,
        now_ms: int,
        *,
        records: int = 1,
        last_ms: int = MIN_MS,
    ) -> Pane:
        """Return a pane with a record, or with what stands for some up to a time."""
        order, value, fresh, firing, oldest_ms, since_ms, newest_ms, shown = pane
        if not fresh and not self._keeps_all:
            value = self._begun(record, time_ms)
        else:
            value = self.taken(value, record, time_ms)
        if not fresh:
            oldest_ms, since_ms = time_ms, now_ms
        elif time_ms < oldest_ms:
            oldest_ms = time_ms
        if time_ms > last_ms:  # noqa: PLR1730 - `max` is three times as slow
            last_ms = time_ms
        if last_ms > newest_ms:  # noqa: PLR1730 - the same
            newest_ms = last_ms
        return order, value, fresh + records, firing, oldest_ms, since_ms, newest_ms, shown

    def newest_ms(self, record: Any, time_ms: int) -> int:
        """Return the newest time of what stands for a record, given its oldest one."""
        return time_ms

    def merged(self, panes: Iterable[Pane]) -> Pane:
        parts = list(panes)
        values = [pane[VALUE] for pane in parts if pane[FRESH] or self._keeps_all]
        pending = [pane for pane in parts if pane[FRESH]] or parts
        return (
            min(pane[ORDER] for pane in parts),
            self._joined(values),
            sum(pane[FRESH] for pane in parts),
            max(pane[FIRING] for pane in parts),
            min(pane[OLDEST_MS] for pane in pending),
            min(pane[SINCE_MS] for pane in pending),
            max(pane[NEWEST_MS] for pane in parts),
            tuple(each for pane in parts for each in pane[SHOWN] or ()) or None,
        )

    def holds(self, phase: Phase, pane: Pane, *, event_ms: int, now_ms: int) -> bool:
        if phase.trigger is None or not pane[FRESH]:
            return False
        pending = Pending(pane[FRESH], pane[OLDEST_MS], pane[SINCE_MS], event_ms, now_ms)
        return phase.trigger.holds(pending)

    def has_something(self, pane: Pane) -> bool:
        return self._keeps_all or pane[FRESH] > 0

    def fired(self, key: Any, bounds: Bounds, pane: Pane, timing: str) -> tuple[list[Fired], Pane]:
        order, value, _, firing, oldest_ms, since_ms, newest_ms, shown = pane
        out = self.last_of(key, bounds, pane, timing)
        if self._retracts:
            (_, given, *rest, _), time_ms = out[-1]
            shown = ((own(given), *rest, time_ms),)
        if self._keeps_all:  # Results and kept state must not share objects.
            out = [((key, own(given), *rest), time_ms) for (_, given, *rest), time_ms in out]
        else:
            value = None
        return out, (order, value, 0, firing + 1, oldest_ms, since_ms, newest_ms, shown)

    def last_of(self, key: Any, bounds: Bounds, pane: Pane, timing: str) -> list[Fired]:
        value, shown = pane[VALUE], pane[SHOWN]
        start_ms, end_ms = bounds
        if self._result is not None:
            value = self._result(value)
        if self._shares:  # Panes of other windows have the same records.
            value = own(value)
        time_ms = pane[NEWEST_MS] if self.is_wall else end_ms - 1
        row = ((key, value, start_ms, end_ms, pane[FIRING], timing, False), time_ms)
        return [*self._retracted(key, shown), row] if shown else [row]

    def _retracted(self, key: Any, shown: tuple[Any, ...]) -> Iterator[Fired]:
        for value, start_ms, end_ms, number, timing, time_ms in shown:
            yield (key, value, start_ms, end_ms, number, timing, True), time_ms

    def _begun(self, record: Any, time_ms: int) -> Any:
        value = self._first(record, time_ms) if self._is_timed else self._first(record)
        return own(value) if self._shares and value is record else value

    def _joined(self, values: list[Any]) -> Any:
        if not values:
            return None
        joined, *rest = values
        for value in rest:
            assert self._merge is not None, "checked when the windows were made"
            joined = self._merge(joined, value)
        return joined


class PartRules(PaneRules):
    """The rules where each `PanePart` stands for several records."""

    def begun(self, order: int, record: PanePart, time_ms: int, now_ms: int) -> Pane:
        value, newest_ms = self._begun(record, time_ms), record.newest_ms
        return order, value, record.records, 0, time_ms, now_ms, newest_ms, None

    def grown(
        self,
        pane: Pane,
        record: PanePart,
        time_ms: int,
        now_ms: int,
        *,
        records: int = 1,
        last_ms: int = MIN_MS,
    ) -> Pane:
        if self._shares:  # What is merged into a value becomes a part of it.
            record = record._replace(value=own(record.value))
        records, last_ms = record.records, record.newest_ms
        return super().grown(pane, record, time_ms, now_ms, records=records, last_ms=last_ms)

    def newest_ms(self, record: PanePart, time_ms: int) -> int:
        return time_ms if self.is_wall else record.newest_ms

    def _begun(self, record: PanePart, time_ms: int) -> Any:
        return own(record.value) if self._shares else record.value


def rules_of(windows: Windows, fold: PaneFold, *, shares: bool = False) -> PaneRules:
    return (PartRules if fold.takes_parts else PaneRules)(windows, fold, shares=shares)


def _untimed(add: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int], Any]:
    return lambda value, record, _: add(value, record)


class ChangedKeys:
    """Notes which keys have changed, where they come and go; `SessionPanes` and `CountPanes` do.

    They are subclasses, since each record is noted: a call would cost it more.

    Attributes:
        panes: all that each key has.
        touched: keys that may have changed, each added before it does. All that have nothing any
            more are among ``gone``, but for those of which a record was rejected.
        gone: keys that have lost a pane that was told.
    """

    def __init__(self) -> None:
        self.panes: dict[Any, Any] = {}
        self.touched: set[Any] | KeyCopy = set()
        self.gone: set[Any] = set()
        self._orders = 0  # Panes begun so far.
        self._told = 0  # Those before it were told.

    def tell(self, touched: KeyCopy) -> set[Any]:
        gone, self.gone, self.touched, self._told = self.gone, set(), touched, self._orders
        return gone

    def _note_end(self, key: Any, order: int) -> None:
        """Note that a pane is no more, given its number."""
        if order < self._told:
            self.gone.add(key)
        else:
            self._untouch(key)

    def _untouch(self, key: Any) -> None:
        if key not in self.panes and key not in self.gone:
            self.touched.discard(key)


#: What names a window that has a turn, and a pane whose trigger is asked.
TurnT = TypeVar("TurnT")
AskT = TypeVar("AskT")


class TimedPanes(Generic[TurnT, AskT]):
    """Clock and agenda of `AlignedPanes` and `SessionPanes`; these keep the panes.

    They are subclasses, since nearly every record needs the clock: a call would cost it more.

    Attributes:
        clock_ms: how far the clock of the windows is; it never goes back.
    """

    def __init__(self, rules: PaneRules) -> None:
        self.clock_ms = MIN_MS
        self._rules = rules
        #: Records are in event time, and none makes a window fire that has still to close.
        self._is_plain = rules.early.trigger is None and not rules.is_wall
        self._orders = 0  # Panes begun so far.
        self._turns = Agenda[TurnT]()  # When windows close, and when closed ones are freed.
        self._unfired = OldestTime()  # Event times of what windows hold that have still to close.
        self._event_asks = Agenda[AskT]()
        self._wall_asks = Agenda[AskT]()

    @property
    def hold_ms(self) -> int:
        return self._unfired.oldest_ms

    @property
    def wake_ms(self) -> int:
        closes_ms = self._turns.next_ms if self._rules.is_wall else MAX_MS
        return min(self._wall_asks.next_ms, closes_ms)

    @property
    def fires_early(self) -> bool:
        return self._rules.early.trigger is not None

    @property
    def next_ms(self) -> int:
        """The event time at which a trigger is asked or a window closes; `MAX_MS` for never."""
        return min(self._event_asks.next_ms, self._turns.next_ms)

    def advance(self, event_ms: int, now_ms: int) -> Iterator[Fired | None]:
        """Move the clocks on; yield the firings that follow, and None for a pause. Take all.

        Triggers are asked in the order of event time, however far it goes on at once, and those
        that wall time has a part in once more at the end.
        """
        asks, asked = self._event_asks, list(self._event_asks.due(self.clock_ms))
        looked = 0
        while (ask_ms := asks.next_ms) < event_ms:
            due = list(asks.due(ask_ms))
            asked += due
            is_asked = False
            for place in chain.from_iterable(places for _, places in due):
                looked += 1
                if looked % LOOKED_AT_ONCE == 0:
                    yield None
                if self._is_asked(ask_ms, place):
                    is_asked = True
                    break
            if is_asked:
                yield from self._step(ask_ms, MIN_MS, due=due)
        asked += [*asks.due(event_ms), *self._wall_asks.due(now_ms)]
        yield from self._step(event_ms, now_ms, due=asked)

    def _is_asked(self, ask_ms: int, place: AskT) -> bool:
        """Tell whether a trigger is asked then: its pane may have fired, or may be gone."""
        raise NotImplementedError

    def _waits_for(self, ask_ms: int, pane: Pane, end_ms: int) -> bool:
        delays = self._phase_of(end_ms).event_delays
        return pane[FRESH] > 0 and ask_ms - pane[OLDEST_MS] in delays

    def _step(
        self, event_ms: int, now_ms: int, *, due: Iterable[tuple[int, list[AskT]]]
    ) -> Iterator[Fired | None]:
        """Move the clocks on; ask the triggers that are due, of panes of which some may be gone."""
        raise NotImplementedError

    def _move_clock(self, event_ms: int, now_ms: int) -> int:
        """Learn how far the clocks are; return how far that of the windows was.

        The end of event time is that of wall time, too.
        """
        before_ms = self.clock_ms
        is_wall = self._rules.is_wall and event_ms < MAX_MS
        self.clock_ms = max(before_ms, now_ms if is_wall else event_ms)
        return before_ms

    def _marked(self, out: Sequence[Fired], at_ms: int) -> Sequence[Fired]:
        """Return firings, marked as late where event time is further than they are.

        Results that are taken back may be so old, too.
        """
        if self._rules.is_wall:
            return out
        return [(row, late_time(time_ms, at_ms)) for row, time_ms in out]

    def _marked_by_time(
        self, out: Sequence[Fired], pane: Pane, timing: str, end_ms: int, *, is_freed: bool
    ) -> Sequence[Fired]:
        if timing == "on-time":
            return self._marked(out, end_ms - 1) if pane[SHOWN] else out
        expiry_ms = min(end_ms + self._rules.lateness_ms, MAX_MS)
        return self._marked(out, expiry_ms if is_freed else self.clock_ms)

    def _phase_of(self, end_ms: int) -> Phase:
        return self._rules.early if self.clock_ms < end_ms else self._rules.late

    def _timing_of(
        self, pane: Pane, end_ms: int, now_ms: int, *, closes: bool, is_freed: bool
    ) -> str | None:
        """Return the timing with which a pane fires that time has passed for; None if it does not.

        Nothing that fires, or whose window closes, holds event time any more.
        """
        rules, phase = self._rules, self._phase_of(end_ms)
        if closes:
            fires, timing = rules.has_something(pane), "on-time"
        elif is_freed:
            fires, timing = pane[FRESH] > 0, "late"
        else:
            fires = rules.holds(phase, pane, event_ms=self.clock_ms, now_ms=now_ms)
            timing = phase.timing
        if pane[FRESH] and (closes or (fires and phase is rules.early)):
            self._unfired.remove(pane[OLDEST_MS])
        return timing if fires else None
