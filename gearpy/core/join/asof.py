"""Joins of each record with the nearest one of another stream: as-of joins.

Records wait until the watermark has passed them, and are then gone through in the order of their
times. So the results do not depend on how the two streams came.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from gearpy.core.base.in_pieces import LOOKED_AT_ONCE
from gearpy.core.join.changes import CellChange, Kept, KeyCells, RecordLog
from gearpy.core.join.sides import LEFT, RIGHT, Row, Rows
from gearpy.ids import MAX_MS, MIN_MS

#: Where the right record is: not newer than the left one, not older, or either.
Direction: TypeAlias = Literal["backward", "forward", "nearest"]

_SPAN_MS: Final = 1000  # Records that were gone through are forgotten together.
_FIELDS: Final = 5  # Of a left record that was told.


#: Time and value of a right record that a left one may be joined with.
_Right: TypeAlias = tuple[int, Any]
#: A record in the order in which they are gone through: time, whether it goes second of equal
#: times, number, turn, side, key, value. No two have the same turn, so keys are never compared.
_Ahead: TypeAlias = tuple[int, bool, int, int, int, Any, Any]


class _Left(msgspec.Struct):
    """A left record that waits for newer right ones, and its nearest match so far."""

    seq: int
    time_ms: int
    value: Any
    found: _Right | None
    is_waiting: bool = True


#: Key, left record and its match, if any.
_Decided: TypeAlias = tuple[Any, _Left, _Right | None]


class AsOfJoin:
    """Yields each left record with the right one of its key that is nearest in time.

    Equal times match in all directions. Of right records of the same time the one that came last
    counts before and at the left record's time; the one that came first counts after it, and in
    "forward" also at it. In "nearest" of two at the same distance the older one counts. A left
    record comes out when the watermark has passed what could still be nearer, and holds the clock
    until then. Records older than the watermark are late, and left out.

    Without a tolerance the newest right record of each key is kept without end; and left records
    wait without end for right ones that are not older, where these count.

    Invariant: what was yielded depends on the records that were not late, on the watermark, and on
    the order in which right ones of the same key and time came; on nothing else.

    Args:
        tolerance_ms: how far away; None for any distance.
        how: whether left records come out that have found nothing.
    """

    def __init__(
        self,
        *,
        direction: Direction,
        tolerance_ms: int | None,
        how: Literal["inner", "left"],
        limit: int,
    ) -> None:
        self.late_records = 0
        self._looks_back = direction != "forward"
        self._looks_ahead = direction != "backward"
        self._tolerance_ms = tolerance_ms
        self._keeps_left = how == "left"
        self._limit = limit
        # Which side goes first of equal times. Where it looks ahead only, a left record must be
        # there when the right one comes; else the right one must.
        self._first = RIGHT if self._looks_back else LEFT
        self._log = RecordLog()
        self._turn = count().__next__  # As numbers of restored records may be of several tasks.
        # What came since the last watermark, most of which the next one passes: it is not in the
        # log, nor in a heap.
        self._fresh: list[_Ahead] = []
        self._fresh_left_ms = MAX_MS  # When the first left one of them is.
        self._ahead: list[_Ahead] = []  # A heap: what is to come.
        self._ahead_lefts: list[int] = []  # A heap: when the left ones of them are.
        self._spans: list[int] = []  # A heap of those in the log.
        self._newest: dict[Any, _Right] = {}
        self._newest_times: list[tuple[int, int, Any]] = []  # A heap: of keys, when.
        self._newest_count = 0
        self._waiting: dict[Any, list[_Left]] = {}
        self._ends: list[tuple[int, int, int, Any, _Left]] = []  # A heap: until when each waits.
        self._waiting_times: list[tuple[int, int, _Left]] = []  # A heap of the same ones by time.
        self._newest_cells = KeyCells("newest", self._newest_cell)
        self._waiting_cells = KeyCells("waiting", self._waiting_cell)
        self._watermark_ms = MIN_MS

    def on_records(self, values: list[Any], timestamps: list[int]) -> Iterator[Rows]:
        """Keep the records; results come with the watermark only."""
        watermark_ms, seq, turn, first = self._watermark_ms, self._log.seq, self._turn, self._first
        add = self._fresh.append
        for (side, key, value), time in zip(values, timestamps, strict=True):
            if time < watermark_ms:
                self.late_records += 1
                continue
            seq += 1
            add((time, side != first, seq, turn(), side, key, value))
            if side == LEFT and time < self._fresh_left_ms:
                self._fresh_left_ms = time
        self._log.seq = seq
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Rows]:
        """Go through the records that the watermark has passed."""
        self._watermark_ms = watermark_ms
        yield from self._rows(watermark_ms)
        while self._spans and (self._spans[0] + 1) * _SPAN_MS <= watermark_ms:
            for _ in self._log.drop(heappop(self._spans)):
                yield [], []
        for looked, _ in enumerate(self._forgotten(watermark_ms), 1):
            if looked % LOOKED_AT_ONCE == 0:
                yield [], []

    def _rows(self, watermark_ms: int) -> Iterator[Rows]:
        """Go through the records in the order of time; yield rows, and none for a pause."""
        waiting, looks_back, looks_ahead = self._waiting, self._looks_back, self._looks_ahead
        limit, set_newest, decide = self._limit, self._set_newest, self._decide
        newest_of, tolerance_ms, touch = self._newest, self._tolerance_ms, self._newest_cells.touch
        rows: list[Row] = []
        times: list[int] = []
        for looked, (time, _, seq, _, side, key, value) in enumerate(self._passed(watermark_ms), 1):
            if looked % LOOKED_AT_ONCE == 0:
                yield [], []
            if side == RIGHT:
                right = time, value
                # None that comes later is nearer to the left ones that wait.
                if waiting and key in waiting:
                    self._waiting_cells.remove(key)
                    for left in waiting.pop(key):
                        left.is_waiting = False
                        found = right if time <= self._end_of(left) else left.found
                        decide(key, left.time_ms, left.value, found, rows, times)
                        if len(rows) >= limit:  # Many may have waited for it.
                            yield rows, times
                            rows, times = [], []
                if looks_back:
                    touch(key)
                    set_newest(key, right)
            else:
                newest = newest_of.get(key) if looks_back else None
                if newest is not None and tolerance_ms is not None:
                    newest = newest if time - newest[0] <= tolerance_ms else None
                if not (looks_ahead and self._awaits(key, _Left(seq, time, value, newest))):
                    decide(key, time, value, newest, rows, times)
            if len(rows) >= limit:
                yield rows, times
                rows, times = [], []
        for each in self._over(watermark_ms):
            if each is None:
                yield [], []
                continue
            key, left, found = each
            decide(key, left.time_ms, left.value, found, rows, times)
            if len(rows) >= limit:
                yield rows, times
                rows, times = [], []
        if rows:
            yield rows, times

    def _decide(  # noqa: PLR0917 - it is called for each record
        self, key: Any, time: int, value: Any, right: _Right | None,
        rows: list[Row], times: list[int],
    ) -> None:  # fmt: skip
        """Add the row of a left record, if it comes out."""
        if right is not None:
            start, newest = time, right[0]
            if start > newest:
                start, newest = newest, start
            rows.append((key, value, right[1], start, newest + 1))
            times.append(newest)
        elif self._keeps_left:
            rows.append((key, value, None, time, time + 1))
            times.append(time)

    def changes(self) -> Iterator[CellChange]:
        self._keep_fresh()
        yield from self._log.changes()
        yield from self._newest_cells.changes()
        yield from self._waiting_cells.changes()

    def tell_again(self) -> None:
        self._keep_fresh()
        self._log.tell_again(map(_kept_of, self._ahead))
        self._newest_cells.tell_again()
        self._waiting_cells.tell_again()

    def held(self) -> Iterable[Collection[Any]]:
        return (self._newest, self._waiting, self._ahead, self._fresh)

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> None:
        for part in (self._log, self._newest_cells, self._waiting_cells):
            if part.load(namespace, pairs):
                return

    def resume(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms
        self._resume_ahead(watermark_ms)
        for key, (time, value) in self._newest_cells.resume().items():
            self._set_newest(key, (time, value))
        for key, flat in self._waiting_cells.resume().items():
            for at in range(0, len(flat), _FIELDS):
                seq, time, value, found_time, found_value = flat[at : at + _FIELDS]
                found = None if found_time is None else (found_time, found_value)
                self._wait(key, _Left(seq, time, value, found))
                self._log.seq = max(self._log.seq, seq)

    @property
    def hold_ms(self) -> int:
        lefts, waiting = self._ahead_lefts, self._waiting_times
        ahead_ms = min(lefts[0] if lefts else MAX_MS, self._fresh_left_ms)
        return min(ahead_ms, waiting[0][0] if waiting else MAX_MS)

    # -- what the watermark has not passed ---------------------------------------------------

    def _passed(self, watermark_ms: int) -> list[_Ahead]:
        """Take out the records that the watermark has passed, in order; keep the others."""
        fresh, self._fresh, self._fresh_left_ms = self._fresh, [], MAX_MS
        fresh.sort()
        end = bisect_left(fresh, watermark_ms, key=itemgetter(0))
        for record in fresh[end:]:
            self._keep(record)
        del fresh[end:]
        ahead, earlier = self._ahead, list[_Ahead]()
        while ahead and ahead[0][0] < watermark_ms:
            record = heappop(ahead)
            earlier.append(record)
            if record[4] == LEFT:
                heappop(self._ahead_lefts)  # Both heaps are in the order of times.
        return sorted(earlier + fresh) if earlier else fresh

    def _keep_fresh(self) -> None:
        fresh, self._fresh, self._fresh_left_ms = self._fresh, [], MAX_MS
        for record in fresh:
            self._keep(record)

    def _keep(self, record: _Ahead) -> None:
        span, kept = _kept_of(record)
        fresh = self._log.fresh.get(span)
        if fresh is None:
            heappush(self._spans, span)
            fresh = self._log.open(span)
        fresh.append(kept)
        self._await(record)

    def _await(self, record: _Ahead) -> None:
        heappush(self._ahead, record)
        if record[4] == LEFT:
            heappush(self._ahead_lefts, record[0])

    def _resume_ahead(self, watermark_ms: int) -> None:
        spans = set()
        for span, kept in self._log.resume():
            spans.add(span)
            if kept.time_ms >= watermark_ms:  # Else it was gone through.
                is_second, turn = kept.side != self._first, self._turn()
                of_kept = kept.side, kept.key, kept.value
                self._await((kept.time_ms, is_second, kept.seq, turn, *of_kept))
        self._spans = sorted(spans)

    # -- left records that wait ----------------------------------------------------------------

    def _awaits(self, key: Any, left: _Left) -> bool:
        """Let a left record wait if a right one that is still to come may be nearer."""
        if self._end_of(left) < left.time_ms:
            return False
        self._waiting_cells.touch(key)
        self._wait(key, left)
        return True

    def _wait(self, key: Any, left: _Left) -> None:
        self._waiting.setdefault(key, []).append(left)
        turn = self._turn()
        heappush(self._ends, (self._end_of(left), left.seq, turn, key, left))
        heappush(self._waiting_times, (left.time_ms, turn, left))

    def _end_of(self, left: _Left) -> int:
        if left.found is not None:
            return 2 * left.time_ms - left.found[0] - 1
        return MAX_MS - 1 if self._tolerance_ms is None else left.time_ms + self._tolerance_ms

    def _over(self, watermark_ms: int) -> Iterator[_Decided | None]:
        """Yield the left records for which no nearer right record can come; None for a pause."""
        is_over = watermark_ms == MAX_MS
        looked = 0
        keys: dict[Any, None] = {}
        while self._ends and (self._ends[0][0] < watermark_ms or is_over):
            _, _, _, key, left = heappop(self._ends)
            looked += 1
            if looked % LOOKED_AT_ONCE == 0:
                yield None
            if left.is_waiting:
                left.is_waiting = False
                keys[key] = None
                yield key, left, left.found
        for number, key in enumerate(keys, 1):
            self._drop_decided(key)
            if number % LOOKED_AT_ONCE == 0:
                yield None

    def _drop_decided(self, key: Any) -> None:
        waiting = [left for left in self._waiting[key] if left.is_waiting]
        if waiting:
            self._waiting_cells.touch(key)
            self._waiting[key] = waiting
        else:
            self._waiting_cells.remove(key)
            del self._waiting[key]

    # -- the newest right record of each key -------------------------------------------------

    def _set_newest(self, key: Any, right: _Right) -> None:
        self._newest[key] = right
        if self._tolerance_ms is not None:
            self._newest_count += 1
            heappush(self._newest_times, (right[0], self._newest_count, key))

    def _forgotten(self, watermark_ms: int) -> Iterator[None]:
        """Forget left records that have come out, and right ones that none can need any more.

        Yields for each that was looked at.
        """
        waiting = self._waiting_times
        while waiting and not waiting[0][2].is_waiting:
            heappop(waiting)
            yield
        if self._tolerance_ms is None:
            return
        times, before_ms = self._newest_times, watermark_ms - self._tolerance_ms
        while times and times[0][0] < before_ms:
            time, _, key = heappop(times)
            newest = self._newest.get(key)
            if newest is not None and newest[0] == time:
                self._newest_cells.remove(key)
                del self._newest[key]
            yield

    # -- as plain data -----------------------------------------------------------------------

    def _newest_cell(self, key: Any) -> list[Any] | None:
        newest = self._newest.get(key)
        return None if newest is None else [*newest]

    def _waiting_cell(self, key: Any) -> list[Any] | None:
        flat: list[Any] = []
        for left in self._waiting.get(key, ()):
            flat += (left.seq, left.time_ms, left.value, *(left.found or (None, None)))
        return flat or None


def _kept_of(record: _Ahead) -> tuple[int, Kept]:
    time, _, seq, _, side, key, value = record
    return time // _SPAN_MS, Kept(seq, side, time, value, False, key)
