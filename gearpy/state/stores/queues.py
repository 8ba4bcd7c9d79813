"""Cells in the order of a time, in memory."""

from heapq import heappop, heappush

__all__ = ["HeapQueue"]


class HeapQueue:
    """See `TimeQueue`."""

    def __init__(self) -> None:
        self._cells: list[tuple[int, bytes]] = []

    def add(self, time_ms: int, cell: bytes) -> None:
        """Put a cell in."""
        heappush(self._cells, (time_ms, cell))

    @property
    def first_ms(self) -> int | None:
        """The earliest time."""
        return self._cells[0][0] if self._cells else None

    def pop(self) -> tuple[int, bytes]:
        """Take the first cell out."""
        return heappop(self._cells)

    def clear(self) -> None:
        """Take all out."""
        self._cells = []
