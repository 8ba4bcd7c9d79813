"""The minimum of many values that mostly grow, at little cost for each change."""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

K = TypeVar("K", bound=int)


class LazyMin(Generic[K]):
    """Values by key, and the least of them, at one dictionary write for each growing value.

    A heap may hold an older, lower value of a key, which is put right when it comes to the top.

    Invariant: ``least()`` is the minimum of what was last `set`, the lowest key among equals.
    """

    __slots__ = ("_filed", "_heap", "_values")

    def __init__(self) -> None:
        self._values: dict[K, int] = {}
        self._filed: dict[K, int] = {}  # The value of the key's one valid heap entry.
        self._heap: list[tuple[int, K]] = []

    def __len__(self) -> int:
        return len(self._values)

    def set(self, key: K, value: int) -> None:
        self._values[key] = value
        filed = self._filed.get(key)
        if filed is None or value < filed:
            self._filed[key] = value
            heappush(self._heap, (value, key))
            # Rebuild the heap when more of it is waste than not.
            if len(self._heap) > 2 * len(self._values) + 8:
                self._heap = [(value, key) for key, value in self._values.items()]
                self._filed = dict(self._values)
                heapify(self._heap)

    def remove(self, key: K) -> None:
        self._values.pop(key, None)

    def least(self) -> tuple[int, K] | None:
        heap, filed, values = self._heap, self._filed, self._values
        while heap:
            value, key = heap[0]
            if filed.get(key) != value:
                heappop(heap)  # Left behind when the value fell.
                continue
            actual = values.get(key)
            if actual == value:
                return value, key
            if actual is None:
                heappop(heap)
                del filed[key]
                continue
            filed[key] = actual
            heapreplace(heap, (actual, key))
        return None
