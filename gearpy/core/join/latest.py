"""Joins of a stream with a table: the latest value of each key."""

from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, Literal

from gearpy.core.join.changes import CellChange, KeyCells
from gearpy.core.join.sides import LEFT, Row, Rows
from gearpy.ids import MAX_MS, MIN_MS


class LatestJoin:
    """Yields each left record at once, with the present value of the table for its key.

    So it depends on the order in which the records of the two streams come. The right side is the
    table: of a key the newest value counts, of equal times the one that came last; None takes the
    key away. A right record older than the watermark is late, and left out. Left ones are never
    late. Results have the time of the left record.

    Invariant: of a key that was taken away nothing is kept once the watermark has passed that.

    Args:
        how: whether left records come out for which the table has nothing.
    """

    def __init__(self, *, how: Literal["inner", "left"]) -> None:
        self.late_records = 0
        self._keeps_left = how == "left"
        self._table: dict[Any, tuple[int, Any]] = {}
        self._cells = KeyCells("table", self._cell_of)
        self._removed: list[tuple[int, int, Any]] = []  # A heap: keys that were taken away, when.
        self._removals = 0
        self._watermark_ms = MIN_MS

    def on_records(self, values: list[Any], timestamps: list[int]) -> Iterator[Rows]:
        """Yield the row that each left record finds, one after the other."""
        table, keeps_left = self._table, self._keeps_left
        rows: list[Row] = []
        times: list[int] = []
        for (side, key, value), time in zip(values, timestamps, strict=True):
            if side == LEFT:
                found = table.get(key)
                right = None if found is None else found[1]
                if keeps_left or right is not None:
                    rows.append((key, value, right, time, time + 1))
                    times.append(time)
            else:
                self._set(key, value, time)
        if rows:
            yield rows, times

    def on_watermark(self, watermark_ms: int) -> Iterator[Rows]:
        """Forget removed keys: no older value of theirs can come any more."""
        self._watermark_ms = watermark_ms
        while self._removed and self._removed[0][0] < watermark_ms:
            time, _, key = heappop(self._removed)
            found = self._table.get(key)
            if found is not None and found[0] == time and found[1] is None:
                self._cells.remove(key)
                del self._table[key]
        return iter(())

    def changes(self) -> Iterator[CellChange]:
        return self._cells.changes()

    def tell_again(self) -> None:
        self._cells.tell_again()

    def held(self) -> Iterable[Collection[Any]]:
        return (self._table,)

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> None:
        self._cells.load(namespace, pairs)

    def resume(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms
        for key, (time, value) in self._cells.resume().items():
            self._table[key] = (time, value)
            if value is None:
                self._note_removal(key, time)

    @property
    def hold_ms(self) -> int:
        return MAX_MS

    def _set(self, key: Any, value: Any, time: int) -> None:
        if time < self._watermark_ms:
            self.late_records += 1
            return
        found = self._table.get(key)
        if found is None or found[0] <= time:
            self._cells.touch(key)
            self._table[key] = (time, value)
            if value is None:
                self._note_removal(key, time)

    def _note_removal(self, key: Any, time: int) -> None:
        self._removals += 1
        heappush(self._removed, (time, self._removals, key))

    def _cell_of(self, key: Any) -> list[Any] | None:
        found = self._table.get(key)
        return None if found is None else list(found)
