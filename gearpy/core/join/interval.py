"""Joins of records whose event times are near each other, for every record anew."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, TypeAlias

from gearpy.core.base.in_pieces import LOOKED_AT_ONCE
from gearpy.core.join.changes import CellChange, Kept, RecordLog
from gearpy.core.join.sides import LEFT, RIGHT, SIDES, How, Row, Rows
from gearpy.ids import MAX_MS, MIN_MS

#: Records that become useless at about the same time are forgotten together: an eighth of the time
#: that they are kept, and not less than a second.
_SPANS: Final = 8
_SPAN_LEAST_MS: Final = 1000


#: Of a key: the times of its records on the left and on the right, in order, and these records.
_Sides: TypeAlias = tuple[list[Any], list[Any], list[Any], list[Any]]


class IntervalJoin:
    """Yields pairs with ``left - before <= right <= left + after`` as soon as both are there.

    A pair has the time of the newer one; so what is kept for partners to come holds no clock.
    A record that may come out alone does when the watermark has passed all possible partners, with
    its own time; until then it holds the clock. Records older than the watermark are late, and left
    out. Pairs come out as their second records do, and then by time of the first one.

    Invariant: what was yielded are the pairs of all records so far that were not late, once each.

    Args:
        before_ms: how much older a right record may be than a left one.
        after_ms: how much newer.
        how: which records come out alone.
        limit: of rows yielded at once; twice as many are possible.
    """

    def __init__(self, *, before_ms: int, after_ms: int, how: How, limit: int) -> None:
        self.late_records = 0
        # Of a record of the left side, and of the right one: how much older and newer partners are.
        self._older_ms = (before_ms, after_ms)
        self._newer_ms = (after_ms, before_ms)
        self._span_ms = tuple(max(_SPAN_LEAST_MS, ms // _SPANS) for ms in self._newer_ms)
        self._comes_alone = (how in ("left", "outer"), how in ("right", "outer"))
        self._limit = limit
        self._log = RecordLog()
        self._sides: dict[Any, _Sides] = {}
        self._spans: list[tuple[int, int]] = []  # A heap: until when each is needed.
        self._waiting: tuple[list[Any], list[Any]] = ([], [])  # Heaps by time, number, and turn.
        self._turn = count().__next__  # As numbers of restored records may be of several tasks.
        self._watermark_ms = MIN_MS

    def on_records(self, values: list[Any], timestamps: list[int]) -> Iterator[Rows]:
        """Yield each pair whose second record is among these."""
        yield from self._pairs(values, timestamps)
        for side in SIDES:
            yield from self._tidied(side)

    def _pairs(self, values: list[Any], timestamps: list[int]) -> Iterator[Rows]:
        watermark_ms, sides_of, limit = self._watermark_ms, self._sides, self._limit
        older_ms, newer_ms, span_ms = self._older_ms, self._newer_ms, self._span_ms
        log, fresh_of, comes_alone = self._log, self._log.fresh, self._comes_alone
        rows: list[Row] = []
        times: list[int] = []
        for (side, key, value), time in zip(values, timestamps, strict=True):
            if time < watermark_ms:
                self.late_records += 1
                continue
            sides = sides_of.get(key)
            if sides is None:
                sides = sides_of[key] = ([], [], [], [])
            found, at, until = sides[1 - side], 0, 0
            if found:
                at = bisect_left(found, time - older_ms[side])
                until = bisect_right(found, time + newer_ms[side], at)

            log.seq += 1
            kept = Kept(log.seq, side, time, value, comes_alone[side] and at == until, key)
            _add(sides, kept)
            span = time // span_ms[side] * 2 + side  # Even and odd: one for each side.
            fresh = fresh_of.get(span)
            if fresh is None:
                self._note_span(span)
                fresh = log.open(span)
            fresh.append(kept)
            if kept.is_waiting:
                self._await(kept)

            for other in sides[3 - side][at:until] if at < until else ():
                start, newest = other.time_ms, time
                if start > newest:
                    start, newest = newest, start
                left, right = (value, other.value) if side == LEFT else (other.value, value)
                rows.append((key, left, right, start, newest + 1))
                times.append(newest)
                if other.is_waiting:
                    log.match(self._span_of(other), other)
                if len(rows) >= limit:
                    yield rows, times
                    rows, times = [], []
        if rows:
            yield rows, times

    def on_watermark(self, watermark_ms: int) -> Iterator[Rows]:
        """Yield records that can find no partner any more; forget records that are not needed."""
        self._watermark_ms = watermark_ms
        for side in SIDES:
            rows: list[Row] = []
            times: list[int] = []
            for looked, kept in enumerate(self._over(side), 1):
                if kept.is_waiting:
                    time = kept.time_ms
                    left, right = (kept.value, None) if side == LEFT else (None, kept.value)
                    rows.append((kept.key, left, right, time, time + 1))
                    times.append(time)
                if len(rows) >= self._limit or looked % LOOKED_AT_ONCE == 0:
                    yield rows, times
                    rows, times = [], []
            if rows:
                yield rows, times
        while self._spans and self._spans[0][0] < watermark_ms:
            yield from self._forget(heappop(self._spans)[1])

    def changes(self) -> Iterator[CellChange]:
        return self._log.changes()

    def tell_again(self) -> None:
        self._log.tell_again(
            (self._span_of(kept), kept)
            for sides in self._sides.values()
            for side in SIDES
            for kept in sides[2 + side]
        )

    def held(self) -> Iterable[Collection[Any]]:
        return (self._sides,)

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> None:
        self._log.load(namespace, pairs)

    def resume(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms
        spans: set[int] = set()
        for span, kept in self._log.resume():
            if span not in spans:
                spans.add(span)
                self._note_span(span)
            _add(self._sides.setdefault(kept.key, ([], [], [], [])), kept)
            # One that is older has come out alone; its span is not over yet.
            if kept.is_waiting and not self._is_alone(kept):
                self._await(kept)

    @property
    def hold_ms(self) -> int:
        return min((waiting[0][0] for waiting in self._waiting if waiting), default=MAX_MS)

    def _await(self, kept: Kept) -> None:
        turn = self._turn()
        heappush(self._waiting[kept.side], (kept.time_ms, kept.seq, turn, kept))

    def _over(self, side: int) -> Iterator[Kept]:
        """Yield the records of a side that wait no more: they have a partner, or never will.

        The first one that is left does wait.
        """
        waiting = self._waiting[side]
        while waiting and (not waiting[0][-1].is_waiting or self._is_alone(waiting[0][-1])):
            yield heappop(waiting)[-1]

    def _is_alone(self, kept: Kept) -> bool:
        last_ms = kept.time_ms + self._newer_ms[kept.side]
        return last_ms < self._watermark_ms or self._watermark_ms == MAX_MS

    def _tidied(self, side: int) -> Iterator[Rows]:
        """Take out those that have found a partner, until the first one does wait."""
        waiting, looked = self._waiting[side], 0
        while waiting and not waiting[0][-1].is_waiting:
            heappop(waiting)
            looked += 1
            if looked % LOOKED_AT_ONCE == 0:
                yield [], []

    def _span_of(self, kept: Kept) -> int:
        return kept.time_ms // self._span_ms[kept.side] * 2 + kept.side

    def _note_span(self, span: int) -> None:
        """Note until when the records of a span are needed."""
        side = span % 2
        last_ms = (span // 2 + 1) * self._span_ms[side] - 1
        heappush(self._spans, (min(last_ms + self._newer_ms[side], MAX_MS - 1), span))

    def _forget(self, span: int) -> Iterator[Rows]:
        side = span % 2
        before_ms, sides_of = (span // 2 + 1) * self._span_ms[side], self._sides
        for number, key in enumerate(self._log.keys(span), 1):
            sides = sides_of.get(key)
            if sides is not None and (over := bisect_left(sides[side], before_ms)):
                del sides[side][:over], sides[2 + side][:over]
                if not (sides[LEFT] or sides[RIGHT]):
                    del sides_of[key]
            if number % LOOKED_AT_ONCE == 0:
                yield [], []
        for _ in self._log.drop(span):
            yield [], []


def _add(sides: _Sides, kept: Kept) -> None:
    """Add a record behind the records that are not newer."""
    times, records = sides[kept.side], sides[2 + kept.side]
    if not times or times[-1] <= kept.time_ms:
        times.append(kept.time_ms)
        records.append(kept)
    else:
        at = bisect_right(times, kept.time_ms)
        times.insert(at, kept.time_ms)
        records.insert(at, kept)
