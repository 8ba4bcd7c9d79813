"""Event time of tables in pieces, by the boundaries of windows; or in sessions."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.core.window.local import LocalSteps
from gearpy.core.window.windows import (
    DisjointWindows,
    LocalSlidingWindows,
    LocalWindows,
    OverlappingWindows,
    SlidingWindows,
    TumblingWindows,
)
from gearpy.ids import MIN_MS
from gearpy.messages.table import Times

#: Pieces of fewer rows are not looked for one by one.
_ROWS_OF_PIECE: Final = 256
#: So many boundaries of local windows are compared with all times of a table.
_COMPARED_MAX: Final = 64
_DIGITS: Final = 16


def is_sorted(numbers: pa.Array) -> bool:
    return bool(pc.all(pc.less_equal(numbers[:-1], numbers[1:]), min_count=0).as_py())


class TimePieces:
    """Event time in pieces: all times of one are in the same windows."""

    def __init__(self, windows: DisjointWindows | OverlappingWindows) -> None:
        self._steps: list[tuple[int, int]] = []  # Boundaries: one every so often, and where.
        self._local: LocalSteps | None = None
        self.of: Callable[[int], int] = lambda _: MIN_MS
        self._until = (
            windows.end_of if isinstance(windows, DisjointWindows) else windows.piece_until
        )
        if isinstance(windows, TumblingWindows):
            self._steps = [(windows.size_ms, windows.offset_ms)]
            self.of = windows.start_of
        elif isinstance(windows, SlidingWindows):
            begin, every = windows.offset_ms, windows.every_ms
            self._steps = [(every, begin), (every, begin + windows.size_ms)]
            if not windows.size_ms % every:
                del self._steps[1:]  # It is the same.
            self.of = windows.piece_of
        elif isinstance(windows, LocalWindows | LocalSlidingWindows):
            self._local = windows.steps
            self.of = self._local.start_of

    def parts(
        self, table: pa.RecordBatch, times: Times
    ) -> Iterator[tuple[int, pa.RecordBatch, int]]:
        """Yield the rows of each piece, in their order, with its start and their oldest time."""
        numbers = self.numbers(times)
        if numbers is None:
            low, _ = times.bounds()
            yield self.of(low), table, low
            return
        array = times.array
        if not is_sorted(numbers):
            order = pc.array_sort_indices(numbers)
            table, numbers, array = table.take(order), numbers.take(order), array.take(order)
        at = 0
        for rows in pc.value_counts(numbers).field("counts").to_pylist():
            low = pc.min(array.slice(at, rows)).as_py()
            yield self.of(low), table.slice(at, rows), low
            at += rows

    def numbers(self, times: Times) -> pa.Array | None:
        """Return a number for each time, alike for those of one piece; None if there is one."""
        low, high = times.bounds()
        if self.of(low) == self.of(high):
            return None
        if is_sorted(times.array) and (ends := self._ends(times.array, low, high)):
            return repeated(list(range(len(ends))), [b - a for a, b in pairwise([0, *ends])])
        if self._local is not None:
            return _boundaries_of(self._local, times, low, high)
        try:
            counts = [_boundaries(times.array, low, *step) for step in self._steps]
        except (pa.ArrowException, OverflowError):  # At the ends of time 64 bits do not suffice.
            return _numbered(map(self.of, times))
        # With each boundary that is passed at least one of them grows.
        return counts[0] if len(counts) == 1 else pc.add(*counts)

    def _ends(self, times: pa.Array, low: int, high: int) -> list[int]:
        """Return where pieces end in times that are in order; nothing if they are many."""
        ends, until = [0], self._until(self.of(low))
        while until <= high:
            if len(ends) * _ROWS_OF_PIECE > len(times):
                return []
            place_of = bisect_left(
                range(len(times)), until, ends[-1], key=lambda at: times[at].as_py()
            )
            ends.append(place_of)
            until = self._until(self.of(times[place_of].as_py()))
        return [*ends[1:], len(times)]


def repeated(values: list[Any], counts: list[int]) -> pa.Array:
    """Return each value so many times."""
    ends = pa.array(accumulate(counts), pa.int64())
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, pa.array(values)))


def _numbered(pieces: Iterable[int]) -> pa.Array:
    number: dict[int, int] = {}
    return pa.array([number.setdefault(each, len(number)) for each in pieces], pa.int64())


def _boundaries_of(steps: LocalSteps, times: Times, low: int, high: int) -> pa.Array:
    """Return how many steps of a local clock have begun up to each time."""
    starts = steps.between(low, high, _COMPARED_MAX)
    if starts is None:
        return _numbered(map(steps.start_of, times))
    counts = pa.repeat(pa.scalar(0, pa.int64()), len(times))
    for start in starts:
        counts = pc.add(counts, pc.greater_equal(times.array, start).cast(pa.int64()))
    return counts


def _boundaries(times: pa.Array, low: int, step: int, offset: int) -> pa.Array:
    before = low - (low - offset) % step
    passed = pc.subtract_checked(times, pa.scalar(before, pa.int64()))
    return pc.divide(passed, pa.scalar(step, pa.int64()))


def session_numbers(
    codes: Any, firsts: Any, lasts: Any, gap_ms: int, *, in_order: bool = False
) -> pa.Array:
    """Return a number for each part of a session, alike for parts of one.

    Args:
        firsts: the oldest event time of each part.
        lasts: the newest ones; the same array, where parts are records.
        in_order: the oldest times are in order.
    """
    order = np.arange(len(codes)) if in_order else np.argsort(firsts, kind="stable")
    for digits in range(0, int(codes.max(initial=0)).bit_length(), _DIGITS):  # A radix sort.
        order = order[np.argsort((codes[order] >> digits).astype(np.uint16), kind="stable")]
    ordered, starts, ends = codes[order], firsts[order], lasts[order]
    is_new = ordered[1:] != ordered[:-1]
    if not (is_new | (ends[1:] >= ends[:-1])).all():  # A part reaches beyond those behind it.
        ranks = np.empty(len(ends), np.int64)
        ranks[np.argsort(ends)] = np.arange(len(ends))
        reached = np.maximum.accumulate(ordered * len(ends) + ranks) % max(1, len(ends))
        ends = np.sort(ends)[reached]
    begins = np.ones(len(order), np.bool_)
    is_past = starts[1:] > ends[:-1]  # A distance may need 64 bits.
    is_past &= (starts[1:] - ends[:-1]).view(np.uint64) >= gap_ms
    begins[1:] = is_past | is_new
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins)
    return pa.array(numbers)
