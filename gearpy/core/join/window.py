"""Joins over windows that are the same for all keys: tumbling, sliding, the one over everything.

Each record is kept once, whatever the number of windows that hold it: in the piece of time, between
two boundaries of windows, in which it is. A window is some whole pieces.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

from gearpy.core.base.in_pieces import emptied
from gearpy.core.join.changes import CellChange, Kept, RecordLog
from gearpy.core.join.sides import LEFT, RIGHT, SIDES, Group, Pairing, Rows
from gearpy.core.window.windows import AlignedWindows, OverlappingWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.late_time import OrderedTimes, ordered

#: Records of a key, on the left and on the right.
_Pane: TypeAlias = tuple[list[Kept], list[Kept]]
_P = TypeVar("_P")


class OpenPieces(Generic[_P]):
    """What is kept of each piece of time that open windows hold, and these windows.

    Args:
        begin: makes what is kept of a piece.
    """

    def __init__(self, windows: AlignedWindows, begin: Callable[[], _P]) -> None:
        self.kept: dict[int, _P] = {}
        self._windows = windows
        self._begin = begin
        self._starts: list[int] = []  # Of the pieces, sorted.
        self._open: list[int] = []  # A heap of the windows that hold any of them.
        self._is_open: set[int] = set()

    def at(self, piece: int, watermark_ms: int) -> _P | None:
        """Return what is kept of a piece; None if all windows that hold it have closed."""
        if (known := self.kept.get(piece)) is not None:
            return known
        if self.over_ms(piece) <= watermark_ms:
            return None
        found = self.kept[piece] = self._begin()
        insort(self._starts, piece)
        for start in self._windows.starts_of(piece):
            if start not in self._is_open and self._windows.end_of(start) > watermark_ms:
                self._is_open.add(start)
                heappush(self._open, start)
        return found

    def closing(self, watermark_ms: int) -> Iterator[tuple[int, int, list[_P]]]:
        """Yield start and end of each window that closes, in order, with what is kept of it.

        Behind each, `over` has the pieces that no open window holds.
        """
        end_of, windows, starts = self._windows.end_of, self._open, self._starts
        while windows and (end := end_of(windows[0])) <= watermark_ms:
            low, high = bisect_left(starts, windows[0]), bisect_left(starts, end)
            yield windows[0], end, [self.kept[piece] for piece in starts[low:high]]
            self._is_open.remove(heappop(windows))

    def over(self) -> list[tuple[int, _P]]:
        """Take out the pieces that no open window holds."""
        count = bisect_left(self._starts, self._open[0] if self._open else MAX_MS)
        if not count:
            return []
        over = [(piece, self.kept.pop(piece)) for piece in self._starts[:count]]
        del self._starts[:count]
        return over

    def over_ms(self, piece: int) -> int:
        """Return the end of the last window that holds a piece."""
        return self._windows.end_of(self._windows.starts_of(piece)[-1])

    @property
    def hold_ms(self) -> int:
        """Last ms of the first window that holds any record: the time of its results."""
        return self._windows.end_of(self._open[0]) - 1 if self._open else MAX_MS


class WindowJoin:
    """Yields the results of each key in a window when the watermark closes it.

    Windows come out in the order of their ends; of a window, keys in the order of their first
    records, by pieces; of a key, pairs in the order of the left records, then of the right ones.
    A record is late when all windows that hold its time have closed; it is left out.

    Invariant: what was yielded and what is kept depend on which records came before which
    watermarks only, up to the order of what is yielded.

    Args:
        windows: which; when they fire does not count.
    """

    def __init__(self, windows: AlignedWindows, pairing: Pairing) -> None:
        self.late_records = 0
        self._windows = windows
        self._pairing = pairing
        self._log = RecordLog()
        self._pieces: OpenPieces[dict[Any, _Pane]] = OpenPieces(windows, dict)
        self._watermark_ms = MIN_MS

    def on_records(self, values: list[Any], timestamps: list[int]) -> Iterator[Rows]:
        """Keep the records; results come with the watermark only."""
        piece = self._piece_of(min(timestamps))
        if piece == self._piece_of(max(timestamps)):
            self._add(piece, values, timestamps)
        else:
            for piece, (some, times) in self._split(values, timestamps).items():
                self._add(piece, some, times)
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Rows]:
        self._watermark_ms = watermark_ms
        for start, end, panes in self._pieces.closing(watermark_ms):
            yield from self._pairing.rows(_groups(panes), start, end)
        for piece, over in self._pieces.over():
            for _ in chain(self._log.drop(piece), emptied(over)):
                yield [], []

    def changes(self) -> Iterator[CellChange]:
        return self._log.changes()

    def tell_again(self) -> None:
        self._log.tell_again(
            (piece, kept)
            for piece, panes in self._pieces.kept.items()
            for pane in panes.values()
            for side in SIDES
            for kept in pane[side]
        )

    def held(self) -> Iterable[Collection[Any]]:
        return self._pieces.kept.values()

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> None:
        self._log.load(namespace, pairs)

    def resume(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms
        for piece, kept in self._log.resume():
            panes = self._pieces.at(piece, watermark_ms)
            if panes is None:  # It is over, and its cells have to go.
                deque(self._log.drop(piece), maxlen=0)
            else:
                _pane_of(panes, kept.key)[kept.side].append(kept)

    @property
    def hold_ms(self) -> int:
        return self._pieces.hold_ms

    def _piece_of(self, time_ms: int) -> int:
        windows = self._windows
        if isinstance(windows, OverlappingWindows):
            return windows.piece_of(time_ms)
        return windows.starts_of(time_ms)[0]

    def _split(
        self, values: list[Any], timestamps: list[int]
    ) -> dict[int, tuple[list[Any], list[int]]]:
        piece_of, is_whole = self._piece_of, not isinstance(self._windows, OverlappingWindows)
        parts: dict[int, tuple[list[Any], list[int]]] = {}
        if is_whole and type(times := ordered(timestamps)) is OrderedTimes:
            at = 0
            while at < len(times):
                piece = piece_of(times[at])
                until = bisect_left(times, self._windows.end_of(piece), at)
                parts[piece] = values[at:until], timestamps[at:until]
                at = until
            return parts
        piece = end = MIN_MS
        part: tuple[list[Any], list[int]] = ([], [])
        for value, time in zip(values, timestamps, strict=True):
            if not piece <= time < end:  # Of what lies side by side it is found once.
                piece = piece_of(time)
                end = self._windows.end_of(piece) if is_whole else time + 1
                part = parts.setdefault(piece, ([], []))
            part[0].append(value)
            part[1].append(time)
        return parts

    def _add(self, piece: int, values: list[Any], timestamps: list[int]) -> None:
        log = self._log
        panes = self._pieces.kept.get(piece)
        if panes is None:
            panes = self._pieces.at(piece, self._watermark_ms)
        if panes is None:
            self.late_records += len(values)
            return
        fresh = log.fresh.get(piece)
        if fresh is None:
            fresh = log.open(piece)
        seq = log.seq
        for (side, key, value), time in zip(values, timestamps, strict=True):
            seq += 1
            kept = Kept(seq, side, time, value, False, key)
            pane = panes.get(key)
            if pane is None:
                pane = panes[key] = ([], [])
            pane[side].append(kept)
            fresh.append(kept)
        log.seq = seq


def _groups(panes: list[dict[Any, _Pane]]) -> Iterator[Group]:
    if len(panes) == 1:
        for key, (lefts, rights) in panes[0].items():
            yield key, [kept.value for kept in lefts], [kept.value for kept in rights]
        return
    for key in _once_each(panes):
        of_key = [pane for each in panes if (pane := each.get(key)) is not None]
        yield key, _values(of_key, LEFT), _values(of_key, RIGHT)


def _pane_of(panes: dict[Any, _Pane], key: Any) -> _Pane:
    if key not in panes:
        panes[key] = ([], [])
    return panes[key]


def _once_each(panes: list[dict[Any, _Pane]]) -> Iterator[Any]:
    seen: set[Any] = set()
    for key in chain.from_iterable(panes):
        if key not in seen:
            seen.add(key)
            yield key


def _values(panes: Iterable[_Pane], side: int) -> list[Any]:
    return [kept.value for pane in panes for kept in pane[side]]
