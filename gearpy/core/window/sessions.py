"""Panes of session windows, which each key has of its own, and which grow together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias

from gearpy.core.base.in_pieces import LOOKED_AT_ONCE, emptied, in_order
from gearpy.core.window.panes import (
    ORDER,
    Bounds,
    ChangedKeys,
    Fired,
    Pane,
    PaneFold,
    Phase,
    TimedPanes,
    rules_of,
)
from gearpy.core.window.windows import SessionWindows
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS

_NOTHING: Final[Sequence[Fired]] = ()

#: Start, end, the time at which it is looked at next, and behind them its pane. The sessions of a
#: key stand one behind the other in one tuple: most keys have one, and what is stored is flat.
_Session: TypeAlias = tuple[Any, ...]
PANE: Final = 3
_WIDTH: Final = 11
_ORDER: Final = PANE + ORDER
_VALUE: Final = PANE + 1
_COUNT: Final = PANE + 2
_OLDEST: Final = PANE + 4
#: A session whose time has come: end, start, order and key.
_Due: TypeAlias = tuple[int, int, int, Any]
_BY_END: Final = itemgetter(0, 1, 2)
_BY_START: Final = itemgetter(0, 1)


class SessionPanes(ChangedKeys, TimedPanes[Any, Any]):
    """Keeps sessions by key; takes records, gives firings.

    A record's own window ``[time, time + gap)`` becomes one with all sessions of its key that it
    overlaps. It is too late if the one that comes of that has ended so long ago that it would be
    freed. What one step of the clock puts out comes by end and start of the sessions, then in the
    order in which they were begun.

    Invariant: as that of `AlignedPanes`; and no two sessions of a key overlap.

    Attributes:
        panes: the sessions of each key, in order of time.
        clock_ms: how far the clock of the windows is.

    Raises:
        ConfigError: the fold cannot merge.
    """

    def __init__(self, windows: SessionWindows, fold: PaneFold) -> None:
        if fold.merge is None:
            raise ConfigError(
                "sessions that grow together are merged, and this fold cannot: give it merge=..., "
                "a function of two values"
            )
        # Turns: keys that have a session then, or had.
        TimedPanes.__init__(self, rules_of(windows, fold))
        ChangedKeys.__init__(self)
        self._gap_ms = windows.gap_ms
        self._adds_plainly = self._is_plain and not fold.takes_parts
        #: A session is over when it closes.
        self._ends_at_once = self._is_plain and not self._rules.lateness_ms
        self._first = fold.first
        self._add = fold.add
        self._is_timed = fold.timed
        self._result = fold.result

    @property
    def count(self) -> int:
        return sum(len(sessions) for sessions in self.panes.values()) // _WIDTH

    # -- records -----------------------------------------------------------------------------

    def add(self, key: Any, record: Any, time_ms: int, now_ms: int) -> Sequence[Fired] | None:
        """Take a record; return its firings, or None if it is too late."""
        kept = self.panes.get(key, ())
        self.touched.add(key)  # Before it changes.
        at_ms = max(now_ms, self.clock_ms) if self._rules.is_wall else time_ms
        newest_ms = self._rules.newest_ms(record, at_ms)
        bounds = Bounds(at_ms, min(newest_ms + self._gap_ms, MAX_MS))
        mine, others = _split(kept, bounds)
        if not mine:
            if self._expiry_ms(bounds.end_ms) <= self.clock_ms:
                self._untouch(key)
                return None
            pane = self._rules.begun(self._orders, record, time_ms, now_ms)
            self._orders += 1
        else:
            bounds = Bounds(min(bounds[0], mine[0][0]), max(bounds[1], mine[-1][1]))
            before = mine[0][PANE:]
            if len(mine) > 1:
                before = self._rules.merged(each[PANE:] for each in mine)
            pane = self._rules.grown(before, record, time_ms, now_ms)
        out = self._keep(key, (bounds, pane), mine, others, now_ms)
        return self._marked(out, time_ms) if len(out) > 1 else out

    def add_plainly(
        self, places: Iterator[int], keys: list[Any], records: list[Any], times: list[int]
    ) -> bool:
        """Take records that begin a session, or grow the one of their key, and make nothing fire.

        These are the most frequent by far, so they come without a call that can be spared.

        Args:
            places: of the records that are left; the one that it gave last was not taken.

        Returns:
            Whether all were taken.
        """
        if not self._adds_plainly:
            return next(places, None) is None
        panes, touch, gap_ms, clock_ms = self.panes, self.touched.add, self._gap_ms, self.clock_ms
        add, first, is_timed = self._add, self._first, self._is_timed
        for at in places:
            key, record, time_ms = keys[at], records[at], times[at]
            kept = panes.get(key)
            touch(key)  # Before it changes.
            end_ms = time_ms + gap_ms
            if end_ms > MAX_MS:  # noqa: PLR1730 - `min` is three times as slow
                end_ms = MAX_MS
            if kept is None:
                if end_ms <= clock_ms:
                    return False
                value = first(record, time_ms) if is_timed else first(record)
                order, self._orders = self._orders, self._orders + 1
                panes[key] = (
                    time_ms, end_ms, end_ms, order, value, 1, 0, time_ms, 0, time_ms, None
                )  # fmt: skip
                self._turns.put(end_ms, key)
                self._unfired.add(time_ms)
                continue
            if len(kept) != _WIDTH:
                return False
            # In one line, as that is one step of the interpreter.
            start_ms, until_ms, wake_ms, order, value, count, number, oldest_ms, since_ms, newest_ms, sent = kept  # fmt: skip  # noqa: E501
            if not (oldest_ms <= time_ms < until_ms and count and clock_ms < until_ms):
                return False
            value = add(value, record, time_ms) if is_timed else add(value, record)
            if time_ms > newest_ms:
                newest_ms, until_ms = time_ms, end_ms
            panes[key] = (
                start_ms, until_ms, wake_ms, order, value, count + 1, number, oldest_ms, since_ms,
                newest_ms, sent,
            )  # fmt: skip
        return True

    def _keep(
        self,
        key: Any,
        session: tuple[Bounds, Pane],
        mine: Sequence[_Session],
        others: Sequence[_Session],
        now_ms: int,
    ) -> Sequence[Fired]:
        bounds, pane = session
        phase = self._phase_of(bounds.end_ms)
        out = _NOTHING
        if self._rules.holds(phase, pane, event_ms=self.clock_ms, now_ms=now_ms):
            out, pane = self._rules.fired(key, bounds, pane, phase.timing)
        kept = (*bounds, self._wake_of(key, bounds, mine), *pane)
        self._note_oldest(key, phase, kept, mine)
        self._put(key, [kept, *others])
        return out

    def _wake_of(self, key: Any, bounds: Bounds, mine: Sequence[_Session]) -> int:
        """Return when a session is looked at next, which is not later than it has a turn.

        One that grows is looked at when it would have closed, rather than moved at each record.
        """
        wake_ms = min((each[2] for each in mine), default=MAX_MS + 1)
        turn_ms = self._turn_ms(bounds.end_ms)
        if turn_ms < wake_ms:
            self._turns.put(turn_ms, key)
            return turn_ms
        return wake_ms

    def _note_oldest(
        self, key: Any, phase: Phase, session: _Session, mine: Sequence[_Session]
    ) -> None:
        after_ms = session[_OLDEST] if session[_COUNT] else None
        is_known = False
        for each in mine:
            if each[_COUNT]:
                is_known = is_known or each[_OLDEST] == after_ms
                if self.clock_ms < each[1]:
                    self._unfired.remove(each[_OLDEST])
        if after_ms is None:
            return
        if phase is self._rules.early:
            self._unfired.add(after_ms)
        if not is_known or len(mine) > 1:
            self._ask_later(key, phase, session)

    def _ask_later(self, key: Any, phase: Phase, session: _Session) -> None:
        for delay_ms in phase.event_delays:
            self._event_asks.put(session[_OLDEST] + delay_ms, key)
        for delay_ms in phase.wall_delays:
            self._wall_asks.put(session[_OLDEST + 1] + delay_ms, key)

    def _put(self, key: Any, sessions: list[_Session]) -> None:
        if not sessions:
            del self.panes[key]
        elif len(sessions) == 1:
            self.panes[key] = sessions[0]
        else:
            sessions.sort(key=itemgetter(0))
            self.panes[key] = tuple(chain.from_iterable(sessions))

    # -- time --------------------------------------------------------------------------------

    def _step(
        self, event_ms: int, now_ms: int, *, due: Iterable[tuple[int, list[Any]]]
    ) -> Iterator[Fired | None]:
        before_ms = self._move_clock(event_ms, now_ms)
        if self._ends_at_once:
            yield from self._ended()
            return
        # One may be there more than once. Numbers are not enough to tell them apart: those of
        # sessions that were restored may be of several tasks.
        found: dict[tuple[int, int, Any], _Due] = {}
        for each in chain(self._turned(before_ms), self._asked(due)):
            if each is None:
                yield None
            else:
                found[each[1:]] = each
        sessions = [*found.values()]
        yield from emptied(found)
        ordered = in_order(sessions, _BY_END)
        for number, each in enumerate(ordered, 1):
            if each is not None:
                end_ms, start_ms, _, key = each
                yield from self._fire_at(key, Bounds(start_ms, end_ms), before_ms, now_ms)
            if each is None or number % LOOKED_AT_ONCE == 0:
                yield None

    def _ended(self) -> Iterator[Fired | None]:
        """Yield the results of sessions that fire once, and free them.

        Those of one end together: one that has grown has its turn at its new end.
        """
        panes, result_of, put = self.panes, self._result, self._turns.put
        looked = 0
        for time_ms, keys in self._turns.due(self.clock_ms):
            found: dict[tuple[int, int, Any], None] = {}  # Some have two turns.
            for key in keys:
                looked += 1
                if looked % LOOKED_AT_ONCE == 0:
                    yield None
                kept = panes.get(key, ())
                for each in (kept,) if len(kept) == _WIDTH else each_session(kept):
                    start_ms, end_ms, wake_ms, order, *_ = each
                    if wake_ms != time_ms:  # Left behind when sessions became one.
                        continue
                    if end_ms == time_ms:
                        found[start_ms, order, key] = None
                        continue
                    put(end_ms, key)
                    after = (start_ms, end_ms, end_ms, *each[PANE:])
                    if each is kept:
                        panes[key] = after
                    else:
                        self._replace(key, each, after)
            if not found:
                continue
            ending = [*found]
            found.clear()
            for each in in_order(ending, _BY_START):
                if each is None:
                    yield None
                    continue
                start_ms, _, key = each
                self.touched.add(key)
                session = panes[key]
                if len(session) == _WIDTH:
                    del panes[key]
                else:
                    session = self._taken_out(key, start_ms)
                self._note_end(key, session[_ORDER])
                self._unfired.remove(session[_OLDEST])
                value = session[_VALUE] if result_of is None else result_of(session[_VALUE])
                yield (key, value, start_ms, time_ms, 0, "on-time", False), time_ms - 1

    def _taken_out(self, key: Any, start_ms: int) -> _Session:
        sessions = {each[0]: each for each in each_session(self.panes[key])}
        session = sessions.pop(start_ms)
        self._put(key, list(sessions.values()))
        return session

    def _turned(self, before_ms: int) -> Iterator[_Due | None]:
        """Yield the sessions that close or are freed by now, and None for a pause.

        Others were looked at too early, and are looked at again.
        """
        put, looked = self._turns.put, 0
        for time_ms, keys in self._turns.due(self.clock_ms):
            for key in keys:
                looked += 1
                if looked % LOOKED_AT_ONCE == 0:
                    yield None
                kept = self.panes.get(key, ())
                for each in (kept,) if len(kept) == _WIDTH else each_session(kept):
                    start_ms, end_ms, wake_ms, order, *_ = each
                    if wake_ms != time_ms:  # Left behind when sessions became one.
                        continue
                    turn_ms = end_ms if before_ms < end_ms else self._expiry_ms(end_ms)
                    if turn_ms <= self.clock_ms:
                        yield end_ms, start_ms, order, key
                    else:
                        put(turn_ms, key)
                        self._replace(key, each, (start_ms, end_ms, turn_ms, *each[PANE:]))

    def _is_asked(self, ask_ms: int, place: Any) -> bool:
        kept = each_session(self.panes.get(place, ()))
        return any(self._waits_for(ask_ms, each[PANE:], each[1]) for each in kept)

    def _asked(self, due: Iterable[tuple[int, list[Any]]]) -> Iterator[_Due | None]:
        for looked, key in enumerate(chain.from_iterable(places for _, places in due), 1):
            if looked % LOOKED_AT_ONCE == 0:
                yield None
            for start_ms, end_ms, _, order, *_ in each_session(self.panes.get(key, ())):
                yield end_ms, start_ms, order, key

    def _fire_at(self, key: Any, bounds: Bounds, before_ms: int, now_ms: int) -> Sequence[Fired]:
        """Let a session fire that time has passed for, if it has a reason; free it at its end."""
        self.touched.add(key)
        session = self.panes[key]
        if len(session) > _WIDTH:
            session = next(each for each in each_session(session) if each[0] == bounds.start_ms)
        pane = before = session[PANE:]
        closes = before_ms < bounds.end_ms <= self.clock_ms
        is_freed = self._expiry_ms(bounds.end_ms) <= self.clock_ms
        timing = self._timing_of(pane, bounds.end_ms, now_ms, closes=closes, is_freed=is_freed)
        out: Sequence[Fired] = _NOTHING
        if timing is not None and is_freed:
            out = self._rules.last_of(key, bounds, pane, timing)
        elif timing is not None:
            out, pane = self._rules.fired(key, bounds, pane, timing)
        self._settle(key, session, pane, closes=closes, is_freed=is_freed)
        if timing is None:
            return _NOTHING
        return self._marked_by_time(out, before, timing, bounds.end_ms, is_freed=is_freed)

    def _settle(
        self, key: Any, session: _Session, pane: Pane, *, closes: bool, is_freed: bool
    ) -> None:
        """Keep a session as it is after a step of time, or free it."""
        if is_freed:
            self._put(
                key, [each for each in each_session(self.panes[key]) if each[0] != session[0]]
            )
            self._note_end(key, session[_ORDER])
            return
        start_ms, end_ms, wake_ms = session[:PANE]
        if closes:
            wake_ms = self._expiry_ms(end_ms)
            self._turns.put(wake_ms, key)
        self._replace(key, session, (start_ms, end_ms, wake_ms, *pane))

    def _replace(self, key: Any, before: _Session, after: _Session) -> None:
        kept = self.panes[key]
        if len(kept) == _WIDTH:
            self.panes[key] = after
        else:
            self._put(key, [after if each[0] == before[0] else each for each in each_session(kept)])

    # -- what it is --------------------------------------------------------------------------

    def restore(self, clock_ms: int, panes: Mapping[Any, _Session]) -> None:
        """Go on from the clock and the sessions that there were; called before all else."""
        self.clock_ms = clock_ms
        for key, kept in panes.items():
            self._put(key, [self._reopened(key, each) for each in each_session(kept)])
        self._told = self._orders

    def _reopened(self, key: Any, session: _Session) -> _Session:
        start_ms, end_ms, _, *pane = session
        self._orders = max(self._orders, 1 + pane[ORDER])
        turn_ms = self._turn_ms(end_ms)
        self._turns.put(turn_ms, key)
        phase = self._phase_of(end_ms)
        if session[_COUNT]:
            if phase is self._rules.early:
                self._unfired.add(session[_OLDEST])
            self._ask_later(key, phase, session)
        return (start_ms, end_ms, turn_ms, *pane)

    def _turn_ms(self, end_ms: int) -> int:
        return end_ms if self.clock_ms < end_ms else self._expiry_ms(end_ms)

    def _expiry_ms(self, end_ms: int) -> int:
        return min(end_ms + self._rules.lateness_ms, MAX_MS)


def each_session(sessions: _Session) -> list[_Session]:
    """Return the sessions of a key, of each start, end, the time of its turn, and its pane."""
    if len(sessions) == _WIDTH:
        return [sessions]
    return [sessions[at : at + _WIDTH] for at in range(0, len(sessions), _WIDTH)]


def _split(sessions: _Session, bounds: Bounds) -> tuple[Sequence[_Session], Sequence[_Session]]:
    mine: list[_Session] = []
    others: list[_Session] = []
    for each in each_session(sessions):
        overlaps = each[0] < bounds.end_ms and each[1] > bounds.start_ms
        (mine if overlaps else others).append(each)
    return mine, others
