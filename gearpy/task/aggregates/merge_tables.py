"""Partials of columns merged in columns: into results as a table, or as rows.

For aggregates that Arrow can merge, over tables whose schema the plan knows. What is kept of a
window, or of a piece of sliding ones, are the tables of partials as they came, merged when they
have grown, when an epoch ends and when windows close. No accumulator is made of them but for what
state has to store; it stores the same as if the windows were given rows.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice, pairwise, repeat
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gearpy.columns.growing import GrowingColumns, grown
from gearpy.columns.log_columns import moments
from gearpy.columns.results import column_of
from gearpy.columns.row_schema import as_table
from gearpy.core.base.fields import key_getter
from gearpy.core.window.sliding import SlidingPieces
from gearpy.core.window.windows import OverlappingWindows, SessionWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, microsecond_type
from gearpy.state.encoding.coders import pack_atom
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.stores.tables import packed, packed_tuples
from gearpy.task.aggregates.columns import (
    OWN,
    RECORDS,
    ColumnGroups,
    PartialTables,
    Reader,
    grouped,
    grouped_in_windows,
    listed,
)
from gearpy.task.aggregates.fitting import roles_of
from gearpy.task.aggregates.fold import FoldingStage, WindowedStage
from gearpy.task.aggregates.partials import Input, merging_of
from gearpy.task.aggregates.rows import Aggregates
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import local_bounds
from gearpy.task.time.pieces import TimePieces, repeated

_Array: TypeAlias = NDArray[Any]
#: Tables that have come since the last merge are merged when they have so many bytes, and twice as
#: many as it gave.
_MERGED_FROM: Final = 1 << 20
#: So many rows of pieces are merged into windows at once, or one window's.
_CLOSED_ROWS: Final = 1 << 17
#: What results say of a window that fires once, when it closes.
_FIRED: Final = (0, "on-time", False)
#: Start and end of windows, and how many results each has.
Windows: TypeAlias = Sequence[tuple[int, int, int]]


def mergeable(aggregates: Aggregates, schema: pa.Schema) -> bool:
    """Tell whether Arrow can merge the partials of these aggregates of a table."""
    fields = [(each, name) for each in listed(aggregates) for name, _ in roles_of(each)]
    return all(
        merging_of(each) is not None
        and not pa.types.is_nested(kind := schema.field(name).type)
        and microsecond_type(kind) == kind
        for each, name in fields
    )


@dataclass(slots=True)
class _Piece:
    """The partials of one piece of time: keys come once in ``stored``, often in ``fresh``.

    Attributes:
        stored: state has all of it; None if it has none.
        merged: bytes of ``fresh`` as it was merged last.
        size: bytes of ``fresh``.
    """

    oldest_ms: int
    stored: pa.RecordBatch | None = None
    fresh: list[pa.RecordBatch] = field(default_factory=list)
    merged: int = 0
    size: int = 0

    @property
    def tables(self) -> list[pa.RecordBatch]:
        return self.fresh if self.stored is None else [self.stored, *self.fresh]


def merges_at_once(aggregates: Aggregates, schema: pa.Schema) -> bool:
    """Tell whether Arrow can merge a few keys of many at the cost of what has come for them."""
    # Of sets, all of the values that a key has would be merged again.
    is_of_sets = any(each.kind == "distinct" for each in listed(aggregates))
    return not is_of_sets and mergeable(aggregates, schema)


class TablesStage(WindowedStage, ABC):
    """The base of stages that merge partials in columns, and yield results when windows close.

    Args:
        schema: of the tables from which the partials are.
        results: the schema of results as a table; None: they are `WindowResult`s.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        groups: ColumnGroups,
        *,
        schema: pa.Schema,
        results: pa.Schema | None = None,
    ) -> None:
        key_of = key_getter(*groups.key) if groups.key else None
        super().__init__(context, name, key_of, limit=context.limits.batch_records)
        self._merge = TableMerge(groups)
        self._schema = PartialTables(groups).schema(schema)
        self._results = results
        self._rows_max = context.limits.columnar_batch_records
        self._result_of, self._bounds_of = local_bounds(groups.windows)
        self._result = groups.fold.result
        self._kept: BulkState | None = None
        self._watermark_ms = MIN_MS
        self._begin(groups)

    @abstractmethod
    def _begin(self, groups: ColumnGroups) -> None:
        """Have nothing kept."""

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Keep partials until their windows close; those of late records may have to wait."""
        if batch.has_late and type(batch.values) is Table:
            rows = list(batch.values)
            batch = batch.giving(rows, list(batch.timestamps))
            batch.has_late = True
        batch = self._in_time(batch)
        self._take(batch)
        return self._due(self._watermark_ms) if len(self._gate) else iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Yield the results of the windows that end at or before the watermark, in order."""
        try:
            if len(self._gate):
                yield from self._due(watermark_ms)
            yield from self._closed(watermark_ms)
        except (pa.ArrowException, *USER_ERRORS) as error:
            raise operator_error(self.name, error) from error

    def _due(self, watermark_ms: int) -> Iterator[Batch]:
        for at_ms, batch in self._gate.due(watermark_ms):
            yield from self._closed(max(at_ms, self._watermark_ms))
            self._take(batch)

    def _take(self, batch: Batch) -> None:
        if not len(batch.values):
            return
        try:
            if type(batch.values) is Table:
                table = batch.values.batch.cast(self._schema)
            else:
                table = pa.RecordBatch.from_pylist(batch.values, self._schema)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise operator_error(self.name, error) from error
        self._keep(table, Times.of(batch.timestamps))

    @abstractmethod
    def _keep(self, table: pa.RecordBatch, times: Times) -> None:
        """Keep partials whose windows are open; count those that come too late for them."""

    @abstractmethod
    def _closed(self, watermark_ms: int) -> Iterator[Batch]:
        """Yield the results of the windows that end at or before a time."""

    def _given(self, table: pa.RecordBatch, windows: Windows) -> Iterator[Batch]:
        """Yield the results of merged partials, with some windows one behind the other."""
        if self._results is None:
            at = 0
            for start, end, count in windows:
                yield from self._rows(table.slice(at, count), start, end)
                at += count
            return
        counts = [count for *_, count in windows]
        starts, ends = (repeated([each[at] for each in windows], counts) for at in range(2))
        local = [] if self._bounds_of is None else [self._bounds_of(*each[:2]) for each in windows]
        texts = [repeated(list(each), counts) for each in zip(*local, strict=True)]
        yield from self._tables(table, starts, ends, texts)

    def _tables(
        self, table: pa.RecordBatch, starts: pa.Array, ends: pa.Array, texts: Sequence[pa.Array]
    ) -> Iterator[Batch]:
        before = moments(starts), moments(ends)
        behind = [*(pa.repeat(pa.scalar(each), len(table)) for each in _FIRED), *texts]
        results = Table(self._merge.results(table, self._results, before, behind))
        times = Times(pc.subtract(ends, 1))
        for at in range(0, len(times), self._rows_max):
            part = slice(at, at + self._rows_max)
            yield Batch(results[part], times[part])

    def _rows(self, table: pa.RecordBatch, start: int, end: int) -> Iterator[Batch]:
        bounds = () if self._bounds_of is None else self._bounds_of(start, end)
        rows = self._made(table, repeat(start), repeat(end), *map(repeat, bounds))
        while results := list(islice(rows, self._limit)):
            yield Batch(results, [end - 1] * len(results))

    def _made(
        self, table: pa.RecordBatch, starts: Iterable[int], ends: Iterable[int], *local: Any
    ) -> Iterator[Any]:
        keys, kept = self._merge.pairs(table)
        given = kept if self._result is None else map(self._result, kept)
        alike = map(repeat, (0, "on-time", False))
        return map(self._result_of, zip(keys, given, starts, ends, *alike, *local, strict=False))


class MergeTablesStage(TablesStage):
    """Merges partials into windows, in columns; yields results when the watermark closes them.

    Results come by end and start of their windows, then in the order in which keys first came.
    """

    def _begin(self, groups: ColumnGroups) -> None:
        windows = groups.windows
        assert not isinstance(windows, SessionWindows), "they are others for each key"
        self._sliding = SlidingPieces(windows) if isinstance(windows, OverlappingWindows) else None
        self._end_of = (self._sliding or windows).end_of
        self._pieces = TimePieces(windows)
        self._open: dict[int, _Piece] = {}

    # -- what comes --------------------------------------------------------------------------

    def _keep(self, table: pa.RecordBatch, times: Times) -> None:
        for start, part, oldest_ms in self._pieces.parts(table, times):
            if self._end_of(start) <= self._watermark_ms:
                self._context.counters.late_records += pc.sum(part.column(RECORDS)).as_py()
                continue
            piece = self._open.setdefault(start, _Piece(oldest_ms))
            piece.oldest_ms = min(piece.oldest_ms, oldest_ms)
            piece.fresh.append(part)
            piece.size += part.nbytes
            if piece.size > max(_MERGED_FROM, 2 * piece.merged) and len(piece.fresh) > 1:
                piece.fresh = [self._merge.of(piece.fresh)]
                piece.size = piece.merged = piece.fresh[0].nbytes

    # -- what goes ---------------------------------------------------------------------------

    def _closed(self, watermark_ms: int) -> Iterator[Batch]:
        before_ms, self._watermark_ms = self._watermark_ms, watermark_ms
        windows = self._closing(before_ms)
        if not windows:
            return
        if self._sliding is None:
            starts, held = [start for _, start in windows], [*pairwise(range(len(windows) + 1))]
        else:
            starts = sorted(self._open)
            held = [(bisect_left(starts, low), bisect_left(starts, high)) for high, low in windows]
        pieces = [self._open[start].tables for start in starts]
        begins = [0, *accumulate([sum(map(len, tables)) for tables in pieces])]
        first = 0
        for at in range(1, len(held) + 1):
            rows = begins[held[at][1]] - begins[held[first][0]] if at < len(held) else MAX_MS
            if rows > _CLOSED_ROWS:
                yield from self._merged(pieces, windows[first:at], held[first:at])
                first = at
        for start in [s for s in self._open if self._end_of(s) <= watermark_ms]:
            self._forget(start, self._open.pop(start))

    def _closing(self, before_ms: int) -> list[tuple[int, int]]:
        """Return end and start of the windows that close, in order."""
        if self._sliding is not None:
            return self._sliding.closing(self._open, before_ms, self._watermark_ms)
        ends = ((self._end_of(start), start) for start in self._open)
        return sorted(each for each in ends if each[0] <= self._watermark_ms)

    def _merged(
        self,
        pieces: list[list[pa.RecordBatch]],
        windows: list[tuple[int, int]],
        held: list[tuple[int, int]],
    ) -> Iterator[Batch]:
        """Yield the results of some windows, which hold pieces from one up to before another."""
        first, behind = held[0][0], held[-1][1]
        held = [(low - first, high - first) for low, high in held] if first else held
        at = 0
        for table, counts in self._merge.of_windows(pieces[first:behind], held):
            some = zip(windows[at : at + len(counts)], counts, strict=True)
            yield from self._given(table, [(start, end, n) for (end, start), n in some])
            at += len(counts)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Any:
        """Return the oldest record times of open windows, and the watermark.

        Keyed state has what has changed in the windows.
        """
        for start, piece in self._open.items():
            if not piece.fresh:
                continue
            piece.stored, changed = self._merge.changed(piece.stored, piece.fresh)
            piece.fresh, piece.size, piece.merged = [], 0, 0
            self._state().put_table(self._merge, changed, start)
        self._gate.tell()
        return [{at: piece.oldest_ms for at, piece in self._open.items()}, self._watermark_ms]

    def restore(self, state: list[Any] | None) -> None:
        oldest_ms, self._watermark_ms = state or ({}, MIN_MS)
        for start, pairs in self._state().restored():
            table = self._merge.table([*pairs], [*pairs.values()], self._schema)
            self._open[start] = _Piece(oldest_ms[start], stored=table)
        self._gate.restore(self.place, self.name)

    @property
    def open_windows(self) -> int:
        sliding = self._sliding
        if sliding is None:
            return sum(self._merge.of(each.tables).num_rows for each in self._open.values())
        windows = sliding.closing(self._open, self._watermark_ms, MAX_MS)
        inside = ([self._open[at] for at in self._open if a <= at < b] for b, a in windows)
        found = (chain.from_iterable(each.tables for each in pieces) for pieces in inside)
        return sum(self._merge.of(list(tables)).num_rows for tables in found)

    @property
    def hold_ms(self) -> int:
        oldest = (piece.oldest_ms for piece in self._open.values())
        return min(self._gate.first_ms, *oldest, MAX_MS)

    def _state(self) -> BulkState:
        if self._kept is None:
            self._kept = self._bulk("windows")
            self._kept.holds_tables(
                lambda: chain.from_iterable(each.tables for each in self._open.values()),
                self._tell_again,
            )
        return self._kept

    def _tell_again(self) -> None:
        for piece in self._open.values():
            piece.fresh, piece.stored = piece.tables, None

    def _forget(self, start: int, piece: _Piece) -> None:
        if piece.stored is not None:
            self._state().delete_table(self._merge, piece.stored, start)


class MergeRunningTables(FoldingStage):
    """Merges partials over the whole stream, in columns; yields tables with a result for each key.

    What keys have so far is in columns that grow, at a place for each key. Its state is the same as
    if it were given the records behind the partials.

    Args:
        schema: of the tables from which the partials are.
        results: the schema of results.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        groups: ColumnGroups,
        *,
        schema: pa.Schema,
        results: pa.Schema,
    ) -> None:
        super().__init__(context, name, key_getter(*groups.key))
        self._merge = TableMerge(groups)
        self._schema = PartialTables(groups, is_running=True).schema(schema)
        self._results = results
        self._place_of: dict[Any, int] = {}
        types, self._width = self._schema.types, len(groups.key)
        self._keys = GrowingColumns(types[: self._width])
        self._partials = GrowingColumns(types[self._width :])
        self._is_changed = np.zeros(0, np.bool_)  # Since the last epoch, by place.
        self._kept: BulkState | None = None

    def process(self, batch: Batch) -> Iterator[Batch]:
        if not len(batch.values):
            return
        try:
            table = as_table(batch.values).batch
            if not table.schema.equals(self._schema):
                table = table.cast(self._schema)
            places, table, times = self._by_key(table, Times.of(batch.timestamps))
            results = Table(self._merge.results(self._merged(places, table), self._results))
        except (pa.ArrowException, *USER_ERRORS) as error:
            raise operator_error(self.name, error) from error
        yield batch.giving(results, times)

    def _by_key(self, table: pa.RecordBatch, times: Times) -> tuple[_Array, pa.RecordBatch, Times]:
        """Return places of keys, partials with a row for each, and the newest of their times."""
        place_of = self._place_of
        found = [place_of.setdefault(key, len(place_of)) for key in self._merge.keys(table)]
        places = np.array(found)
        if len(set(found)) == len(found):
            return places, table, times
        # Of equal times the first one counts.
        order = np.lexsort((-np.arange(len(found)), times.array.to_numpy()))
        rank_of = np.empty(len(found), np.int64)
        rank_of[order] = np.arange(len(found))
        arrays, firsts, (ranks,) = self._merge.merged(
            table, [pa.array(places)], [(pa.array(rank_of), "max", None)]
        )
        newest = times.take(pa.array(order[ranks.to_numpy()]))
        return places[firsts.to_numpy()], _like(table, arrays), newest

    def _merged(self, places: _Array, table: pa.RecordBatch) -> pa.RecordBatch:
        """Merge partials into what their keys have, and return what they have then."""
        is_new, width = places >= len(self._keys), self._width
        known = np.flatnonzero(~is_new)
        self._is_changed = grown(self._is_changed, len(self._place_of))
        self._is_changed[places] = True
        arrays = table.columns
        if len(known):
            keys = table.take(pa.array(known)).columns[:width]
            kept = _like(table, [*keys, *self._partials.take(places[known])])
            of_key = np.append(known, np.arange(len(places)))
            both = pa.concat_batches([kept, table])
            arrays, firsts, _ = self._merge.merged(both, [pa.array(of_key)], [])
            if len(known) < len(places):
                order = pa.array(np.argsort(of_key[firsts.to_numpy()]))
                arrays = [each.take(order) for each in arrays]
        if len(known) < len(places):
            new = pa.array(np.flatnonzero(is_new))
            self._keys.put(places[is_new], [each.take(new) for each in arrays[:width]])
        self._partials.put(places, arrays[width:])
        return _like(table, arrays)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Hand over what has changed."""
        changed = np.flatnonzero(self._is_changed)
        if len(changed):
            columns = [*self._keys.take(changed), *self._partials.take(changed)]
            rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
            self._state().put_table(self._merge, rows)
            self._is_changed[changed] = False

    def restore(self, state: Any) -> None:
        for _, pairs in self._state().restored():
            columns = self._merge.table([*pairs], [*pairs.values()], self._schema).columns
            self._place_of = dict(zip(pairs, range(len(pairs)), strict=True))
            places = np.arange(len(pairs))
            self._keys.put(places, columns[: self._width])
            self._partials.put(places, columns[self._width :])
            self._is_changed = grown(self._is_changed, len(pairs))

    def _state(self) -> BulkState:
        if self._kept is None:
            self._kept = self._bulk("running")
            self._kept.holds_tables(lambda: (self._keys, self._partials), self._tell_again)
        return self._kept

    def _tell_again(self) -> None:
        self._is_changed[: len(self._keys)] = True


def _like(table: pa.RecordBatch, arrays: list[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


class TableMerge:
    """Merges rows of partials that have the same key, and makes of them what is wanted."""

    def __init__(self, groups: ColumnGroups) -> None:
        self.key = tuple(groups.key)
        self._aggregates = listed(groups.aggregates)
        self._reader = Reader(groups)
        self._is_count = [each.kind for each in self._aggregates] == ["count"]
        found = (merging_of(each) for each in self._aggregates if each.kind != "count")
        self._partials = [each for each in found if each is not None]

    def of(self, tables: list[pa.RecordBatch]) -> pa.RecordBatch:
        if len(tables) == 1:
            return tables[0]
        table = pa.concat_batches(tables)
        return _like(table, self.merged(table, self._keys(table), [])[0])

    def of_windows(
        self, pieces: list[list[pa.RecordBatch]], windows: list[tuple[int, int]]
    ) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
        """Yield the merged rows of some windows at a time, and how many each of them has.

        Args:
            windows: the first piece of each, and the piece behind its last one.
        """
        tables = [*chain.from_iterable(pieces)]
        table, sizes = pa.concat_batches(tables), [sum(map(len, some)) for some in pieces]
        if len(tables) == len(pieces) and windows == [*pairwise(range(len(pieces) + 1))]:
            yield table, sizes
            return
        inputs, made = self._asked(table)
        by_cells = grouped_in_windows(self._keys(table), sizes, windows, inputs)
        for places, counts, found in by_cells or ():
            yield _like(table, made(places, found)), counts
        if by_cells is not None:
            return
        begins = [0, *accumulate(sizes)]
        while windows:
            rows = [begins[high] - begins[low] for low, high in windows]
            some = max(1, bisect_right([*accumulate(rows)], _CLOSED_ROWS))
            parts = [table.slice(begins[windows[at][0]], rows[at]) for at in range(some)]
            part, window = pa.concat_batches(parts), repeated([*range(some)], rows[:some])
            merged, places, _ = self.merged(part, [window, *self._keys(part)], [])
            counts = pc.value_counts(window.take(places)).field("counts").to_pylist()
            yield _like(table, merged), counts
            windows = windows[some:]

    def changed(
        self, stored: pa.RecordBatch | None, fresh: list[pa.RecordBatch]
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return what is stored with what is new, and the rows of it that this has changed."""
        if stored is None:
            table = pa.concat_batches(fresh)
            merged = _like(table, self.merged(table, self._keys(table), [])[0])
            return merged, merged
        table = pa.concat_batches([stored, *fresh])
        is_new = repeated([0, 1], [len(stored), len(table) - len(stored)])
        found, _, (is_new,) = self.merged(table, self._keys(table), [(is_new, "max", None)])
        merged = _like(table, found)
        return merged, merged.filter(pc.equal(is_new, 1))

    def merged(
        self, table: pa.RecordBatch, by: list[pa.Array], more: list[Input]
    ) -> tuple[list[pa.Array], pa.Array, list[pa.Array]]:
        """Merge rows that are equal in some columns.

        Returns:
            The columns of partials, where their groups begin, and what more was asked for.
        """
        inputs, made = self._asked(table)
        places, found = grouped(by, len(table), [*more, *inputs])
        return made(places, found[len(more) :]), places, found[: len(more)]

    def _asked(
        self, table: pa.RecordBatch
    ) -> tuple[list[Input], Callable[[pa.Array, list[pa.Array]], list[pa.Array]]]:
        """Return the inputs for groups of rows, and a function that makes merged columns of them.

        The function is given where the groups begin, too.
        """
        ways = [
            partial.merging(self._columns(table, at)) for at, partial in enumerate(self._partials)
        ]

        def made(places: pa.Array, found: list[pa.Array]) -> list[pa.Array]:
            arrays, at = [*(each.take(places) for each in self._keys(table)), found[0]], 1
            for needed, finish in ways:
                arrays += finish(found[at : at + len(needed)])
                at += len(needed)
            return arrays

        return [(table.column(RECORDS), "sum", None), *chain(*(needed for needed, _ in ways))], made

    def _keys(self, table: pa.RecordBatch) -> list[pa.Array]:
        return [table.column(name) for name in self.key]

    @staticmethod
    def _columns(table: pa.RecordBatch, at: int) -> list[pa.Array]:
        names = table.schema.names
        return [table.column(name) for name in names if name.startswith(f"{OWN}{at}.")]

    # -- from and to Python ------------------------------------------------------------------

    def keys(self, table: pa.RecordBatch) -> list[Any]:
        return self._reader.keys(table)

    def pairs(self, table: pa.RecordBatch) -> tuple[list[Any], list[Any]]:
        """Return keys, and accumulators as folds over rows keep them."""
        return self._reader.pairs(table)

    def packed(self, table: pa.RecordBatch) -> pa.BinaryArray:
        """Return the accumulators as they are stored."""
        found, partials = list[pa.BinaryArray](), iter(enumerate(self._partials))
        for aggregate in self._aggregates:
            if aggregate.kind == "count":
                found.append(packed(table.column(RECORDS)))
                continue
            at, partial = next(partials)
            columns = self._columns(table, at)
            stored = partial.stored(columns)
            data = None if stored is None else packed(stored)
            if data is None:
                data = pa.array(map(pack_atom, partial.accumulators(columns)), pa.binary())
            found.append(data)
        return found[0] if self._is_count else packed_tuples(found)

    def table(self, found: Sequence[Any], kept: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
        keys = [[each] for each in found] if len(self.key) == 1 else found
        cells = [[key[at] for key in keys] for at in range(len(self.key))]
        values = [[each] if self._is_count else each for each in kept]
        records, columns, at = [0] * len(values), list[pa.Array](), 0
        for place, aggregate in enumerate(self._aggregates):
            accumulators = [each[place] for each in values]
            if aggregate.kind == "count":
                records = accumulators
                continue
            kinds = [each.type for each in schema if each.name.startswith(f"{OWN}{at}.")]
            columns += self._partials[at].columns(accumulators, kinds)
            at += 1
        arrays = [
            *(
                pa.array(each, schema.field(name).type)
                for name, each in zip(self.key, cells, strict=True)
            ),
            pa.array(records, pa.int64()),
            *columns,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def results(
        self,
        table: pa.RecordBatch,
        schema: pa.Schema,
        before: Sequence[pa.Array] = (),
        behind: Sequence[pa.Array] = (),
    ) -> pa.RecordBatch:
        """Return keys and results as a table, with other columns before and behind them."""
        found = [*before, *(table.column(name) for name in self.key)]
        partials = iter(enumerate(self._partials))
        for aggregate in self._aggregates:
            if aggregate.kind == "count":
                found.append(table.column(RECORDS))
                continue
            at, partial = next(partials)
            columns, field = self._columns(table, at), schema.field(len(found))
            column = partial.results(columns)
            if column is None:
                results = list(map(aggregate.result, partial.accumulators(columns)))
                column = column_of(field, results)
            found.append(column)
        kinds = zip([*found, *behind], schema.types, strict=True)
        cast = [each if each.type == kind else each.cast(kind) for each, kind in kinds]
        return pa.RecordBatch.from_arrays(cast, schema=schema)
