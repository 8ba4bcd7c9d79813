"""Aggregates over windows where records are columns: tables in, results in rows out.

Arrow aggregates the rows of each table, by window and key, where they are sent; the few rows of
results travel to the tasks of the keys, which merge them into their windows. So a record costs its
share of a few vector operations. The results are those of the same aggregates over rows; only of
floats the last digits may differ, as they are added up in another order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from msgspec.structs import replace

from gearpy.columns.results import RunningSchema
from gearpy.columns.row_schema import as_table
from gearpy.core.base.copies import own
from gearpy.core.base.fields import compiled
from gearpy.core.base.one_key import one_keys
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.trigger import counts_records, phases_of
from gearpy.core.window.windows import (
    DisjointWindows,
    GlobalWindows,
    OverlappingWindows,
    SessionWindows,
)
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, cells_of
from gearpy.task.aggregates.fitting import key_mistake, plain, roles_of, unfit, values_of
from gearpy.task.aggregates.fold import (
    Fold,
    FoldLoop,
    Kept,
    RunningStage,
    WindowFold,
    newest_of_keys,
)
from gearpy.task.aggregates.partials import (
    Input,
    Partial,
    Rows,
    one_keys_of,
    partial_of,
    places_of,
)
from gearpy.task.aggregates.rows import Aggregates, fold_of
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage
from gearpy.task.time.pieces import TimePieces, is_sorted, session_numbers

#: Windows over which columns can be aggregated.
ColumnarWindows: TypeAlias = DisjointWindows | OverlappingWindows | SessionWindows

#: The number of records behind each row of partials; other columns of partials begin alike, so that
#: only those of the key have the names that users gave.
RECORDS: Final = "#records"
OWN: Final = "#"
#: The oldest and the newest event time of a session.
FIRST: Final = "#first"
LAST: Final = "#last"
_INT64_MAX: Final = 2**63 - 1
#: So many different codes, and for each row, have places of their own.
_SPAN_MIN: Final = 1 << 12
_SPAN_OF_ROWS: Final = 2
#: One of so many codes is looked at, to find out whether most of them are different.
_SAMPLED: Final = 16
_MANY: Final = 0.75
_WORD_BITS: Final = 63
_UFUNCS: Final = {"sum": np.add, "min": np.minimum, "max": np.maximum}
#: Each piece has a cell for each key, if these are no more than so many for each row, and of many
#: rows so many more than these: cells take memory.
_CELLS_OF_ROW: Final = 4
_CELLS_MORE: Final = 1 << 22
#: So many cells of windows are looked at at once, or those of one window.
_CELLS_AT_ONCE: Final = 1 << 17


#: Aggregates that take one value after the other.
_ONE_BY_ONE: Final = frozenset({"custom", "heavy_hitters"})


def is_columnar(aggregate: Aggregate) -> bool:
    if aggregate.kind in _ONE_BY_ONE:
        return False
    return all(isinstance(field, str) for field in aggregate.fields)


def columnar_mistakes(
    windows: object, key: Sequence[str], aggregates: Aggregates, schema: Any = None
) -> list[str]:
    """Return why this cannot be aggregated in columns; empty if it can.

    Args:
        key: the columns of the key; none for all records together.
        schema: of the tables, a `pyarrow.Schema`; None if it is not known before they come.
    """
    mistakes = [
        f"{each} takes a function or whole records, not a column"
        if each.kind not in _ONE_BY_ONE
        else f"a {each.kind} aggregate takes one value after the other"
        for each in listed(aggregates)
        if not is_columnar(each)
    ]
    if not isinstance(windows, ColumnarWindows):
        mistakes.append("count windows hold the records in the order in which they come")
    elif "collect" in {each.kind for each in listed(aggregates)} and not (
        isinstance(windows, DisjointWindows) and windows.is_plain
    ):
        mistakes.append(
            "collect() over sliding or session windows, or such as fire more than once, needs the "
            "order of the records"
        )
    mistakes += [f"a key column is named {name!r}" for name in key if name.startswith(OWN)]
    return mistakes or ([] if schema is None else _schema_mistakes(key, aggregates, schema))


def _schema_mistakes(key: Sequence[str], aggregates: Aggregates, schema: pa.Schema) -> list[str]:
    wanted = [*key, *chain.from_iterable(each.fields for each in listed(aggregates))]
    there = ", ".join(schema.names) or "none"
    if missing := [name for name in dict.fromkeys(wanted) if name not in schema.names]:
        return [f"there is no column {name!r}: there are {there}" for name in missing]
    mistakes = [
        f"column {name!r} of type {schema.field(name).type} {mistake}"
        for name in key
        if (mistake := key_mistake(schema.field(name).type))
    ]
    return mistakes + [
        f"{each}: column {field!r} of type {schema.field(field).type} {mistake}"
        for each in listed(aggregates)
        for field, kind in roles_of(each)
        if (mistake := unfit(kind, schema.field(field).type))
    ]


def listed(aggregates: Aggregates) -> list[Aggregate]:
    return [aggregates] if isinstance(aggregates, Aggregate) else list(aggregates.values())


@dataclass(frozen=True, slots=True)
class ColumnGroups:
    """What is aggregated in columns, alike where tables come from and where they are merged.

    Attributes:
        key: names of its columns; none for all records together. The key of a result is the value
            of one, the tuple of several, or None.
    """

    windows: ColumnarWindows
    key: Sequence[str]
    aggregates: Aggregates

    @property
    def fold(self) -> Fold:
        """That of the same records as rows."""
        return fold_of(self.aggregates)


# -- where tables come from --------------------------------------------------------------------


class PartialAggregateStage(Stage):
    """Turns each table into a smaller one: a row for each window and key in it.

    Such a row has the columns of the key, and has the oldest of its records' event times. Nothing
    is kept.

    Args:
        is_running: rows have the newest of the event times instead, as results have it.

    Raises:
        ConfigError: this cannot be done in columns; see `columnar_mistakes`.
    """

    def __init__(
        self, context: TaskContext, name: str, groups: ColumnGroups, *, is_running: bool = False
    ) -> None:
        if mistakes := columnar_mistakes(groups.windows, groups.key, groups.aggregates):
            raise ConfigError(*(f"{name}: {mistake}" for mistake in mistakes))
        self.name = name
        self._partials = PartialTables(groups, is_running=is_running)
        self._groups = groups
        self._schema: pa.Schema = None

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Yield a row of partials for each key and window of the records."""
        table, times = as_table(batch.values), Times.of(batch.timestamps)
        if not len(times):
            return
        self._check(table.batch.schema)
        try:
            if self._partials.is_apart:
                partials, oldest = self._partials.of(table.batch, times)
                yield batch.giving(partials, Times(oldest.array, times.promised))
                return
            if times.promised is None or self._partials.is_wall:
                yield Batch(*self._partials.of(table.batch, times), origin=batch.origin)
                return
            late = pc.less(times.array, times.promised)
            rest = table.filter(in_time := pc.invert(late)), Times(times.array.filter(in_time))
            if len(rest[1]):
                yield Batch(*self._partials.of(rest[0].batch, rest[1]), origin=batch.origin)
            yield from self._partials_of_late(batch, table.filter(late), times.filter(late))
        except pa.ArrowException as error:
            raise operator_error(self.name, error) from error

    def _partials_of_late(self, batch: Batch, table: Table, times: Times) -> Iterator[Batch]:
        """Yield the partial results of late rows, with the promise before each row."""
        if self._partials.are_late_apart:
            partials, oldest = self._partials.of(table.batch, times, apart=True)
            yield batch.giving(partials, Times(oldest.array, times.promised))
            return
        for promised_ms in pc.unique(times.promised).to_pylist():
            alike = pc.equal(times.promised, promised_ms)
            partials, oldest = self._partials.of(table.filter(alike).batch, times.filter(alike))
            promised = pa.repeat(pa.scalar(promised_ms, pa.int64()), len(oldest))
            yield batch.giving(partials, Times(oldest.array, promised))

    def _check(self, schema: pa.Schema) -> None:
        if self._schema is not None and self._schema.equals(schema):
            return
        if mistakes := _schema_mistakes(self._groups.key, self._groups.aggregates, schema):
            raise OperatorError(operator=self.name, cause="; ".join(mistakes))
        self._schema = schema


class PartialTables:
    """Makes small tables of large ones: a row for each window and key.

    A row has the columns of the key, the number of records, and for each aggregate the columns of
    its `Partial`; of sessions, and windows that fire more than once or by wall time, also their
    oldest and newest time. Rows come in the order of their
    first records.
    """

    def __init__(self, groups: ColumnGroups, *, is_running: bool = False) -> None:
        windows = groups.windows
        self._is_running = is_running
        self._pieces, self._gap_ms = None, 0
        self.is_wall = windows.clock == "processing"
        if self.is_wall:
            self._pieces = TimePieces(GlobalWindows())  # All are in those of the time that it is.
        elif isinstance(windows, SessionWindows):
            self._gap_ms = windows.gap_ms
        else:
            self._pieces = TimePieces(windows)
        self._has_spans = self._pieces is None or not windows.is_plain
        #: Each record is a row of its own, as a trigger counts them; or each late one, as it may
        #: depend on the one before it, or make its window fire.
        self.is_apart = counts_records(phases_of(windows.trigger)[0])
        self.are_late_apart = self._has_spans
        self._key = tuple(groups.key)
        self._partials = [
            (each, partial_of(each)) for each in listed(groups.aggregates) if each.kind != "count"
        ]

    def schema(self, schema: pa.Schema) -> pa.Schema:
        empty = [pa.nulls(1, kind) for kind in schema.types]
        table, _ = self.of(pa.RecordBatch.from_arrays(empty, schema.names), Times.of([0]))
        return table.batch.schema

    def of(
        self, table: pa.RecordBatch, times: Times, *, apart: bool = False
    ) -> tuple[Table, Times]:
        """Return the small table of one, and a time of each row: see `PartialAggregateStage`.

        Args:
            apart: make a row of each row.
        """
        rows = Rows(times.array)
        fields = chain.from_iterable(each.fields for each, _ in self._partials)
        columns = {name: plain(table.column(name)) for name in dict.fromkeys([*self._key, *fields])}
        keys = [one_keys_of(columns[name]) for name in self._key]
        taken = [(values_of(each, columns), partial) for each, partial in self._partials]
        inputs = [partial.inputs(column, rows) for column, partial in taken]
        in_order = is_sorted(times.array)
        by = [rows.places] if apart or self.is_apart else self._by(keys, times, in_order=in_order)
        ends = [] if self._is_running or (in_order and not self._has_spans) else ["min"]
        ends += ["max"] if self._is_running or self._has_spans else []
        places, (records, *found) = grouped(
            by,
            len(times),
            [
                ([], "count_all", None),
                *((times.array, each, None) for each in ends),
                *chain.from_iterable(inputs),
            ],
        )
        spans, found = found[: len(ends)], found[len(ends) :]
        low = spans[0] if spans else times.array.take(places)
        arrays = [*(each.take(places) for each in keys), records]
        labels = [*self._key, RECORDS]
        for at, ((column, partial), needed) in enumerate(zip(taken, inputs, strict=True)):
            mine, found = found[: len(needed)], found[len(needed) :]
            finished = partial.finish(mine, column, rows)
            arrays += finished
            labels += [f"{OWN}{at}.{part}" for part in range(len(finished))]
        if self._has_spans:
            arrays += spans
            labels += [FIRST, LAST]
        return Table(pa.RecordBatch.from_arrays(arrays, labels)), Times(low)

    def _by(self, keys: list[pa.Array], times: Times, *, in_order: bool) -> list[pa.Array]:
        if self._pieces is None:
            starts = times.array.to_numpy()
            codes, _ = codes_of(keys, len(starts))
            return [session_numbers(codes, starts, starts, self._gap_ms, in_order=in_order)]
        pieces = self._pieces.numbers(times)
        return [*([] if pieces is None else [pieces]), *keys]


def grouped(by: list[pa.Array], rows: int, inputs: list[Input]) -> tuple[pa.Array, list[pa.Array]]:
    """Return where groups of rows begin, in that order, and what is found of each.

    Sums, numbers and extremes of whole numbers go into places of NumPy, for a small part of what
    Arrow takes where groups are many; it finds the rest.

    Args:
        by: rows that are equal here are one group.
    """
    codes, span = codes_of(by, rows)
    first = np.full(span, rows)
    first[codes[::-1]] = places_of(rows).to_numpy()[::-1]  # Of several the last one stays.
    places = np.sort(first[first < rows])
    groups = codes[places]
    found, left = list[Any](), list[tuple[int, Input]]()
    for at, each in enumerate(inputs):
        found.append(_quickly(codes, span, each))
        if found[-1] is None:
            left.append((at, each))
        else:
            found[-1] = pa.array(found[-1][groups])
    if left:
        table = pa.Table.from_arrays(
            [pa.array(codes), *(column for _, (column, *_) in left)],
            ["k", *(f"v{at}" for at, _ in left)],
        )
        asked = [(f"v{at}", *how) for at, (_, *how) in left]
        # In one thread, which is quicker for a table.
        table = table.group_by("k", use_threads=False).aggregate(asked).combine_chunks()
        order = np.empty(span, np.int64)
        order[_one_chunk(table.column(0)).to_numpy()] = np.arange(len(table))
        for column, (at, _) in zip(table.columns[1:], left, strict=True):
            found[at] = _one_chunk(column).take(pa.array(order[groups]))
    return pa.array(places), found


def codes_of(by: Sequence[pa.Array], rows: int) -> tuple[Any, int]:
    """Return a number for each row, alike where rows are equal, and more than the largest one."""
    most = max(_SPAN_MIN, _SPAN_OF_ROWS * rows)
    codes, span = pa.repeat(pa.scalar(0, pa.int64()), rows), 1
    for at, column in enumerate(by):
        numbers, width = _codes_of(column, most)
        # All of it by Arrow, which has memory at hand.
        codes = pc.add(pc.multiply(codes, width), numbers) if at else numbers
        span *= width
        if span > most:
            codes, span = _numbered(codes, span)
    return codes.to_numpy(), span


def _codes_of(column: pa.Array, most: int) -> tuple[pa.Array, int]:
    if pa.types.is_signed_integer(column.type) and not column.null_count and len(column):
        low, high = (pc.min_max(column)[name].as_py() for name in ("min", "max"))
        width = high - low + 1
        if width <= _INT64_MAX:
            column = column.cast(pa.int64())
            column = pc.subtract(column, low) if low else column
            return (column, width) if width <= most else _numbered(column, width)
    return _encoded(column)


def _numbered(codes: pa.Array, span: int) -> tuple[pa.Array, int]:
    """Return smaller codes than those below a span, alike where these are, and the new span.

    A sort of codes with their places is several times as quick as to look codes up, where most of
    them are different.
    """
    bits = len(codes).bit_length()
    some = codes.to_numpy()[::_SAMPLED]
    are_few = len(np.unique(some)) < _MANY * len(some)
    if are_few or span.bit_length() + bits > _WORD_BITS:
        return _encoded(codes)
    ranked = np.left_shift(codes.to_numpy(), bits)
    ranked |= places_of(len(codes)).to_numpy()
    ranked.sort()
    order = ranked & ((1 << bits) - 1)
    ranked >>= bits
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.cumsum(np.append(0, ranked[1:] != ranked[:-1]))
    return pa.array(numbers), int(numbers[order[-1]]) + 1


def _encoded(column: pa.Array) -> tuple[pa.Array, int]:
    encoded = column.dictionary_encode("encode")
    return encoded.indices.cast(pa.int64()), max(1, len(encoded.dictionary))


def _quickly(codes: Any, span: int, asked: Input) -> Any:
    """Return what is found of each group in an array of NumPy; None for Arrow to find it."""
    column, how, _ = asked
    if how == "count_all" or (how == "count" and not column.null_count):
        return np.bincount(codes, minlength=span)
    if how not in _UFUNCS or column.null_count:
        return None
    if pa.types.is_integer(column.type):
        numbers = column.to_numpy()
        ends = np.iinfo(numbers.dtype)
        empty = {"sum": 0, "min": ends.max, "max": ends.min}[how]
        is_signed = pa.types.is_signed_integer(column.type)
        kind = numbers.dtype if how != "sum" else np.int64 if is_signed else np.uint64
        found = np.full(span, empty, kind)
        _UFUNCS[how].at(found, codes, numbers.astype(kind, copy=False))
        return found
    if how == "sum" and pa.types.is_float64(column.type):
        return np.bincount(codes, column.to_numpy(), span)  # Row after row, as Arrow adds.
    return None


def grouped_in_windows(
    by: list[pa.Array],
    sizes: Sequence[int],
    windows: Sequence[tuple[int, int]],
    inputs: list[Input],
) -> Iterator[tuple[pa.Array, list[int], list[pa.Array]]] | None:
    """Return the groups of each of some windows, as `grouped` does; None if that is no quicker.

    Each key has a cell in each piece of time. So a row counts once, however many windows hold it,
    and windows are made of whole lines of cells: sums as what running sums differ by.

    Args:
        sizes: how many rows each piece has, one piece after the other.
        windows: the first piece of each, and the piece behind its last one.

    Returns:
        For some windows at a time: where groups begin, how many each window has, what is found.
    """
    rows, pieces = sum(sizes), len(sizes)
    codes, span = codes_of(by, rows)
    most = min(_CELLS_OF_ROW * rows, rows + _CELLS_MORE)
    if pieces * span > most:
        encoded, span = _encoded(pa.array(codes))
        codes = encoded.to_numpy()
        if pieces * span > most:
            return None
    cells = np.repeat(np.arange(pieces) * span, sizes) + codes
    ways = [_in_lines(cells, pieces, span, each) for each in inputs]
    if None in ways:
        return None
    first = np.full(pieces * span, rows)
    first[cells[::-1]] = places_of(rows).to_numpy()[::-1]
    # Where each key comes next, in a piece or behind it.
    ahead = np.minimum.accumulate(first.reshape(pieces, span)[::-1])[::-1]
    begins = np.cumsum([0, *sizes])

    def found(some: Sequence[tuple[int, int]]) -> tuple[pa.Array, list[int], list[pa.Array]]:
        low, high = np.array(some).T
        of_keys = ahead[low]
        is_there = of_keys < begins[high][:, None]
        counts = is_there.sum(axis=1)
        window = np.repeat(np.arange(len(some)), counts)
        places = np.sort(of_keys[is_there] + window * rows) - window * rows
        groups = window * span + codes[places]
        columns = [pa.array(way(low, high).ravel()[groups]) for way in ways if way is not None]
        return pa.array(places), counts.tolist(), columns

    step = max(1, _CELLS_AT_ONCE // span)
    return (found(windows[at : at + step]) for at in range(0, len(windows), step))


def _in_lines(cells: Any, pieces: int, span: int, asked: Input) -> Callable[[Any, Any], Any] | None:
    """Return a function that finds lines of windows, given their first pieces and their ends."""
    values = _quickly(cells, pieces * span, asked)
    if values is None:
        return None
    lines, ufunc = values.reshape(pieces, span), _UFUNCS.get(asked[1], np.add)
    if ufunc is np.add and values.dtype.kind != "f":
        sums = np.zeros((pieces + 1, span), values.dtype)
        np.cumsum(lines, axis=0, out=sums[1:])  # What goes round here comes back.
        return lambda low, high: sums[high] - sums[low]

    def of_windows(low: Any, high: Any) -> Any:
        found = lines[low]
        for at in range(1, (high - low).max()):
            goes_on = low + at < high
            found[goes_on] = ufunc(found[goes_on], lines[low[goes_on] + at])
        return found

    return of_windows


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# -- where they are merged ---------------------------------------------------------------------


class MergeAggregateStage(WindowFold):
    """Merges partials into windows; yields `WindowResult`s when the watermark closes them.

    A `WindowFold` whose records are the rows of partials: its state is the same as if it were
    given the records behind them. Late ones are counted and dropped.
    """

    def __init__(self, context: TaskContext, name: str, groups: ColumnGroups) -> None:
        windows, limit = groups.windows, context.limits.batch_records
        assert not isinstance(windows, SessionWindows), "they are merged in columns"
        key_of = itemgetter(_KEY) if groups.key else None
        super().__init__(context, name, windows, key_of, _merging_fold(groups), limit=limit)
        self._reader = Reader(groups)

    def process(self, batch: Batch) -> Iterator[Batch]:
        if not batch.values:
            return iter(())
        rows = self._reader.rows(as_table(batch.values).batch)
        return super().process(batch.giving(rows, list(batch.timestamps)))


class MergeRunningStage(RunningStage):
    """Merges partials over the whole stream; yields ``(key, result)`` for each key in a table.

    Its state is the same as if it were given the records behind them.

    Args:
        results: the schema of results as a table; None: they are pairs.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        groups: ColumnGroups,
        results: pa.Schema | None = None,
    ) -> None:
        super().__init__(context, name, itemgetter(_KEY), _merging_fold(groups))
        self._reader = Reader(groups)
        self._results = None if results is None else RunningSchema(results, tuple)
        self._loop = _merge_loop(listed(groups.aggregates))
        #: Results may share lists and the like with what is kept.
        self._shares = any(each.kind in _SHARING for each in listed(groups.aggregates))

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Merge a table; yield a result for each of its keys."""
        if not batch.values:
            return
        rows = self._reader.rows(as_table(batch.values).batch)
        state, result_of = self._current, self._fold.result
        self._loop(state, rows, [], _raise)
        newest = newest_of_keys(map(itemgetter(_KEY), rows), batch.timestamps)
        if self._changes is not None:
            self._changes.note(newest, len(rows))
        try:
            found = [state[key] for key in newest]
            if result_of is not None:
                found = list(map(result_of, found))
        except USER_ERRORS as error:  # No record is to blame.
            raise operator_error(self.name, error) from error
        if self._results is not None:
            try:
                table = Table(self._results.made([*newest], found))
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise operator_error(self.name, error) from error
            yield batch.giving(table, Times.of(newest.values()))
            return
        found = list(map(own, found)) if self._shares else found
        yield batch.giving(list(zip(newest, found, strict=True)), [*newest.values()])


def _raise(error: BaseException, _: int) -> None:
    raise error


#: Aggregates whose results may be what a column has as a list, or what is kept.
_SHARING: Final = frozenset({"first", "last", "arg_min", "arg_max", "collect", "top", "mode"})
_KEY: Final = 0  # Places in the rows of partials.
_COUNT: Final = 1


class Reader:
    """Makes rows of tables of partials."""

    def __init__(self, groups: ColumnGroups) -> None:
        self._key = tuple(groups.key)
        self._partials: list[Partial | None] = [
            None if each.kind == "count" else partial_of(each) for each in listed(groups.aggregates)
        ]

    def rows(self, table: pa.RecordBatch) -> list[tuple[Any, ...]]:
        records: list[int] = table.column(RECORDS).to_pylist()
        names = table.schema.names
        accumulators: list[list[Any]] = []
        at = 0
        for partial in self._partials:
            if partial is None:
                accumulators.append(records)
                continue
            mine = [name for name in names if name.startswith(f"{OWN}{at}.")]
            accumulators.append(partial.accumulators([table.column(name) for name in mine]))
            at += 1
        return list(zip(self.keys(table), records, *accumulators, strict=True))

    def pairs(self, table: pa.RecordBatch) -> tuple[list[Any], list[Any]]:
        """Return keys, and accumulators as folds over rows keep them."""
        rows = self.rows(table)
        at = itemgetter(_COUNT if self._partials == [None] else slice(_COUNT + 1, None))
        return list(map(itemgetter(_KEY), rows)), list(map(at, rows))

    def keys(self, table: pa.RecordBatch) -> list[Any]:
        columns = [one_keys(cells_of(table.column(name))) for name in self._key]
        if not columns:
            return [None] * table.num_rows
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


#: How a partial ``{p}`` joins an accumulator ``{s}``; for the rest there is `Aggregate.merge`.
_MERGES: Final[dict[str, tuple[str, ...]]] = {
    "count": ("{s} += {p}",),
    "sum": (
        "c = type({p})",
        "if c is int or c is float: {s} = {p} if {s} is None else {s} + {p}",
        "elif {p} is not None: {s} = {merge}({s}, {p})",
    ),
    "min": (
        "c = type({p})",
        "if (c is int or c is float) and {s} is not None:",
        "    if {p} < {s} or {s} != {s}: {s} = {p}",
        "elif {p} is not None: {s} = {merge}({s}, {p})",
    ),
    "max": (
        "c = type({p})",
        "if (c is int or c is float) and {s} is not None:",
        "    if {p} > {s} or {s} != {s}: {s} = {p}",
        "elif {p} is not None: {s} = {merge}({s}, {p})",
    ),
    "mean": (
        "c = None if {p} is None or {s} is None else type({p}[0])",
        "if c is int or c is float: {s} = ({s}[0] + {p}[0], {s}[1] + {p}[1])",
        "elif {p} is not None: {s} = {merge}({s}, {p})",
    ),
}
_MERGE: Final = ("{s} = {merge}({s}, {p})",)


def _merging_fold(groups: ColumnGroups) -> Fold:
    """Return the fold of the records, but of rows of partials."""
    loop = _merge_loop(listed(groups.aggregates))
    return replace(
        groups.fold,
        kind="fold",
        timed=False,
        loop=lambda _: loop,
        records_in=lambda rows: sum(row[_COUNT] for row in rows),
    )


def _merge_loop(aggregates: list[Aggregate]) -> FoldLoop:
    """Return a generated loop that merges rows of partials into accumulators by key."""
    if [each.kind for each in aggregates] == ["count"]:
        return _add_counts
    numbers = range(len(aggregates))
    parts = ", ".join(f"p{at}" for at in numbers)
    accumulators = ", ".join(f"s{at}" for at in numbers)
    steps = [
        line.format(s=f"s{at}", p=f"p{at}", merge=f"merge{at}")
        for at, each in enumerate(aggregates)
        for line in _MERGES.get(each.kind, _MERGE)
    ]
    lines = [
        "def made(kept, rows, times, reject):",
        "    get = kept.get",
        f"    for k, _, {parts} in rows:",
        "        a = get(k)",
        "        if a is None:",
        f"            kept[k] = ({parts},)",
        "            continue",
        f"        {accumulators}, = a",
        *(f"        {step}" for step in steps),
        f"        kept[k] = ({accumulators},)",
        "    return map(key_of, rows)",
    ]
    scope: dict[str, Any] = {f"merge{at}": each.merge for at, each in enumerate(aggregates)}
    scope |= {"key_of": itemgetter(_KEY)}
    return compiled(lines, scope, what="merge")


def _add_counts(
    kept: Kept, rows: list[Any], _times: list[int], _reject: Callable[..., None]
) -> Iterable[Any]:
    get = kept.get
    for key, count, _ in rows:
        kept[key] = get(key, 0) + count
    return map(itemgetter(_KEY), rows)
