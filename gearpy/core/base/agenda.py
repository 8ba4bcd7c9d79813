"""Two sets of times that cost little for each change: `Agenda` for due times, and `OldestTime`."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from gearpy.ids import MAX_MS

T = TypeVar("T")


class Agenda(Generic[T]):
    """Things to look at when a clock has reached their time.

    Times are few where there are many things: only times are kept in order.

    Invariant: `due` yields what was put in by `put` in the order of its times, and at one time in
    the order in which it was put there.
    """

    __slots__ = ("_heap", "_things")

    def __init__(self) -> None:
        self._things: dict[int, list[T]] = {}
        self._heap: list[int] = []

    def put(self, time_ms: int, thing: T) -> None:
        things = self._things.get(time_ms)
        if things is None:
            self._things[time_ms] = [thing]
            heappush(self._heap, time_ms)
        else:
            things.append(thing)

    def due(self, now_ms: int) -> Iterator[tuple[int, list[T]]]:
        """Take out the due things, with their time. More may be put in meanwhile."""
        heap = self._heap
        while heap and heap[0] <= now_ms:
            time_ms = heappop(heap)
            yield time_ms, self._things.pop(time_ms)

    @property
    def next_ms(self) -> int:
        return self._heap[0] if self._heap else MAX_MS


class OldestTime:
    """A multiset of times that knows its oldest one.

    Invariant: ``oldest_ms`` is the least time that was added more often than it was removed.
    """

    __slots__ = ("_heap", "_number_of")

    def __init__(self) -> None:
        self._number_of: dict[int, int] = {}
        self._heap: list[int] = []  # Every time in `_number_of` once, and such as have gone.

    def add(self, time_ms: int) -> None:
        number = self._number_of.get(time_ms)
        if number is None:
            self._number_of[time_ms] = 1
            heappush(self._heap, time_ms)
            if len(self._heap) > 2 * len(self._number_of) + 8:
                self._heap = sorted(self._number_of)
        else:
            self._number_of[time_ms] = number + 1

    def remove(self, time_ms: int) -> None:
        number = self._number_of[time_ms]
        if number == 1:
            del self._number_of[time_ms]
        else:
            self._number_of[time_ms] = number - 1

    def move(self, before_ms: int | None, after_ms: int | None) -> None:
        if before_ms == after_ms:
            return
        if before_ms is not None:
            self.remove(before_ms)
        if after_ms is not None:
            self.add(after_ms)

    @property
    def oldest_ms(self) -> int:
        heap, number_of = self._heap, self._number_of
        while heap and heap[0] not in number_of:
            heappop(heap)
        return heap[0] if heap else MAX_MS
