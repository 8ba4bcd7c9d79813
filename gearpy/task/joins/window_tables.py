"""The stage that joins two streams in columns, by records of a key that are in the same window.

What is kept is in tables by piece of time, as they came. All windows that a step of the watermark
closes are joined together: a record is found by the number of its window and that of its key.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.join.changes import Kept, RecordLog
from gearpy.core.join.sides import LEFT, RIGHT, SIDES
from gearpy.core.join.window import OpenPieces
from gearpy.core.window.windows import DisjointWindows, OverlappingWindows
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, joined_rows
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.table_gate import HeldRows
from gearpy.task.joins.group_cells import PIECE, cells_of_groups, kept_tables
from gearpy.task.joins.join_schema import SIDE_NAMES, JoinSchema
from gearpy.task.joins.runs import Numbers, paired
from gearpy.task.joins.sides_stage import GatedSidesStage
from gearpy.task.joins.streams import JoinSpec
from gearpy.task.time.pieces import TimePieces

_PLACE: Final = "#place"
_CODE: Final = "#code"
#: So many records of windows are joined at once, or those of one window.
_ROWS: Final = 1 << 18


class SideRecords(NamedTuple):
    """Records of one side in one piece of time, in their order.

    Attributes:
        places: how far event time was for each.
    """

    rows: pa.RecordBatch
    codes: Numbers
    places: Numbers

    def taken(self, which: Any) -> "SideRecords":
        at = np.flatnonzero(which)
        return SideRecords(self.rows.take(pa.array(at)), self.codes[at], self.places[at])


#: Of a piece: the records on the left and on the right.
_Sides: TypeAlias = tuple[list[SideRecords], list[SideRecords]]
#: Start and end of a window, and its records.
_Window: TypeAlias = tuple[int, int, _Sides]


class PairingStage(GatedSidesStage):
    """The base of joins in windows: pairs the records that are in one window and of one key."""

    def _rows(self, parts: list[SideRecords], side: int) -> pa.RecordBatch:
        empty = pa.RecordBatch.from_pylist([], schema=self._sides[side].arrow)
        return joined_rows([part.rows for part in parts]) if parts else empty

    def _pairs(
        self,
        rows: list[pa.RecordBatch],
        groups: list[Numbers],
        *,
        width: int,
        starts: Numbers,
        ends: Numbers,
    ) -> Iterator[Batch]:
        """Yield the results of some windows: of a key, by the left records, then the right ones.

        Args:
            groups: of each side; records of one number are in one window, and of one key.
            width: so many numbers are those of one window, of which these are the bounds.
        """
        lefts, rights = (np.argsort(each, kind="stable") for each in groups)
        of_left, of_right = groups[LEFT][lefts], groups[RIGHT][rights]
        low, high = (np.searchsorted(of_right, of_left, side) for side in ("left", "right"))
        counts = high - low
        if self._comes_alone[LEFT]:
            is_alone = counts == 0
            low[is_alone], counts[is_alone] = -1, 1
        if self._comes_alone[RIGHT]:
            first, last = (np.searchsorted(of_left, of_right, side) for side in ("left", "right"))
            alone = np.flatnonzero(first == last)
            of_left = np.concatenate([of_left, of_right[alone]])
            order = np.argsort(of_left, kind="stable")
            lefts = np.concatenate([lefts, np.full(len(alone), -1)])[order]
            low = np.concatenate([low, alone])[order]
            counts = np.concatenate([counts, np.ones(len(alone), np.int64)])[order]
            of_left = of_left[order]
        rights = np.append(rights, -1)  # The place of none.
        for at, theirs in paired(low, counts):
            number = of_left[at] // width
            pair = (lefts[at], rights[theirs])
            yield self._results(rows, pair, starts[number], ends[number])

    def _results(
        self,
        rows: list[pa.RecordBatch],
        pair: tuple[Numbers, Numbers],
        starts: Numbers,
        ends: Numbers,
    ) -> Batch:
        left, right = pair
        places = pa.array(np.where(left >= 0, left, rows[LEFT].num_rows + right))
        keys = [
            pa.concat_arrays([each.column(at) for each in rows]).take(places)
            for at in range(rows[LEFT].num_columns - 1)
        ]
        sides = [
            of.columns[-1].take(pa.array(at, mask=at < 0))
            for of, at in zip(rows, pair, strict=True)
        ]
        columns = [*keys, *sides, pa.array(starts), pa.array(ends)]
        table = Table(self._schema.made(columns))
        return Batch(table, Times(pa.array(ends - 1)))


class WindowTablesStage(PairingStage):
    """Joins two streams of tables as `WindowJoin` does.

    What is kept is told once, at the end of the epoch in which it came, as one table for each group
    of keys. A step goes on in either form.
    """

    def __init__(self, context: TaskContext, name: str, spec: JoinSpec, schema: JoinSchema) -> None:
        super().__init__(context, name, spec, schema)
        windows = spec.windows
        assert isinstance(windows, DisjointWindows | OverlappingWindows), "others are in rows"
        self._windows = windows
        self._times = TimePieces(windows)
        self._pieces: OpenPieces[_Sides] = OpenPieces(windows, lambda: ([], []))
        self._fresh: list[tuple[int, int, SideRecords]] = []  # Not told yet: side, piece, records.
        self._told: list[tuple[Any, list[Any], int]] = []  # With the time when all of it is over.
        self._chunk = 0

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        self._due(watermark_ms)
        self._watermark_ms = watermark_ms
        some, rows = list[_Window](), 0
        for start, end, pieces in self._pieces.closing(watermark_ms):
            parts = [
                [part for piece in pieces for part in _in_time(piece[side], end)] for side in SIDES
            ]
            more = sum(len(part.codes) for of_side in parts for part in of_side)
            if some and rows + more > _ROWS:
                yield from self._joined(some)
                some, rows = [], 0
            some.append((start, end, (parts[LEFT], parts[RIGHT])))
            rows += more
        if some:
            yield from self._joined(some)
        self._pieces.over()

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        """Keep the records that event time has passed; leave out, and count, what is late.

        Results come with the watermark only.
        """
        for side in SIDES:
            if (found := self._gate.due_of(side, watermark_ms)) is not None:
                self._keep(side, found)
        return iter(())

    def _keep(self, side: int, found: HeldRows) -> None:
        places = np.maximum(found.places.to_numpy(), self._watermark_ms)
        rows = found.rows.append_column(_CODE, pa.array(self._codes.of(found.rows)))
        rows = rows.append_column(_PLACE, pa.array(places))
        for piece, some, _ in self._times.parts(rows, Times(found.times)):
            codes, at = (some.column(name).to_numpy() for name in (_CODE, _PLACE))
            part = SideRecords(some.select(found.rows.schema.names), codes, at)
            late = at >= self._pieces.over_ms(piece)
            if late.any():
                self._context.counters.late_records += int(late.sum())
                part = part.taken(~late)
            if len(part.codes):
                self._add(side, piece, part)

    def _add(self, side: int, piece: int, part: SideRecords) -> None:
        kept = self._pieces.at(piece, self._watermark_ms)
        if kept is not None:
            kept[side].append(part)
            self._fresh.append((side, piece, part))

    def _joined(self, windows: list[_Window]) -> Iterator[Batch]:
        """Yield the results of some windows: of a key, by the left records, then the right ones."""
        width = max(len(self._codes), 1)
        rows, groups = list[pa.RecordBatch](), list[Numbers]()
        for side in SIDES:
            parts = [part for _, _, sides in windows for part in sides[side]]
            rows.append(self._rows(parts, side))
            sizes = [sum(len(part.codes) for part in sides[side]) for _, _, sides in windows]
            codes = np.concatenate([part.codes for part in parts] or [np.zeros(0, np.int64)])
            groups.append(np.repeat(np.arange(len(windows)), sizes) * width + codes)
        starts, ends = (
            np.array([max(each[at], MIN_MS) for each in windows], np.int64) for at in range(2)
        )
        yield from self._pairs(rows, groups, width=width, starts=starts, ends=ends)

    @property
    def _first_ms(self) -> int:
        return self._pieces.hold_ms

    # -- state and epochs ----------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        self._gate.tell()
        gone = [each for each in self._told if each[2] <= self._watermark_ms]
        self._told = [each for each in self._told if each[2] > self._watermark_ms]
        for namespace, keys, _ in gone:
            self._kept.delete(keys, namespace)
        fresh, self._fresh = [each for each in self._fresh if each[1] in self._pieces.kept], []
        self._chunk += 1
        for side, name in enumerate(SIDE_NAMES):
            parts = [(piece, part) for of, piece, part in fresh if of == side]
            if not parts:
                continue
            pieces = [np.full(len(part.codes), max(piece, MIN_MS)) for piece, part in parts]
            rows = joined_rows([part.rows for _, part in parts])
            rows = rows.append_column(PIECE, pa.array(np.concatenate(pieces)))
            codes = np.concatenate([part.codes for _, part in parts])
            cells = cells_of_groups(rows, self._codes.groups(codes))
            namespace = (name, self._chunk)
            self._kept.put_all([*cells], [*cells.values()], namespace)
            over_ms = max(self._pieces.over_ms(piece) for piece, _ in parts)
            self._told.append((namespace, [*cells], over_ms))
        self._forget_codes()
        return [self._description, self._watermark_ms]

    def _forget_codes(self) -> None:
        kept = [parts for sides in self._pieces.kept.values() for parts in sides]
        if (moved := self._codes.forget([part.codes for each in kept for part in each])) is None:
            return
        for parts in kept:
            parts[:] = [part._replace(codes=moved[part.codes]) for part in parts]

    def restore(self, state: list[Any] | None) -> None:
        super().restore(state)
        log, of_rows, tables = RecordLog(), list[tuple[Any, list[Any], int]](), dict[Any, Any]()
        for namespace, cells in self._kept.restored():
            if namespace[0] in SIDE_NAMES:
                tables[namespace] = cells
            else:
                log.load(namespace, cells)
                of_rows.append((namespace, [*cells], MIN_MS))  # They are told as tables.
        for (name, chunk), pieces in kept_tables(tables, self._windows):
            over_ms = max(map(self._pieces.over_ms, pieces))
            self._told.append(((name, chunk), [*tables[name, chunk]], over_ms))
            self._chunk = chunk
            for piece, rows in pieces.items():
                self._load(SIDE_NAMES.index(name), piece, rows)
        self._fresh = []
        self._load_rows(log.resume())
        self._told += of_rows
        self._gate.restore(self.place, self.name)

    def _load(self, side: int, piece: int, rows: pa.RecordBatch) -> None:
        self._add(side, piece, SideRecords(rows, self._codes.of(rows), np.full(len(rows), MIN_MS)))

    def _load_rows(self, records: list[tuple[int, Kept]]) -> None:
        of_parts: dict[tuple[int, int], list[Any]] = {}
        for piece, kept in records:
            row = (kept.side, kept.key, kept.value)
            of_parts.setdefault((kept.side, piece), []).append(row)
        for (side, piece), rows in of_parts.items():
            self._load(side, piece, self._sides[side].table(rows))

    def _tables(self) -> Iterator[pa.RecordBatch]:
        kept = chain.from_iterable(chain.from_iterable(self._pieces.kept.values()))
        return (part.rows for part in kept)

    def _tell_again(self) -> None:
        self._told = []
        self._fresh = [
            (side, piece, part)
            for piece, sides in self._pieces.kept.items()
            for side in SIDES
            for part in sides[side]
        ]


def _in_time(parts: list[SideRecords], end_ms: int) -> Iterator[SideRecords]:
    """Yield the records that came before a window closed."""
    for part in parts:
        is_late = part.places >= end_ms
        yield part.taken(~is_late) if is_late.any() else part
