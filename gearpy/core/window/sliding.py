"""Sliding windows made of pieces: a record is folded once, however many windows hold its time."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gearpy.core.base.copies import own_each
from gearpy.core.window.panes import PaneFold
from gearpy.core.window.windows import OverlappingWindows
from gearpy.ids import MAX_MS, MIN_MS

_MISSING: Final = object()


class SlidingPieces:
    """Cuts sliding windows into pieces of time; finds the windows that close.

    A piece lies between two boundaries of windows; all of it is in the same windows. It is named
    by its start, which is a time in it. Pieces need no order of records: see `Fold.commutes`.
    """

    def __init__(self, windows: OverlappingWindows) -> None:
        self._windows = windows

    def start_of(self, timestamp_ms: int) -> int:
        return self._windows.piece_of(timestamp_ms)

    def until(self, piece_ms: int) -> int:
        """Return the next boundary of a window, where a piece ends."""
        return self._windows.piece_until(piece_ms)

    def end_of(self, piece_ms: int) -> int:
        return self._windows.end_of(self._windows.starts_of(piece_ms)[-1])

    def closing(
        self, pieces: Iterable[int], before_ms: int, watermark_ms: int
    ) -> list[tuple[int, int]]:
        """Return the windows with some pieces that a step of the watermark closes, in order.

        Returns:
            End and start of each.
        """
        if not self._may_close(before_ms, watermark_ms):
            return []
        found = {
            (self._windows.end_of(start_ms), start_ms)
            for piece_ms in pieces
            for start_ms in self._windows.starts_of(piece_ms)
        }
        return sorted(each for each in found if before_ms < each[0] <= watermark_ms)

    def joined(
        self, pieces: Mapping[int, dict[Any, Any]], start_ms: int, end_ms: int, fold: PaneFold
    ) -> dict[Any, Any]:
        """Return the values by key of a window; keys in the order of their first pieces."""
        inside = [pieces[at] for at in sorted(pieces) if start_ms <= at < end_ms]
        if len(inside) == 1:
            return inside[0]
        joined: dict[Any, Any] = {}
        if isinstance(inside[0], Counter):
            for piece in inside:
                get = joined.get
                for key, count in piece.items():
                    joined[key] = get(key, 0) + count
            return joined
        for piece in inside:
            _join(joined, piece, fold)
        return joined

    def _may_close(self, before_ms: int, watermark_ms: int) -> bool:
        """Tell whether a window ends in a step of the watermark; asked at each one."""
        if watermark_ms == MAX_MS or before_ms == MIN_MS:
            return True
        return self._windows.may_close(before_ms, watermark_ms)


def _join(joined: dict[Any, Any], piece: dict[Any, Any], fold: PaneFold) -> None:
    """Merge a piece in. It goes on, so it is given away as a copy."""
    merge = fold.merge
    assert merge is not None, "a fold that commutes merges"
    values = own_each([*piece.values()])
    if not joined:
        joined.update(zip(piece, values, strict=True))
        return
    get = joined.get
    for key, value in zip(piece, values, strict=True):
        before = get(key, _MISSING)
        joined[key] = value if before is _MISSING else merge(before, value)
