"""The batches of a window log by the names of its files, and the files to read.

A lane is what one task writes. Its batches are numbered from 1 without a gap. A file has one
batch, or after compaction a range of them, and its name says so; so a list of names is all that
is needed to know what there is to read, how far a reader has come, and what may be removed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from gearpy.errors import WindowLogGap

#: Folders of a log; Spark, Hive and Arrow pass over names that begin with an underscore.
PENDING: Final = "_pending/"
OWNERS: Final = "_owners/"
READERS: Final = "_readers/"
HANDOVERS: Final = "_spark/"
LOG_FOLDERS: Final = (PENDING, OWNERS, READERS, HANDOVERS)

#: How far a reader has come: the last batch read of each lane; 0 of a lane that is not in it.
Position: TypeAlias = Mapping[str, int]

#: Names of files have 255 characters at most.
WRITER_CHARS_MAX: Final = 50

#: Arrow files of up to so many rows, and as often as that, are read faster than those of Parquet.
TINY_ROWS_MAX: Final = 4096
TINY_EVERY_MS: Final = 1000

_NAME: Final = re.compile(
    r"(?P<lane>[A-Za-z][A-Za-z0-9_]*-\d{5,})-(?P<first>\d{12,})-(?P<last>\d{12,})-(?P<rows>\d+)-"
    r"(?P<epoch>\d{10,})-(?P<run>[A-Za-z0-9_~-]+)-(?P<incarnation>[0-9a-f]{16,})\.(parquet|arrow)",
    re.ASCII,
)


class LogSegment(NamedTuple):
    """A file of a log."""

    name: str
    lane: str
    first: int
    last: int
    rows: int
    epoch: int
    run: str
    incarnation: int

    @property
    def batches(self) -> int:
        return self.last - self.first + 1


class LogPiece(NamedTuple):
    """The batches ``first`` to ``last`` of a file."""

    segment: LogSegment
    first: int
    last: int

    @property
    def is_whole(self) -> bool:
        return (self.first, self.last) == (self.segment.first, self.segment.last)

    @property
    def batches(self) -> int:
        return self.last - self.first + 1

    @property
    def rows(self) -> int:
        if self.is_whole:
            return self.segment.rows
        return -(-self.segment.rows * self.batches // self.segment.batches)

    def cut(self, batches: int) -> "LogPiece":
        return self._replace(last=min(self.last, self.first + batches - 1))


def is_writer_name(text: str) -> bool:
    is_word = text.isascii() and text.isidentifier() and not text.startswith("_")
    return is_word and len(text) <= WRITER_CHARS_MAX


def lane_name(writer: str, task: int) -> str:
    assert is_writer_name(writer), writer
    return f"{writer}-{task:05d}"


def segment_name(
    lane: str,
    *,
    first: int,
    last: int,
    rows: int,
    epoch: int,
    run: str,
    incarnation: int,
    body: str = "parquet",
) -> str:
    """Return the name of a file; `segments_of` reads it."""
    return f"{lane}-{first:012d}-{last:012d}-{rows}-{epoch:010d}-{run}-{incarnation:016x}.{body}"


def segments_of(names: Iterable[str]) -> list[LogSegment]:
    """Return the segments of some names; names of other files are passed over."""
    found = [
        LogSegment(
            name=match[0],
            lane=match["lane"],
            first=int(match["first"]),
            last=int(match["last"]),
            rows=int(match["rows"]),
            epoch=int(match["epoch"]),
            run=match["run"],
            incarnation=int(match["incarnation"], 16),
        )
        for match in map(_NAME.fullmatch, names)
        if match is not None
    ]
    return [each for each in found if 1 <= each.first <= each.last]


class LogView:
    """The files of a log that are to be read, as far as their names tell.

    Of each lane the fewest files are taken that have all its batches, so that a compacted file
    hides those that it was made of.

    Invariant: the pieces of `between` have each batch once, in order of its lane.
    """

    def __init__(self, segments: Iterable[LogSegment]) -> None:
        by_lane: dict[str, list[LogSegment]] = {}
        for segment in segments:
            by_lane.setdefault(segment.lane, []).append(segment)
        self._pieces: dict[str, list[LogPiece]] = {}
        for lane in sorted(by_lane):
            ordered = sorted(by_lane[lane], key=lambda each: each.first)
            self._pieces[lane] = pieces = []
            at, wanted = 0, ordered[0].first
            while at < len(ordered):
                best = ordered[at]
                wanted = max(wanted, best.first)  # There may be a hole.
                # The later incarnation counts where two files have the same batches.
                while at < len(ordered) and ordered[at].first <= wanted:
                    best = max(
                        best, ordered[at], key=lambda each: (each.last, each.incarnation, each.name)
                    )
                    at += 1
                if best.last >= wanted:
                    pieces.append(LogPiece(best, wanted, best.last))
                    wanted = best.last + 1
        taken = {piece.segment for pieces in self._pieces.values() for piece in pieces}
        self._hidden = [each for lane in sorted(by_lane) for each in set(by_lane[lane]) - taken]

    @property
    def lanes(self) -> tuple[str, ...]:
        return tuple(self._pieces)

    def pieces(self, lane: str) -> Sequence[LogPiece]:
        return self._pieces.get(lane, ())

    @property
    def hidden(self) -> Sequence[LogSegment]:
        return sorted(self._hidden)

    @property
    def holes(self) -> Sequence[tuple[str, int, int]]:
        return [
            (lane, before.last + 1, after.first - 1)
            for lane, pieces in self._pieces.items()
            for before, after in pairwise(pieces)
            if after.first > before.last + 1
        ]

    def ends(self) -> dict[str, int]:
        return {lane: pieces[-1].last for lane, pieces in self._pieces.items()}

    def begins(self) -> dict[str, int]:
        return {lane: pieces[0].first for lane, pieces in self._pieces.items()}

    def start(self) -> dict[str, int]:
        return {lane: first - 1 for lane, first in self.begins().items()}

    def between(self, start: Position, end: Position, *, skip_gaps: bool = False) -> list[LogPiece]:
        """Return the batches behind ``start`` and up to ``end``, lane by lane."""
        found = []
        for lane in sorted(end):
            begin, last = start.get(lane, 0), end[lane]
            pieces = list(self._from(lane, begin, until=last))
            if not skip_gaps:
                wanted = begin + 1
                for piece in pieces:
                    if piece.first > wanted:
                        raise WindowLogGap(lane=lane, wanted=wanted, kept=piece.first)
                    wanted = piece.last + 1
                if wanted <= last:
                    raise WindowLogGap(lane=lane, wanted=wanted, kept=last + 1)
            found += pieces
        return found

    def rows_between(self, start: Position, end: Position) -> int:
        return sum(piece.rows for piece in self.between(start, end, skip_gaps=True))

    def batches_between(self, start: Position, end: Position) -> int:
        return sum(piece.batches for piece in self.between(start, end, skip_gaps=True))

    def advance(
        self,
        start: Position,
        *,
        max_rows: int | None = None,
        max_batches: int | None = None,
        until: Position | None = None,
    ) -> dict[str, int]:
        """Return up to where a reader at ``start`` reads next: behind it whenever there is a batch.

        One that has too many rows is read alone. Lanes take turns, the oldest epoch first. Nothing
        is read behind ``until``.
        """
        limits = self.ends() if until is None else until
        found = {lane: start[lane] for lane in start}
        found |= {lane: start.get(lane, 0) for lane in self._pieces if limits.get(lane, 0) > 0}
        waiting: list[tuple[int, int, str, LogPiece, Iterator[LogPiece]]] = []
        for lane in self._pieces:
            pieces = self._from(lane, start.get(lane, 0), until=limits.get(lane, 0))
            if (piece := next(pieces, None)) is not None:
                waiting.append((0, piece.segment.epoch, lane, piece, pieces))
        heapify(waiting)
        is_used = False
        while waiting:  # The lane that has given the fewest rows comes next, then the oldest.
            given, _, lane, piece, pieces = heappop(waiting)
            part = piece.cut(piece.batches if max_batches is None else max_batches)
            if max_rows is not None and part.rows > max_rows:
                # A file is cut only when it comes first: others are better read whole, later.
                part = part.cut(0 if is_used else max_rows * part.batches // part.rows)
            if not is_used:
                part = piece.cut(max(part.batches, 1))
            if part.batches <= 0:
                break
            is_used, found[lane] = True, part.last
            max_rows = None if max_rows is None else max_rows - part.rows
            max_batches = None if max_batches is None else max_batches - part.batches
            if part.last != piece.last:
                break
            if (after := next(pieces, None)) is not None:
                entry = (given + piece.rows, after.segment.epoch, lane, after, pieces)
                heappush(waiting, entry)
        return found

    def removable(self, position: Position) -> list[LogSegment]:
        """Return the files, oldest first, that a reader at this position needs no more.

        That with the highest number of a lane stays: without it a new run would number from 1.
        """
        ends = self.ends()
        everything = [*self._hidden, *(p.segment for each in self._pieces.values() for p in each)]
        return sorted(
            segment
            for segment in set(everything)
            if segment.last <= position.get(segment.lane, 0) and segment.last < ends[segment.lane]
        )

    def _from(self, lane: str, begin: int, *, until: int) -> Iterator[LogPiece]:
        for segment, first, last in self._pieces.get(lane, ()):
            if last > begin and first <= until:
                yield LogPiece(segment, max(first, begin + 1), min(last, until))


def is_tiny(rows: int, *, since_ms: float) -> bool:
    return rows <= TINY_ROWS_MAX and since_ms <= TINY_EVERY_MS


# -- compaction --------------------------------------------------------------------------------


def newest_to_compact(
    pieces: Sequence[LogPiece], *, files_min: int, rows_max: int
) -> Sequence[LogPiece]:
    """Return the newest files of a lane that are worth to be made one; empty if they are not.

    An older file is taken along only if those behind it have as many rows, so that a row is
    copied a number of times that grows with the logarithm of all rows.
    """
    rows, begin = 0, len(pieces)
    while begin:
        older = pieces[begin - 1].segment
        if rows + older.rows > rows_max:
            break
        if begin < len(pieces):
            is_next = pieces[begin - 1].last + 1 == pieces[begin].first
            if not is_next or not (older.batches == 1 or older.rows <= rows):
                break
        begin -= 1
        rows += older.rows
    group = pieces[begin:]
    return group if len(group) >= max(files_min, 2) else ()


def groups_to_compact(pieces: Sequence[LogPiece], *, rows_max: int) -> list[Sequence[LogPiece]]:
    groups: list[list[LogPiece]] = [[]]
    for piece in pieces:
        rows = sum(each.segment.rows for each in groups[-1])
        is_next = not groups[-1] or groups[-1][-1].last + 1 == piece.first
        if not is_next or (groups[-1] and rows + piece.segment.rows > rows_max):
            groups.append([])
        groups[-1].append(piece)
    return [group for group in groups if len(group) > 1]


# -- one lane ----------------------------------------------------------------------------------
