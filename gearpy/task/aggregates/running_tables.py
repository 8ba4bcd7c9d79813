"""Running aggregates of columns: a result after each row, for all rows of a table at once.

The rows of each key are put behind one another, behind what the key has so far; a result is then a
sum, or an extreme, of all from there on. What is kept is as over rows.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gearpy.columns.results import RunningSchema
from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.base.one_key import one_keys
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.core.window.accumulators import Aggregate
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, cells_of
from gearpy.task.aggregates.columns import listed
from gearpy.task.aggregates.fitting import plain, truth, values_of
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.partials import one_keys_of
from gearpy.task.aggregates.rows import Aggregates, RunningAggregate
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext

_Array: TypeAlias = NDArray[Any]
#: The results of all rows, and what each key has then; None if only Python can tell.
_Found: TypeAlias = tuple[pa.Array, list[Any]] | None
#: Sums of whole numbers are below it, and floats hold each whole number up to the other.
_WHOLE_MAX: Final = 1 << 62
_FLOAT_MAX: Final = 1 << 53
_RANKED: Final = (
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_timestamp,
)


def runs_in_columns(aggregate: Aggregate, schema: pa.Schema) -> bool:
    """Tell whether the results of an aggregate after each row of a table are found so."""
    if aggregate.kind == "count":
        return True
    if aggregate.kind not in _RUNNING or not isinstance(aggregate.of, str):
        return False
    kind = schema.field(aggregate.of).type
    if aggregate.kind in {"sum", "mean"}:
        return bool(pa.types.is_signed_integer(kind) or pa.types.is_float64(kind))
    if aggregate.kind in {"count_if", "any", "all", "distinct"}:
        return True
    if aggregate.is_by:
        if pa.types.is_nested(kind) or not isinstance(aggregate.by, str):
            return False
        kind = schema.field(aggregate.by).type
    return any(is_kind(kind) for is_kind in _RANKED)


def found_after(
    runs: "Runs", aggregates: Sequence[Aggregate], table: pa.RecordBatch, kept: Sequence[Any]
) -> tuple[list[pa.Array], list[list[Any]]] | None:
    """Return the results of each row, and what each key has then; None if only Python can tell.

    Args:
        kept: what each key has so far, an accumulator of each aggregate; None for none.
    """
    names = dict.fromkeys(name for each in aggregates for name in each.fields)
    columns = {name: plain(table.column(name)) for name in names}
    values, after = list[pa.Array](), list[list[Any]]()
    for at, aggregate in enumerate(aggregates):
        column = None if aggregate.kind == "count" else values_of(aggregate, columns)
        found = _RUNNING[aggregate.kind](runs, column, [each and each[at] for each in kept])
        if found is None:
            return None
        values.append(found[0])
        after.append(found[1])
    return values, after


def with_keys(
    table: pa.RecordBatch, names: Sequence[str], values: Sequence[pa.Array], schema: pa.Schema
) -> pa.RecordBatch:
    """Return a table of results: the columns of the key, and values."""
    fields = zip([*map(table.column, names), *values], schema.types, strict=True)
    return pa.RecordBatch.from_arrays([each.cast(kind) for each, kind in fields], schema=schema)


def as_tables(
    batches: Iterator[Batch], schema: RunningSchema, name: str, *, may_be_rows: bool
) -> Iterator[Batch]:
    """Yield batches of results as tables; such as no table can have as rows, if those will do."""
    for each in batches:
        try:
            results = schema.table(each.values)
        except (pa.ArrowException, *USER_ERRORS) as error:
            if not may_be_rows:
                raise operator_error(name, error) from error
            yield each
            continue
        yield each.giving(Table(results), Times.of(each.timestamps))


class RunningTables(RunningAggregate):
    """A `RunningAggregate` of tables, whose results are a table.

    Args:
        aggregates: those of the fold, by names of columns.
        results: the schema of the results.
        may_be_rows: what is behind takes rows, so that results that fit no table may be such.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: FieldGetter | FieldsGetter,
        fold: Fold,
        aggregates: Aggregates,
        *,
        schema: RowSchema,
        results: pa.Schema,
        may_be_rows: bool = False,
    ) -> None:
        super().__init__(context, name, key, fold)
        self._names = key
        self._aggregates = listed(aggregates)
        self._is_count = [each.kind for each in self._aggregates] == ["count"]
        self._columns = schema
        self._results = RunningSchema(results, tuple)
        self._may_be_rows = may_be_rows

    def process(self, batch: Batch) -> Iterator[Batch]:
        table, times = as_table(batch.values, self._columns), Times.of(batch.timestamps)
        if not len(table):
            return
        found = distinct_keys(table, self._names)
        assert found is not None, "the types of the key can be keys"
        keys, codes = found[0], found[1].to_numpy(zero_copy_only=False)
        try:
            with np.errstate(all="ignore"):  # Python says nothing of infinite sums either.
                results = self._found(table, times, keys, codes)
        except (pa.ArrowException, *USER_ERRORS) as error:
            raise operator_error(self.name, error) from error
        if results is not None:
            yield batch.giving(Table(results), times)
            return
        rows = batch.giving(self._columns.rows(table.batch), list(times))
        batches = super().process(rows)
        yield from as_tables(batches, self._results, self.name, may_be_rows=self._may_be_rows)

    def _found(
        self, table: Table, times: Times, keys: list[Any], codes: _Array
    ) -> pa.RecordBatch | None:
        """Return the results of a table, and keep what follows; None, and keep nothing."""
        state = self._current
        kept = [state.get(key) for key in keys]
        if self._is_count:
            kept = [each and (each,) for each in kept]
        runs = Runs(codes, len(keys), times.array.to_numpy())
        found = found_after(runs, self._aggregates, table.batch, kept)
        if found is None:
            return None
        values, after = found
        results = with_keys(table.batch, self._names.names, values, self._results.arrow)
        values_of_keys = after[0] if self._is_count else zip(*after, strict=True)
        for each, value in runs.different:
            each.add(value)
        for key, value in zip(keys, values_of_keys, strict=True):
            state[key] = value
        if self._changes is not None:
            self._changes.note(keys, len(table))
        return results


class Runs:
    """The rows of a table key by key, behind a place for what each key has so far."""

    def __init__(self, codes: _Array, keys: int, times: _Array) -> None:
        small = codes.astype(np.uint16) if keys <= 1 << 16 else codes  # By a radix sort.
        order = np.argsort(small, kind="stable")
        counts = np.bincount(codes, minlength=keys)
        self.ends = np.cumsum(counts + 1) - 1  # Where the last row of each key is.
        self.begins = self.ends - counts  # Where what it had is.
        self.run = np.repeat(np.arange(keys), counts + 1)
        self.row_at = np.empty(len(codes), np.int64)
        self.row_at[order] = np.arange(len(codes)) + codes[order] + 1
        self.codes = codes
        self.different: list[tuple[set[Any], Any]] = []  #: Sets that get a value when all is found.
        self._times = times

    def of(self, before: Any, rows: Any) -> _Array:
        """Return what keys have, and what rows bring, each in its place."""
        found = np.empty(len(self.run), rows.dtype)
        found[self.begins] = before
        found[self.row_at] = rows
        return found

    @cached_property
    def _from(self) -> _Array:
        found = np.empty(len(self.run), np.int64)
        found[self.begins] = np.arange(len(self.begins))
        found[self.row_at] = np.arange(len(self.begins), len(self.run))
        return found

    def column(self, before: list[Any], rows: pa.Array) -> pa.Array:
        """Return the same as a column."""
        return pa.concat_arrays([pa.array(before, rows.type), rows]).take(pa.array(self._from))

    def times(self, before: list[int]) -> _Array:
        return self.of(before, self._times)

    def sums(self, numbers: _Array) -> _Array:
        """Return the sums of whole numbers from the begin of each run on."""
        sums = np.cumsum(numbers)
        found: _Array = sums - (sums - numbers)[self.begins][self.run]
        return found

    def float_sums(self, numbers: _Array) -> _Array:
        """Return the sums of floats, added up one after the other, as Python does."""
        sums, lengths = numbers.copy(), self.ends - self.begins
        if len(lengths) <= lengths.max():
            for begin, end in zip(self.begins.tolist(), (self.ends + 1).tolist(), strict=True):
                np.cumsum(numbers[begin:end], out=sums[begin:end])
            return sums
        longest = np.argsort(-lengths, kind="stable")
        begins, lengths = self.begins[longest], lengths[longest]
        for step in range(1, int(lengths[0]) + 1):
            at = begins[: np.searchsorted(-lengths, -step, "right")] + step
            sums[at] += sums[at - 1]
        return sums

    def least(self, ranks: _Array) -> _Array:
        """Return the least rank from the begin of each run on."""
        below = self.run * (len(ranks) + 1)  # Each run is below all before it.
        found: _Array = np.minimum.accumulate(ranks - below) + below
        return found

    def first(self, places: _Array, is_there: _Array) -> tuple[pa.Array, pa.Array]:
        """Return the place, of some in an order, that is the first of those from the begin on.

        Args:
            is_there: the other places have no value; if none has, the place is missing.

        Returns:
            That of each row, and of each key in the end.
        """
        least = self.least(np.where(is_there, _ranks_of(places), len(places)))
        found = pa.array(np.append(places, 0)[least], mask=least == len(places))
        return found.take(pa.array(self.row_at)), found.take(pa.array(self.ends))


def _count(runs: Runs, _: Any, before: list[Any]) -> _Found:
    known = np.array([each or 0 for each in before], np.int64)
    counts = runs.sums(runs.of(known, np.ones(len(runs.row_at), np.int64)))
    return pa.array(counts[runs.row_at]), counts[runs.ends].tolist()


def _count_if(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
    is_true = truth(column).fill_null(False).cast(pa.int64()).to_numpy()
    counts = runs.sums(runs.of([each or 0 for each in before], is_true))
    return pa.array(counts[runs.row_at]), counts[runs.ends].tolist()


def _truth(*, is_all: bool) -> Callable[[Runs, pa.Array, list[Any]], _Found]:
    def found(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
        decides = pc.not_equal(truth(column).fill_null(is_all), is_all)
        known = [each is (not is_all) for each in before]
        numbers = runs.of(known, decides.cast(pa.int64()).to_numpy())
        results = (runs.sums(numbers) > 0) != is_all
        return pa.array(results[runs.row_at]), results[runs.ends].tolist()

    return found


def _distinct(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
    if pa.types.is_null(column.type):
        column = column.cast(pa.bool_())
    sets = [set() if each is None else each for each in before]
    encoded = one_keys_of(column).dictionary_encode()
    values = one_keys(cells_of(encoded.dictionary))
    rows = np.flatnonzero(column.is_valid())
    width, codes = len(values), encoded.indices.drop_null().to_numpy().astype(np.int64)
    pairs, firsts = np.unique(runs.codes[rows] * width + codes, return_index=True)
    found = zip(pairs.tolist(), rows[firsts].tolist(), strict=True)
    new = [
        (sets[pair // width], values[pair % width], row)
        for pair, row in found
        if values[pair % width] not in sets[pair // width]
    ]
    runs.different += [each[:2] for each in new]
    is_new = np.zeros(len(column), np.int64)
    is_new[[row for *_, row in new]] = 1
    counts = runs.sums(runs.of(list(map(len, sets)), is_new))
    return pa.array(counts[runs.row_at]), sets


def _totals(
    runs: Runs, column: pa.Array, totals: list[Any], counts: list[int]
) -> tuple[_Array, _Array] | None:
    """Return sums and how many values they have; None if Python is to add them up."""
    is_there = column.is_valid().cast(pa.int64()).to_numpy(zero_copy_only=False)
    many = runs.sums(runs.of(counts, is_there))
    if pa.types.is_floating(column.type):
        # To add this changes nothing, not even the sign of zero.
        numbers = column.fill_null(-0.0).to_numpy(zero_copy_only=False)
        return runs.float_sums(runs.of([-0.0 if t is None else t for t in totals], numbers)), many
    known = [total or 0 for total in totals]
    numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
    if max(map(abs, known)) + np.abs(numbers.astype(np.float64)).sum() >= _WHOLE_MAX:
        return None
    return runs.sums(runs.of(known, numbers)), many


def _sum(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
    found = _totals(runs, column, before, [each is not None for each in before])
    if found is None:
        return None
    sums, many = found
    kept = zip(sums[runs.ends].tolist(), many[runs.ends].tolist(), strict=True)
    results = pa.array(sums[runs.row_at], mask=many[runs.row_at] == 0)
    return results, [total if count else None for total, count in kept]


def _mean(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
    totals, counts = zip(*(each or (None, 0) for each in before), strict=True)
    found = _totals(runs, column, list(totals), list(counts))
    if found is None or (found[0].dtype == np.int64 and np.abs(found[0]).max() > _FLOAT_MAX):
        return None
    sums, many = found
    kept = zip(sums[runs.ends].tolist(), many[runs.ends].tolist(), strict=True)
    own, is_none = many[runs.row_at], many[runs.row_at] == 0
    means = sums[runs.row_at] / np.where(is_none, 1, own)
    return pa.array(means, mask=is_none), [each if each[1] else None for each in kept]


def _extreme(order: str) -> Callable[[Runs, pa.Array, list[Any]], _Found]:
    def found(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
        values = runs.column(before, column)
        places = pc.array_sort_indices(values, order=order).to_numpy()  # Those of nothing last.
        best = places[runs.least(_ranks_of(places))]
        return values.take(pa.array(best[runs.row_at])), cells_of(
            values.take(pa.array(best[runs.ends]))
        )

    return found


def _edge(*, is_first: bool) -> Callable[[Runs, pa.Array, list[Any]], _Found]:
    def found(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
        times_before, known = zip(*(each or (0, None) for each in before), strict=True)
        values, times = runs.column(list(known), column), runs.times(list(times_before))
        places = np.argsort(times, kind="stable")
        is_there = values.is_valid().to_numpy(zero_copy_only=False)
        of_rows, of_keys = runs.first(places if is_first else places[::-1], is_there)
        pairs = zip(*(cells_of(each.take(of_keys)) for each in (pa.array(times), values)))  # noqa: B905
        return values.take(of_rows), [None if time is None else (time, of) for time, of in pairs]

    return found


def _best(order: str) -> Callable[[Runs, pa.Array, list[Any]], _Found]:
    def found(runs: Runs, column: pa.Array, before: list[Any]) -> _Found:
        times_before, pairs = zip(*(each or (0, (None, None)) for each in before), strict=True)
        known = zip(*pairs, strict=True)
        by, of = (
            runs.column(list(each), column.field(name))
            for each, name in zip(known, ("by", "of"), strict=True)
        )
        times = pa.array(runs.times(list(times_before)))
        table = pa.table([by, times], ["by", "time"])
        places = pc.sort_indices(table, [("by", order), ("time", "ascending")]).cast(pa.int64())
        of_rows, of_keys = runs.first(
            places.to_numpy(), by.is_valid().to_numpy(zero_copy_only=False)
        )
        kept = zip(*(cells_of(each.take(of_keys)) for each in (times, by, of)), strict=True)
        return of.take(of_rows), [None if time is None else (time, (b, o)) for time, b, o in kept]

    return found


def _ranks_of(places: _Array) -> _Array:
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.arange(len(places))
    return ranks


_RUNNING: Final[dict[str, Callable[[Runs, Any, list[Any]], _Found]]] = {
    "count": _count,
    "count_if": _count_if,
    "sum": _sum,
    "mean": _mean,
    "min": _extreme("ascending"),
    "max": _extreme("descending"),
    "any": _truth(is_all=False),
    "all": _truth(is_all=True),
    "distinct": _distinct,
    "arg_min": _best("ascending"),
    "arg_max": _best("descending"),
    "first": _edge(is_first=True),
    "last": _edge(is_first=False),
}
