"""Joins over sessions: records of a key on both sides, until there was none for a while."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush, heapreplace
from itertools import count
from operator import attrgetter
from typing import Any, Final

from gearpy.core.base.in_pieces import LOOKED_AT_ONCE, in_order
from gearpy.core.join.changes import CellChange, KeyCells
from gearpy.core.join.sides import SIDES, Pairing, Rows
from gearpy.ids import MAX_MS, MIN_MS

_END: Final = attrgetter("end")
_START_AND_NUMBER: Final = attrgetter("start", "seq")
_FIELDS: Final = 5  # Of a session that was told.


class _Session:
    """Records of a key whose windows overlap. ``seq`` is the number of the first that came."""

    __slots__ = ("end", "is_open", "key", "seq", "sides", "start")

    def __init__(self, key: Any, start: int, end: int, seq: int) -> None:
        self.key = key
        self.start = start
        self.end = end
        self.seq = seq
        self.sides: tuple[list[Any], list[Any]] = ([], [])
        self.is_open = True

    def absorb(self, other: "_Session") -> None:
        """Become one with a later session."""
        self.end = max(self.end, other.end)
        self.seq = min(self.seq, other.seq)
        for side in SIDES:
            self.sides[side].extend(other.sides[side])
        other.is_open = False


class SessionJoin:
    """Yields the results of a session when the watermark closes it.

    A record's own window is ``[t, t + gap)``; it becomes one with all sessions of its key that it
    overlaps, whichever side their records are of. It is late if that session has closed; it is
    left out. Sessions come out in the order of ends, starts, and first records.

    Invariant: the open sessions of a key do not overlap.

    Args:
        gap_ms: of silence, on both sides, that ends a session.
    """

    def __init__(self, gap_ms: int, pairing: Pairing) -> None:
        self.late_records = 0
        self._gap_ms = gap_ms
        self._pairing = pairing
        self._sessions: dict[Any, list[_Session]] = {}  # Of a key, sorted.
        self._ends: list[tuple[int, int, int, _Session]] = []  # A heap; ends may have grown since.
        self._turn = count().__next__  # As numbers of restored sessions may be of several tasks.
        self._cells = KeyCells("sessions", self._cell_of)
        self._seq = 0
        self._watermark_ms = MIN_MS

    def on_records(self, values: list[Any], timestamps: list[int]) -> Iterator[Rows]:
        """Keep the records; results come with the watermark only."""
        touch = self._cells.touch
        for (side, key, value), time in zip(values, timestamps, strict=True):
            touch(key)
            session = self._session_at(key, time)
            if session is None:
                self.late_records += 1
                if key not in self._sessions:
                    self._cells.remove(key)
            else:
                session.sides[side].append(value)
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Rows]:
        self._watermark_ms = watermark_ms
        for looked, session in enumerate(self._due(watermark_ms), 1):
            if session is not None:
                group = (session.key, *session.sides)
                yield from self._pairing.rows([group], session.start, session.end)
                session.is_open = False
                sessions = self._sessions[session.key]
                if len(sessions) > 1:
                    self._cells.touch(session.key)
                    sessions.remove(session)
                else:
                    self._cells.remove(session.key)
                    del self._sessions[session.key]
            if looked % LOOKED_AT_ONCE == 0:
                yield [], []

    def changes(self) -> Iterator[CellChange]:
        return self._cells.changes()

    def tell_again(self) -> None:
        self._cells.tell_again()

    def held(self) -> Iterable[Collection[Any]]:
        return (self._sessions,)

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> None:
        self._cells.load(namespace, pairs)

    def resume(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms
        for key, flat in self._cells.resume().items():
            self._sessions[key] = []
            for at in range(0, len(flat), _FIELDS):
                start, end, seq, left, right = flat[at : at + _FIELDS]
                session = _Session(key, start, end, seq)
                session.sides = (left, right)
                self._sessions[key].append(session)
                heappush(self._ends, (end, seq, self._turn(), session))
                self._seq = max(self._seq, seq)

    @property
    def hold_ms(self) -> int:
        """Last ms of the session that ends first: the time of its results."""
        first = self._first_to_end()
        return MAX_MS if first is None else first.end - 1

    def _session_at(self, key: Any, time: int) -> _Session | None:
        """Return a record's session, made one with all that it overlaps; None if it is late."""
        end = min(time + self._gap_ms, MAX_MS)
        sessions = self._sessions.get(key, [])
        low = bisect_right(sessions, time, key=_END)
        high = low
        while high < len(sessions) and sessions[high].start < end:
            high += 1
        if low == high:
            return None if end <= self._watermark_ms else self._begin(key, low, time, end)
        session = sessions[low]
        for other in sessions[low + 1 : high]:
            session.absorb(other)
        del sessions[low + 1 : high]
        session.start = min(session.start, time)
        session.end = max(session.end, end)
        return session

    def _begin(self, key: Any, at: int, start: int, end: int) -> _Session:
        self._seq += 1
        session = _Session(key, start, end, self._seq)
        self._sessions.setdefault(key, []).insert(at, session)
        heappush(self._ends, (end, self._seq, self._turn(), session))
        return session

    def _due(self, watermark_ms: int) -> Iterator[_Session | None]:
        """Yield the sessions that end by now, in order, and None for all else that is looked at."""
        ends = self._ends
        while ends and (end := ends[0][0]) <= watermark_ms:
            found: list[_Session] = []
            while ends and ends[0][0] == end:
                if (session := self._look()) is not None:
                    heappop(ends)
                    found.append(session)
                yield None
            yield from in_order(found, _START_AND_NUMBER)

    def _first_to_end(self) -> _Session | None:
        """Put the heap right as far as to tell which session ends first."""
        while self._ends:
            if (session := self._look()) is not None:
                return session
        return None

    def _look(self) -> _Session | None:
        """Return the first of the heap if it ends first; else put it right."""
        end, seq, turn, session = self._ends[0]
        if not session.is_open:
            heappop(self._ends)
        elif session.end != end:
            heapreplace(self._ends, (session.end, seq, turn, session))
        else:
            return session
        return None

    def _cell_of(self, key: Any) -> list[Any] | None:
        flat: list[Any] = []
        for session in self._sessions.get(key, ()):
            left, right = session.sides  # They grow, and what is told must not.
            flat += (session.start, session.end, session.seq, [*left], [*right])
        return flat or None
