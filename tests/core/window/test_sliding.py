"""Sliding windows of pieces, beside windows that look at each record."""

from collections import Counter, defaultdict
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.sliding import SlidingPieces
from gearpy.core.window.windows import SlidingWindows
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.window_cases import FOLDS

FOLD = replace(FOLDS["in place"])


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(-20, 60)), max_size=20),
    st.lists(st.integers(-30, 90), max_size=6),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(-5, 5),
)
def test_windows_of_pieces_hold_what_windows_hold(
    records: list[tuple[str, int]], marks: list[int], size_ms: int, every_ms: int, offset_ms: int
) -> None:
    """Each window closes once, in order, with all its records, although merging spoils values."""
    windows = SlidingWindows(size_ms, min(every_ms, size_ms), offset_ms)
    pieces = SlidingPieces(windows)
    open_: defaultdict[int, dict[str, list[int]]] = defaultdict(dict)
    for key, time in records:
        open_[pieces.start_of(time)].setdefault(key, []).append(time)
    seen: list[tuple[int, int, str, list[int]]] = []

    before = MIN_MS
    for mark in [*sorted(marks), MAX_MS]:
        for end, start in pieces.closing(open_, before, mark):
            joined = pieces.joined(open_, start, end, FOLD)
            seen += [(end, start, key, sorted(times)) for key, times in sorted(joined.items())]
        before = mark

    expected: defaultdict[tuple[int, int, str], list[int]] = defaultdict(list)
    for key, time in records:
        for start in windows.starts_of(time):
            expected[windows.end_of(start), start, key].append(time)
    assert [tuple(row[:3]) for row in seen] == sorted(expected)
    assert [row[3] for row in seen] == [sorted(expected[each]) for each in sorted(expected)]


def test_counts_are_added_up() -> None:
    pieces = SlidingPieces(SlidingWindows(10, 5))
    open_ = {0: Counter(a=1, b=2), 5: Counter(a=3)}

    assert pieces.joined(open_, 0, 10, FOLD) == {"a": 4, "b": 2}


def test_piece_ends_with_its_last_window() -> None:
    pieces = SlidingPieces(SlidingWindows(10, 5))

    assert [pieces.end_of(pieces.start_of(time)) for time in (0, 4, 5, -1)] == [10, 10, 15, 5]
