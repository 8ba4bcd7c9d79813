"""Results of a stage that come later: their order, and the progress of event time."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gearpy.core.base.lazy_min import LazyMin
from gearpy.ids import MAX_MS, MIN_MS


class HeldResult(NamedTuple):
    """A record that was taken and has not been given back."""

    value: Any
    time_ms: int


class AsyncWindow:
    """Keeps records whose calls run, and the results of finished calls.

    If ``ordered``, a result waits for those of all records before it. A record may get ahead of a
    watermark that it has followed; a watermark never gets ahead of a record that is older.

    Invariant: each record that was taken gives one result or fails, once; ``passed_ms`` only grows,
    is never above the watermark that was taken, and no record that was not late is older than it
    when it is given back.
    """

    def __init__(self, size: int, *, ordered: bool) -> None:
        self._size = size
        self._ordered = ordered
        self._held: dict[int, HeldResult] = {}  # Numbers are in the order in which they came.
        self._oldest: LazyMin[int] = LazyMin()
        self._results: dict[int, Any] = {}  # Ordered: those that wait for others, by number.
        self._done: deque[tuple[int, Any]] = deque()  # These are given next.
        self._next = 0  # Number of the next record ...
        self._turn = 0  # ... and of the one whose turn it is, if ordered.
        self._passed_ms = MIN_MS
        self.watermark_ms = MIN_MS  #: The one that was taken.

    def take(self, values: Sequence[Any], times: Sequence[int]) -> Iterator[tuple[int, Any]]:
        first = self._next
        for number, (value, time) in enumerate(zip(values, times, strict=True), first):
            self._held[number] = HeldResult(value, time)
            self._oldest.set(number, time)
        self._next = first + len(values)
        return enumerate(values, first)

    def advance(self, watermark_ms: int) -> None:
        self.watermark_ms = max(self.watermark_ms, watermark_ms)

    def finish(self, number: int, result: Any) -> None:
        if number not in self._held:
            return
        if self._ordered:
            self._results.setdefault(number, result)
            self._take_turns()
        else:
            self._done.append((number, result))

    def fail(self, number: int) -> HeldResult | None:
        """Give a record back that has no result; None if it is not held any more."""
        held = self._let_go(number)
        if held is not None and self._ordered:
            self._take_turns()
        return held

    def release(self, limit: int) -> tuple[list[Any], list[int]]:
        """Give results, and the event times of their records; ``limit`` at most."""
        values: list[Any] = []
        times: list[int] = []
        while self._done and len(values) < limit:
            number, result = self._done.popleft()
            held = self._let_go(number)
            if held is not None:
                values.append(result)
                times.append(held.time_ms)
        return values, times

    def held(self) -> Iterable[HeldResult]:
        return self._held.values()

    def restore(self, watermark_ms: int, passed_ms: int) -> None:
        self.watermark_ms, self._passed_ms = watermark_ms, passed_ms

    @property
    def has_room(self) -> bool:
        return len(self._held) < self._size

    @property
    def is_ready(self) -> bool:
        return bool(self._done)

    @property
    def hold_ms(self) -> int:
        least = self._oldest.least()
        return MAX_MS if least is None else int(least[0])  # A plain number, as clocks are.

    @property
    def passed_ms(self) -> int:
        self._passed_ms = max(self._passed_ms, min(self.watermark_ms, self.hold_ms))
        return self._passed_ms

    def _let_go(self, number: int) -> HeldResult | None:
        self._oldest.remove(number)
        return self._held.pop(number, None)

    def _take_turns(self) -> None:
        while self._turn < self._next:
            if self._turn in self._results:
                self._done.append((self._turn, self._results.pop(self._turn)))
            elif self._turn in self._held:
                return
            self._turn += 1
