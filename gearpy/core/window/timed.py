"""Panes of windows that close as time passes: their clock, and the panes that wait for it."""

from collections.abc import Iterator
from itertools import chain
from typing import Generic, TypeVar

from gearpy.core.base.agenda import Agenda, OldestTime
from gearpy.core.window.panes import FRESH, OLDEST_MS, Pane, PaneRules, Phase
from gearpy.ids import MAX_MS, MIN_MS

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
        self._turns = Agenda[TurnT]()  # When windows close, and when those that have are freed.
        self._unfired = OldestTime()  # Event times of what windows hold that have still to close.
        self._event_asks = Agenda[AskT]()
        self._wall_asks = Agenda[AskT]()

    @property
    def hold_ms(self) -> int:
        """Oldest event time that is in no result so far, of windows that have still to close."""
        return self._unfired.oldest_ms

    @property
    def wake_ms(self) -> int:
        """The wall time of the next ``advance`` that acts; `MAX_MS` for never."""
        closes_ms = self._turns.next_ms if self._rules.is_wall else MAX_MS
        return min(self._wall_asks.next_ms, closes_ms)

    def _move_clock(self, event_ms: int, now_ms: int) -> int:
        """Learn how far the clocks are; return how far that of the windows was.

        The end of event time is that of wall time, too.
        """
        before_ms = self.clock_ms
        is_wall = self._rules.is_wall and event_ms < MAX_MS
        self.clock_ms = max(before_ms, now_ms if is_wall else event_ms)
        return before_ms

    def _asks_due(self, now_ms: int) -> Iterator[AskT]:
        """Take out the panes whose triggers are due; some panes may be gone."""
        due = chain(self._event_asks.due(self.clock_ms), self._wall_asks.due(now_ms))
        return chain.from_iterable(places for _, places in due)

    def _phase_of(self, end_ms: int) -> Phase:
        """Return the phase of a window by its end."""
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
