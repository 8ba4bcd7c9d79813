"""The largest records of each key, of columns: most rows are left out before they are compared.

Results and what is kept are those of rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gearpy.columns.results import WINDOW_END, WINDOW_START, result_columns, running_columns
from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.copies import own
from gearpy.core.base.fields import FieldGetter, FieldsGetter, key_getter, value_getter
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.core.window.windows import AlignedWindows, DisjointWindows, OverlappingWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, cells_of, joined_rows
from gearpy.task.aggregates.columns import OWN, ColumnarWindows, ColumnGroups, PartialTables
from gearpy.task.aggregates.fitting import plain, unfit
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.merge_tables import MergeTablesStage
from gearpy.task.aggregates.partials import Finish, Input, MergedAggregate, Rows, places_of
from gearpy.task.aggregates.rows import RunningAggregate
from gearpy.task.aggregates.running_tables import with_keys
from gearpy.task.aggregates.top_n import Ranking, top_records
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.event_gate import Waits
from gearpy.task.chain.table_gate import TableGate
from gearpy.task.stages.tables import ColumnsStage

_Array: TypeAlias = NDArray[Any]
#: The column of whole records beside their own.
_RECORD: Final = f"{OWN}record"
#: Where rows are in more pieces of time, or of more keys, to choose would take longer than to pass.
_PIECES_MAX: Final = 100
_KEYS_MAX: Final = 1 << 17
#: Rows are looked at in growing parts, as each one may raise what the next ones have to exceed.
_FIRST_PART: Final = 1024
#: Records in no list any more are forgotten when there are so many, and twice as many as others.
_ROWS_MIN: Final = 1 << 16
_NOTHING: Final[tuple[list[Any], list[Any], bool]] = ([], [], False)
_BITS_MAX: Final = 63
_TOO_LARGE: Final = 1 << 63  #: The negative of the least number of 64 bits.


def can_choose(kind: "pa.DataType | None", ranking: Ranking | None) -> bool:
    """Tell whether values of a type are compared by NumPy as by Python."""
    if ranking is not None and ranking.is_ascending and kind == pa.uint64():
        return False
    return kind is not None and (
        pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    )


class RunningTop(RunningAggregate):
    """The running aggregate of the largest records.

    Records stay in a table. Of each key what is compared is kept, and where in the table its
    records are; it is written as over rows when an epoch ends.

    Args:
        n: how many.
        by: the column that is compared.
        ranking: what else is compared, where that is alike; None: nothing.
        schema: of the tables in which records come.
        only_changed: only a change of them has a result.
        results: the schema of results as a table; None: they are pairs.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: FieldGetter | FieldsGetter,
        fold: Fold,
        *,
        n: int,
        by: str,
        ranking: Ranking | None,
        schema: RowSchema,
        only_changed: bool = True,
        results: pa.Schema | None = None,
    ) -> None:
        super().__init__(context, name, key, fold)
        self._names = key
        self._n = n
        self._by = by
        self._ranking = ranking
        self._schema = schema
        self._columns = RowSchema(schema.arrow)
        self._only_changed = only_changed
        self._results = results
        self._top = top_records(n, itemgetter(0))  # Of pairs of what is compared, and a place.
        self._lists: dict[Any, Any] = {}
        self._changed: dict[Any, None] = {}
        self._kept = pa.RecordBatch.from_pylist([], schema.arrow)
        self._kept_max = _ROWS_MIN

    def snapshot(self) -> None:
        pairs = [pair for key in self._changed for pair in self._lists[key][1]]
        records = self._records(pair[1] for pair in pairs)
        state, at = self._current, 0
        for key in self._changed:
            values = self._lists[key][0]
            some = records[at : at + len(values)]
            at += len(values)
            state[key] = ((values, some, any(own(each) is not each for each in some)),)
        assert self._changes is not None, "restore comes first"
        self._changes.note(self._changed, len(self._changed))
        self._changed = {}
        super().snapshot()

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Yield a result for each record, or for those that are among the largest."""
        table, times = as_table(batch.values, self._columns), Times.of(batch.timestamps)
        found = distinct_keys(table, self._names)
        assert found is not None, "the types of the key can be keys"
        keys, places = found[0], found[1].to_numpy(zero_copy_only=False)
        self._read(keys)
        before_it = [self._lists.get(key, _NOTHING)[1] for key in keys]
        parts, known = [self._kept], len(self._kept)
        values, is_ranked = _values_of(table.batch.column(self._by), self._ranking)
        left, part, at, lists = np.arange(len(table)), _FIRST_PART, list[int](), list[Any]()
        while len(left):
            left = left[self._may_change(keys, places[left], values[left]) | ~is_ranked[left]]
            some, left = left[:part], left[part:]
            part *= 2
            parts.append(table.batch.take(pa.array(some)))
            pairs = zip(self._compared(parts[-1]), range(known, known + len(some)), strict=True)
            known += len(some)
            for row, of, pair in zip(some.tolist(), places[some].tolist(), pairs, strict=True):
                before = self._lists.get(keys[of])
                after = self._top.add(before or self._top.create(), pair)
                if after is not before:
                    self._lists[keys[of]] = after
                    if pair[0] is not None:
                        at.append(row)
                        lists.append(after[1])
        self._kept = joined_rows(parts)
        self._changed |= dict.fromkeys(keys[of] for of in places[at].tolist())
        if not self._only_changed:
            lists = [*before_it, *lists]
            lists = [lists[of] for of in _last_so_far(places, len(keys), at).tolist()]
            at = list(range(len(table)))
        if lists:
            some, own = pa.array(at), [keys[of] for of in places[at].tolist()]
            yield self._given(batch.giving(table.take(some), times.take(some)), own, lists)
        self._forget()

    def _given(self, batch: Batch, keys: list[Any], lists: list[Any]) -> Batch:
        """Return the results of rows, whose lists of records are these."""
        ends = np.cumsum([0, *map(len, lists)])
        places = [place for pairs in lists for _, place in reversed(pairs)]
        if self._results is None:
            records = self._records(places)
            results = [records[start:end] for start, end in pairwise(ends.tolist())]
            return batch.giving(list(zip(keys, results, strict=True)), list(batch.timestamps))
        assert type(batch.values) is Table
        listed = self._kept.take(pa.array(places)).to_struct_array()
        values = [pa.ListArray.from_arrays(pa.array(ends, pa.int32()), listed)]
        table = with_keys(batch.values.batch, self._names.names, values, self._results)
        return batch.giving(Table(table), batch.timestamps)

    def _records(self, places: Iterable[int]) -> list[Any]:
        return self._schema.rows(self._kept.take(pa.array(places, pa.int64())))

    def _compared(self, rows: pa.RecordBatch) -> list[Any]:
        if self._ranking is None:
            return cells_of(rows.column(self._by))
        return list(map(self._ranking, self._columns.rows(rows)))

    def _read(self, keys: list[Any]) -> None:
        """Take the records of keys from their state."""
        state, lists, records = self._current, self._lists, list[Any]()
        for key in keys:
            if key not in lists and (of_key := state.get(key)) is not None:
                first = len(self._kept) + len(records)
                values, some, _ = of_key[0]
                records += some
                pairs = zip(values, range(first, first + len(some)), strict=True)
                lists[key] = (values, list(pairs), False)
        if records:
            self._kept = joined_rows([self._kept, self._schema.table(records)])

    def _forget(self) -> None:
        """Forget the records that are in no list any more, where they are most."""
        if len(self._kept) < self._kept_max:
            return
        places, lists = list[int](), dict[Any, Any]()
        for key, (values, pairs, _) in self._lists.items():
            first = len(places)
            places += [place for _, place in pairs]
            lists[key] = (values, list(zip(values, range(first, len(places)), strict=True)), False)
        self._kept, self._lists = self._kept.take(pa.array(places, pa.int64())), lists
        self._kept_max = _ROWS_MIN + 2 * len(places)

    def _may_change(self, keys: list[Any], places: _Array, values: _Array) -> _Array:
        """Tell which values exceed the least one of the largest of their key."""
        least = np.zeros(len(keys), values.dtype)
        is_full = np.zeros(len(keys), bool)
        kept, n, ranking = self._lists, self._n, self._ranking
        for at, key in enumerate(keys):
            of_key = kept.get(key)
            if of_key is not None and len(numbers := of_key[0]) == n:
                lowest = numbers[0] if ranking is None else ranking.number_of(numbers[0])
                # Neither missing nor NaN, nor that of the one whole number without a negative.
                if lowest is not None and lowest == lowest and lowest != _TOO_LARGE:  # noqa: PLR0124
                    least[at], is_full[at] = lowest, True
        exceeds = np.greater if ranking is None else np.greater_equal
        found: _Array = exceeds(values, least[places]) | ~is_full[places]
        return found


def _last_so_far(places: _Array, keys: int, at: list[int]) -> _Array:
    """Return for each row the number of the last change of its key, behind those of keys.

    Args:
        places: of each row, the number of its key.
        at: the rows that are changes.
    """
    found = places.astype(np.int64)
    found[at] = keys + np.arange(len(at))
    order = np.argsort(places, kind="stable")
    above = places[order].astype(np.int64) * (keys + len(at))  # Each key is above those before it.
    found[order] = np.maximum.accumulate(found[order] + above) - above
    return found


class BestRowsStage(ColumnsStage):
    """Leaves out rows that cannot be among the largest of their key in any window.

    It knows of so many better ones that it has passed on. A row that is late is passed on, as are
    those without a number: nobody knows whether their windows are closed.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        *,
        key: FieldGetter | FieldsGetter | None,
        windows: AlignedWindows,
        n: int,
        by: str,
        ranking: Ranking | None,
    ) -> None:
        super().__init__(context, name)
        self._key = key
        self._windows = windows
        self._n = n
        self._by = by
        self._ranking = ranking
        self._begin_again()

    def _begin_again(self) -> None:
        self._code_of: dict[Any, int] = {}
        self._best: dict[int, _Best] = {}
        self._newest_ms = MIN_MS

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        over = [start for start in self._best if self._end_of(start) <= watermark_ms]
        for start in over:
            del self._best[start]
        return iter(())

    def _called(self, table: Table, times: Times) -> tuple[Table, Times]:
        codes = self._codes_of(table)
        values, is_ranked = _values_of(table.batch.column(self._by), self._ranking)
        own = times.array.to_numpy()
        if times.promised is not None:
            is_ranked &= own >= times.promised.to_numpy()
        pieces = self._pieces(own)
        if codes is None or pieces is None:
            return table, times
        # Of those that are alike another column decides, if there is one.
        is_behind = own > (MAX_MS if self._ranking else self._newest_ms)
        passes = ~is_ranked
        of_piece = np.searchsorted(pieces, own, "right") - 1
        for number, start in enumerate(pieces[:-1]):
            at = np.flatnonzero((of_piece == number) & is_ranked)
            if len(at):
                best = self._best.setdefault(start, _Best(self._n, values.dtype))
                passes[at] = best.take(codes[at], values[at], is_behind[at])
        self._newest_ms = max(self._newest_ms, int(own.max()))
        if passes.all():
            return table, times
        passing = pa.array(passes)
        return table.filter(passing), times.filter(passing)

    def _codes_of(self, table: Table) -> _Array | None:
        if self._key is None:
            return np.zeros(len(table), np.int64)
        if len(self._code_of) > _KEYS_MAX:
            self._begin_again()
        found = distinct_keys(table, self._key)
        if found is None:
            return None
        code_of = self._code_of
        codes = [code_of.setdefault(key, len(code_of)) for key in found[0]]
        of_rows: _Array = np.array(codes, np.int64)[found[1].to_numpy(zero_copy_only=False)]
        return of_rows

    def _pieces(self, times: _Array) -> list[int] | None:
        """Return the starts of pieces of time that are in the same windows, and the last end."""
        windows = self._windows
        assert isinstance(windows, DisjointWindows | OverlappingWindows), "others are in rows"
        start_of = windows.start_of if isinstance(windows, DisjointWindows) else windows.piece_of
        oldest_ms, newest_ms = int(times.min()), int(times.max())
        bounds = [start_of(oldest_ms)]
        long_ms = (self._end_of(bounds[0]) - bounds[0]) * _PIECES_MAX
        different = np.unique(times) if newest_ms - oldest_ms > long_ms else None
        while bounds[-1] <= newest_ms:
            end_ms = self._end_of(bounds[-1])
            if different is not None and end_ms <= newest_ms:  # There are few, far apart.
                end_ms = start_of(int(different[np.searchsorted(different, end_ms)]))
            bounds.append(end_ms)
            if len(bounds) > _PIECES_MAX:
                return None
        return bounds

    def _end_of(self, start_ms: int) -> int:
        windows = self._windows
        if isinstance(windows, OverlappingWindows):
            return windows.piece_until(start_ms)
        return windows.end_of(start_ms)


class _Best:
    """The largest numbers of each key that were passed on."""

    def __init__(self, n: int, kind: "np.dtype[Any]") -> None:
        self._n = n
        self._codes: _Array = np.zeros(0, np.int64)
        self._values: _Array = np.zeros(0, kind)
        self._fresh: list[tuple[_Array, _Array]] = []  # Passed on, and not among these yet.
        self._fresh_count = 0
        self._least: _Array = np.zeros(0, kind)  # By code.
        self._is_full: _Array = np.zeros(0, bool)

    def take(self, codes: _Array, values: _Array, is_behind: _Array) -> _Array:
        """Tell which rows may be among the largest.

        Args:
            is_behind: rows that are newer than all that came before: of equal numbers the older
                one counts.
        """
        self._grow(int(codes.max()) + 1)
        least = self._least[codes]
        passes: _Array = ~self._is_full[codes] | (values > least)
        passes |= (values == least) & ~is_behind
        at = np.flatnonzero(passes)
        if not len(at):
            return passes
        self._fresh.append((codes[at], values[at]))
        self._fresh_count += len(at)
        if self._fresh_count * 4 > len(self._codes):
            self._merge()
            passes[at] = ~self._is_full[codes[at]] | (values[at] >= self._least[codes[at]])
        return passes

    def _grow(self, count: int) -> None:
        if (more := count - len(self._least)) > 0:
            more += len(self._least)
            self._least = np.append(self._least, np.zeros(more, self._least.dtype))
            self._is_full = np.append(self._is_full, np.zeros(more, bool))

    def _merge(self) -> None:
        fresh, self._fresh, self._fresh_count = self._fresh, [], 0
        parts = [(self._codes, self._values), *fresh]
        codes, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = order_by([codes, ~values if values.dtype.kind in "iu" else -values])
        codes, values = codes[order], values[order]
        starts = np.flatnonzero(np.append([True], codes[1:] != codes[:-1]))
        counts = np.diff(np.append(starts, len(codes)))
        is_full = counts >= self._n
        full = codes[starts[is_full]]
        self._least[full], self._is_full[full] = values[starts[is_full] + self._n - 1], True
        kept = np.arange(len(codes)) - np.repeat(starts, counts) < self._n
        self._codes, self._values = codes[kept], values[kept]


def order_by(keys: Sequence[_Array]) -> _Array:
    """Return the places of rows in ascending order of keys, the first of which counts most.

    Of equal rows the first comes first. Where 64 bits hold all keys of a row and its place, these
    numbers are sorted, which is done much sooner.
    """
    rows, bits, word = len(keys[0]), 0, np.zeros(len(keys[0]), np.int64)
    for key in (*keys, np.arange(rows)) if rows else ():
        if key.dtype.kind == "f":
            break
        low = int(key.min())
        more = (int(key.max()) - low).bit_length()
        bits += more
        if bits > _BITS_MAX:
            break
        word <<= more
        word |= (key.astype(np.uint64) - np.uint64(low % (1 << 64))).astype(np.int64)
    else:
        word.sort()
        return word & (1 << max(0, rows - 1).bit_length()) - 1
    return np.lexsort(keys[::-1])


def _values_of(column: pa.Array, ranking: Ranking | None) -> tuple[_Array, _Array]:
    """Return the numbers of a column, the larger the better, and which of them are some."""
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    if column.null_count:
        column = column.fill_null(0)
    values: _Array = column.to_numpy()
    if values.dtype.kind == "f":
        is_there &= ~np.isnan(values)
    if ranking is not None and ranking.is_ascending:
        if values.dtype.kind != "f":
            values = values.astype(np.int64)
            is_there &= values != np.iinfo(np.int64).min
        values = -values
    return values, is_there


# -- rows of results -------------------------------------------------------------------------------


class PlacesStage(ColumnsStage):
    """Makes rows of tables of lists of the largest records, each with its place in its list.

    Args:
        schema: of the rows.
        place: its field.
        bounds: the fields of the bounds of windows, if any.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        schema: pa.Schema,
        place: str,
        bounds: Sequence[str],
    ) -> None:
        super().__init__(context, name)
        self._schema = schema
        self._place = place
        self._bounds = bounds
        self._rows_max = context.limits.columnar_batch_records

    def process(self, batch: Batch) -> Iterator[Batch]:
        for given in super().process(batch):
            for at in range(0, len(given.values), self._rows_max):
                part = slice(at, at + self._rows_max)
                yield given.giving(given.values[part], given.timestamps[part])

    def _called(self, table: Table, times: Times) -> tuple[Table, Times]:
        results = table.batch
        columns = result_columns(results.schema) or running_columns(results.schema)
        assert columns is not None, "it stands behind lists of the largest records"
        lists = results.column(columns.value[0])
        of_list = pc.list_parent_indices(lists)
        lengths = pc.list_value_length(lists).to_numpy()
        before = np.repeat(np.cumsum(lengths) - lengths, lengths)
        records = pa.RecordBatch.from_struct_array(lists.flatten())
        found = dict(zip(records.schema.names, records.columns, strict=True))
        found[self._place] = pa.array(np.arange(1, len(before) + 1) - before)
        for field, name in zip(self._bounds, (WINDOW_START, WINDOW_END), strict=False):
            found[field] = results.column(name).take(of_list)
        arrays = [found[each.name].cast(each.type) for each in self._schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return Table(rows), times.take(of_list)


# -- in windows --------------------------------------------------------------------------------


def can_rank(by: str, ranking: Ranking | None, schema: pa.Schema) -> bool:
    """Tell whether columns are compared by Arrow and NumPy as by Python."""
    names = [by] if ranking is None else [name for name, *_ in ranking.fields]
    return all(
        name in schema.names and unfit("min", schema.field(name).type) is None for name in names
    )


class TopTablesStage(MergeTablesStage):
    """Keeps tables of the largest records, merges them when windows close, and yields the results.

    Args:
        key: names of the columns of the key; none for all records together.
        schema: of the tables in which records come.
        results: the schema of results as a table; None: they are `WindowResult`s.
        waits: which records wait for event time.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        *,
        windows: ColumnarWindows,
        key: Sequence[str],
        n: int,
        by: str,
        ranking: Ranking | None,
        schema: RowSchema,
        results: pa.Schema | None,
        waits: Waits,
    ) -> None:
        rows = top_records(n, ranking or by)
        largest = MergedAggregate(
            kind=rows.kind,
            of=_RECORD,
            create=rows.create,
            add=rows.add,
            merge=rows.merge,
            result=rows.result,
            partial=_Largest(n, by, ranking, schema),
        )
        groups = ColumnGroups(windows, key, largest)
        self._partials = PartialTables(groups)
        self._records = RowSchema(schema.arrow)
        record = pa.field(_RECORD, pa.struct(list(schema.arrow)))
        columns = schema.arrow.append(record)
        super().__init__(context, name, groups, schema=columns, results=results)
        key_of = key_getter(*key) if key else None
        self._gate: TableGate = TableGate(context, key_of, schema, waits=waits)

    def process(self, batch: Batch) -> Iterator[Batch]:
        self._take(self._gate.take(batch))
        return self._due(self._watermark_ms) if len(self._gate) else iter(())

    def _take(self, batch: Batch) -> None:
        if not len(batch.values):
            return
        rows = as_table(batch.values, self._records).batch
        rows = rows.append_column(_RECORD, rows.to_struct_array())
        table, times = self._partials.of(rows, Times.of(batch.timestamps))
        self._keep(table.batch, times)


@dataclass(frozen=True, slots=True)
class _Largest:
    """The largest records of a group, the largest first."""

    n: int
    by: str
    ranking: Ranking | None
    schema: RowSchema

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        return [(rows.places, "list", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        (places,) = found
        groups = pc.list_parent_indices(places)
        return [self._largest(groups, column.take(places.flatten()), len(places))]

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        (lists,) = columns

        def finish(found: list[pa.Array]) -> list[pa.Array]:
            (places,) = found
            mine = lists.take(places.flatten())
            groups = pc.list_parent_indices(places).take(pc.list_parent_indices(mine))
            return [self._largest(groups, mine.flatten(), len(places))]

        return [(places_of(len(lists)), "list", None)], finish

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        (lists,) = columns
        # What is largest comes last there.
        records = self.schema.rows(pa.RecordBatch.from_struct_array(lists.flatten()))[::-1]
        value_of = self.ranking or value_getter(self.by)
        values = list(map(value_of, records))
        may_change = [own(each) is not each for each in records]
        lengths = pc.list_value_length(lists).to_numpy()
        ends = len(records) - np.cumsum(lengths)
        spans = zip(ends.tolist(), (ends + lengths).tolist(), strict=True)
        return [(values[a:b], records[a:b], any(may_change[a:b])) for a, b in spans]

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        records = [each for _, kept, _ in accumulators for each in kept[::-1]]
        offsets = np.cumsum([0, *(len(kept) for _, kept, _ in accumulators)])
        found = self.schema.table(records).to_struct_array()
        return [pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), found).cast(kinds[0])]

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        return None

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        return columns[0]

    def _largest(self, groups: pa.Array, records: pa.Array, count: int) -> pa.Array:
        """Return a list of records for each group, of equal ones the first."""
        of = groups.to_numpy()
        places = np.arange(len(of))
        if self.ranking is None:
            column = records.field(self.by)
            if column.null_count:
                places = np.flatnonzero(column.is_valid())
                of, column = of[places], column.drop_null()
            keys = _falling(column, is_descending=True)
        else:
            keys = list[_Array]()
            for name, is_descending, nulls_first in self.ranking.fields:
                column = records.field(name)
                if column.null_count:
                    keys += [np.asarray(column.is_null()) != nulls_first]
                keys += _falling(column, is_descending=is_descending, is_nan_large=True)
        order = order_by([of, *keys])
        of = of[order]
        starts = np.searchsorted(of, np.arange(count))
        kept = np.arange(len(of)) - starts[of] < self.n
        lengths = np.bincount(of[kept], minlength=count)
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        return pa.ListArray.from_arrays(offsets, records.take(pa.array(places[order[kept]])))


def _falling(column: pa.Array, *, is_descending: bool, is_nan_large: bool = False) -> list[_Array]:
    """Return keys that are the smaller, the earlier a value comes; the first counts most."""
    column = plain(column)
    if pa.types.is_duration(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        numbers = column.fill_null(0).to_numpy()
        numbers = np.negative(numbers) if is_descending else numbers
        if is_nan_large and is_descending:
            return [~np.isnan(numbers), numbers]
        return [numbers]  # NumPy has NaN last.
    if pa.types.is_integer(column.type):
        numbers = column.fill_null(0).to_numpy()
        return [np.invert(numbers) if is_descending else numbers]
    upwards = "descending" if is_descending else "ascending"
    return [pc.rank(column, sort_keys=upwards, tiebreaker="dense").to_numpy()]
