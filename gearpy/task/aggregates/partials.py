"""Partial results of the rows of a table, by group, as columns of Arrow, then as accumulators.

A partial is the result of an aggregate over one table: columns with one row for each group. It
names the values that Arrow computes (`inputs`), turns them into columns that travel (`finish`), and
those, at the other end, into the accumulators of `core.window` (`accumulators`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Final, Protocol

# Ships no type information.
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.core.base.fields import NAN
from gearpy.core.base.one_key import one_key
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.sketches import (
    EXACT_MAX,
    FINEST_SHIFT,
    NAN_BITS,
    few_or_registers,
    fitted,
)
from gearpy.messages.table import cells_of, in_microseconds
from gearpy.task.aggregates.fitting import DIGITS_MAX, MORE_DIGITS, UNIT_US, truth
from gearpy.task.time.pieces import is_sorted

#: A column to compute on, the name of Arrow's function over groups, and its options.
Input = tuple[Any, str, Any]
#: Turns columns that Arrow has computed into those that travel.
Finish = Callable[[list[pa.Array]], list[pa.Array]]

_INT64_MAX: Final = 2**63 - 1
_HIGHEST_BIT: Final = 63
_HALF: Final = 32
_LOW: Final = 2**_HALF - 1
_DIGITS_128: Final = 38
_FLOAT_MAX: Final = 1 << 53  #: A float holds each whole number up to this.
_PLACES: Final = 1 << 16
_NO_NUMBER: Final = pa.scalar(None, pa.float64())
_NO_NULLS: Final = pc.ScalarAggregateOptions(skip_nulls=True, min_count=0)
#: So that a group without a value is not lost.
_WITH_NULL: Final = pc.CountOptions(mode="all")


def places_of(rows: int) -> pa.Array:
    return _places(-(-rows // _PLACES)).slice(0, rows)


@lru_cache(maxsize=4)
def _places(parts: int) -> pa.Array:
    ones = pa.repeat(pa.scalar(1, pa.int64()), parts * _PLACES)
    return pc.subtract(pc.cumulative_sum(ones), 1)


class Rows:
    """The rows of a table, with their times; ranks are in the order of times, then of places."""

    def __init__(self, times: pa.Array) -> None:
        self.times = times
        self._order: pa.Array | None = None
        self._bits = len(times).bit_length()

    @cached_property
    def places(self) -> pa.Array:
        return places_of(len(self.times))

    @cached_property
    def ranks(self) -> pa.Array:
        times = self.times
        if is_sorted(times):
            return self.places
        low, high = pc.min_max(times).as_py().values()
        if (high - low).bit_length() + self._bits <= _HIGHEST_BIT:
            # Each rank ends with its place, so that nothing is sorted.
            since = pc.subtract(times, low)
            return pc.add(pc.shift_left(since, self._bits), self.places)
        order = pc.array_sort_indices(times).to_numpy()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = self.places.to_numpy()
        self._order = pa.array(order.astype(np.int64))
        return pa.array(ranks)

    def of_ranks(self, ranks: pa.Array) -> pa.Array:
        """Return the places of rows of these ranks."""
        if self._order is not None:
            return self._order.take(ranks)
        return pc.bit_wise_and(ranks, (1 << self._bits) - 1)


def one_keys_of(column: pa.Array) -> pa.Array:
    """Return a column in which values are equal if they are one key: see `one_key`."""
    column = in_microseconds(column)
    if not pa.types.is_floating(column.type):
        return column
    zero, nan = (pa.scalar(each, column.type) for each in (0.0, NAN))
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


class Partial(Protocol):
    """Computes one aggregate of the groups of a table."""

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        """Return the columns and functions that Arrow has to compute."""
        ...

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        """Turn the columns that Arrow has computed into columns that travel."""
        ...

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        """Return an accumulator for each group."""
        ...


class Merging(Partial, Protocol):
    """A partial that Arrow can also merge, so that no accumulator is made of its columns."""

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        """Return what Arrow has to compute of the columns that travel, and how it becomes them."""
        ...

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        """Return the columns of some accumulators, which state has kept."""
        ...

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        """Return the accumulators as a column, with tuples as structs; None if Python has to."""
        ...

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        """Return the results as a column; None if Python has to make them of accumulators."""
        ...


# -- partials ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedAggregate(Aggregate):
    """An aggregate that brings its own way over columns."""

    partial: Merging


def partial_of(aggregate: Aggregate) -> Partial:
    if isinstance(aggregate, MergedAggregate):
        return aggregate.partial
    return _PARTIALS[aggregate.kind](aggregate)


def merging_of(aggregate: Aggregate) -> Merging | None:
    """Return the partial of an aggregate if Arrow can merge it; of a count, that is its number."""
    if aggregate.kind == "count":
        return _CountIf(aggregate)
    if isinstance(aggregate, MergedAggregate):
        return aggregate.partial
    if aggregate.kind not in _PARTIALS or aggregate.kind == "approx_distinct":
        return None
    partial: Any = partial_of(aggregate)
    return partial if hasattr(partial, "merging") else None


class _Whole:
    """Sums that would not fit into 64 bits: the upper and the lower halves are added up apart."""

    @staticmethod
    def inputs(column: pa.Array) -> list[Input]:
        if pa.types.is_duration(column.type):
            column = column.cast(pa.int64())
        elif pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        found = pc.min_max(column)
        ends = [abs(each.as_py() or 0) for each in (found["min"], found["max"])]
        if max(ends) * len(column) <= _INT64_MAX:
            return [(column, "sum", None)]
        wide = column.cast(pa.uint64() if pa.types.is_unsigned_integer(column.type) else pa.int64())
        low = pc.bit_wise_and(wide, pa.scalar(_LOW, wide.type)).cast(pa.int64())
        high = pc.shift_right(wide, pa.scalar(_HALF, wide.type)).cast(pa.int64())
        return [(low, "sum", None), (high, "sum", None)]

    @staticmethod
    def finish(found: list[pa.Array], column: pa.Array) -> list[pa.Array]:
        low = found[0].cast(pa.int64())
        high = found[1] if len(found) > 1 else pa.repeat(pa.scalar(0, pa.int64()), len(low))
        return [low.cast(column.type) if pa.types.is_duration(column.type) else low, high]

    @staticmethod
    def merging(low: pa.Array, high: pa.Array) -> tuple[list[Input], Finish]:
        inputs = _Whole.inputs(low)

        def finish(found: list[pa.Array]) -> list[pa.Array]:
            *lows, highs = found
            low_now, carried = _Whole.finish(lows, low)
            return [low_now, pc.add_checked(carried, highs)]

        return [*inputs, (high, "sum", None)], finish

    @staticmethod
    def columns(totals: list[Any], kind: pa.DataType) -> list[pa.Array]:
        unit_us = UNIT_US[kind.unit] if pa.types.is_duration(kind) else 0
        if unit_us:
            unit = timedelta(microseconds=unit_us)
            totals = [None if each is None else each // unit for each in totals]
        is_wide = [each is not None and not -_INT64_MAX <= each <= _INT64_MAX for each in totals]
        pairs = list(zip(totals, is_wide, strict=True))
        lows = pa.array([each & _LOW if wide else each for each, wide in pairs], pa.int64())
        highs = [each >> _HALF if wide else 0 for each, wide in pairs]
        return [lows.cast(kind), pa.array(highs, pa.int64())]

    @staticmethod
    def results(low: pa.Array, high: pa.Array) -> pa.Array | None:
        if pc.any(pc.not_equal(high, 0), min_count=0).as_py():
            return None
        return low.cast(pa.duration("us")) if pa.types.is_duration(low.type) else low

    @staticmethod
    def totals(low: pa.Array, high: pa.Array) -> list[Any]:
        lows: list[Any] = low.cast(pa.int64()).to_pylist()
        if pc.any(pc.not_equal(high, 0), min_count=0).as_py():
            pairs = zip(lows, high.to_pylist(), strict=True)
            lows = [None if a is None else a + (b << _HALF) for a, b in pairs]
        if not pa.types.is_duration(low.type):
            return lows
        unit_us = UNIT_US[low.type.unit]
        return [None if a is None else timedelta(microseconds=a * unit_us) for a in lows]


class _Sum:
    """A sum; whole numbers and durations by `_Whole`, decimals with room for all digits."""

    def __init__(self, _: Aggregate) -> None:
        pass

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        kind = column.type
        if _is_whole(kind):
            return _Whole.inputs(column)
        if pa.types.is_decimal(kind):
            digits = kind.precision + MORE_DIGITS
            wide = pa.decimal128 if digits <= _DIGITS_128 else pa.decimal256
            column = column.cast(wide(digits, kind.scale))
        elif pa.types.is_null(kind):
            column = column.cast(pa.float64())
        return [(column, "sum", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        if _is_whole(column.type):
            return _Whole.finish(found, column)
        return [found[0], pa.nulls(len(found[0]), pa.int64())]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        low, high = columns
        totals: list[Any] = _Whole.totals(low, high) if _is_whole(low.type) else low.to_pylist()
        return totals

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        low, high = columns
        if _is_whole(low.type):
            return _Whole.merging(low, high)
        return [(low, "sum", None)], lambda found: [found[0], pa.nulls(len(found[0]), high.type)]

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        if _is_whole(kinds[0]):
            return _Whole.columns(accumulators, kinds[0])
        return [pa.array(accumulators, kinds[0]), pa.nulls(len(accumulators), kinds[1])]

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        low, high = columns
        return _Whole.results(low, high) if _is_whole(low.type) else low

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        low, high = columns
        if _is_whole(low.type):
            return _Whole.results(low, high)
        if pa.types.is_decimal(low.type):
            return low.cast(pa.decimal128(_DIGITS_128, low.type.scale))
        return low


class _Mean(_Sum):
    """A sum, and the number of its values."""

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        return [(column, "count", None), *super().inputs(column, rows)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        return [found[0], *super().finish(found[1:], column, rows)]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        totals = super().accumulators(columns[1:])
        pairs = zip(totals, columns[0].to_pylist(), strict=True)
        return [(total, count) if count else None for total, count in pairs]

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        inputs, finish = super().merging(columns[1:])
        return [(columns[0], "sum", None), *inputs], lambda found: [found[0], *finish(found[1:])]

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        pairs = [(None, 0) if each is None else each for each in accumulators]
        totals = super().columns([total for total, _ in pairs], kinds[1:])
        return [pa.array([count for _, count in pairs], kinds[0]), *totals]

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        count, total = columns[0], super().stored(columns[1:])
        return None if total is None else _tuples(total, count, missing=pc.equal(count, 0))

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        count, low, high = columns
        if pa.types.is_integer(low.type):
            # As long as a float holds a sum exactly, Arrow and Python divide alike.
            ends = pc.min_max(low)
            if max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0)) > _FLOAT_MAX:
                return None
            if _Whole.results(low, high) is None:
                return None
        elif not pa.types.is_floating(low.type):
            return None
        none = pa.scalar(None, pa.float64())
        counts = pc.if_else(pc.greater(count, 0), count.cast(pa.float64()), none)
        return pc.divide(low.cast(pa.float64()), counts)


class _OneColumn:
    """The merging half of partials of one column."""

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        raise NotImplementedError

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        raise NotImplementedError

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        (column,) = columns
        rows = Rows(column)
        return self.inputs(column, rows), lambda found: self.finish(found, column, rows)

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        return [pa.array(accumulators, kinds[0])]

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        return columns[0]

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        return columns[0]


@dataclass(frozen=True, slots=True)
class _Extreme(_OneColumn):
    """The least or the greatest value, as Arrow finds it."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        if pa.types.is_duration(column.type):
            column = column.cast(pa.int64())
        return [(column, self.aggregate.kind, None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        return [found[0].cast(column.type)]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        return cells_of(columns[0])


@dataclass(frozen=True, slots=True)
class _Edge:
    """The value with the earliest or the latest time: that of the least or the greatest rank."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        """Return the ranks to compute on, without those where there is no value."""
        ranks = rows.ranks
        if column.null_count:
            ranks = pc.if_else(column.is_valid(), ranks, pa.scalar(None, pa.int64()))
        return [(ranks, "min" if self.aggregate.kind == "first" else "max", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        at = rows.of_ranks(found[0])
        return [rows.times.take(at), column.take(at)]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        pairs = zip(columns[0].to_pylist(), cells_of(columns[1]), strict=True)
        return [None if pair[0] is None else pair for pair in pairs]

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        times, column = columns
        # Those without a time are of no value, and have no rank.
        rows = Rows(times.fill_null(pc.min(times).as_py() or 0))
        finish = self.finish
        return self.inputs(column, rows), lambda found: finish(found, column, rows)

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        return _unzipped([each or (None, None) for each in accumulators], kinds)

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        return _tuples(*columns, missing=columns[0].is_null())

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        return columns[1]


@dataclass(frozen=True, slots=True)
class _Values:
    """All values of a group, in order."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        return [(rows.places, "list", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        (places,) = found
        values = column.take(places.flatten())
        lengths = pc.list_value_length(places)
        ends = pc.cumulative_sum(lengths.cast(pa.int64()))
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
        return [pa.LargeListArray.from_arrays(offsets, values)]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        lists = [[each for each in values if each is not None] for values in cells_of(columns[0])]
        if self.aggregate.kind == "collect":
            return lists
        assert self.aggregate.merge is not None
        return [self.aggregate.merge([], values) for values in lists]


@dataclass(frozen=True, slots=True)
class _Distinct:
    """The different values of a group."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        """Return the inputs of Arrow; none for a column without values."""
        if pa.types.is_null(column.type):
            column = column.cast(pa.bool_())  # Arrow crashes on the other.
        return [(one_keys_of(column), "distinct", _WITH_NULL)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        return found

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        (lists,) = columns

        def finish(found: list[pa.Array]) -> list[pa.Array]:
            (places,) = found
            groups = pc.list_parent_indices(places).take(
                pc.list_parent_indices(mine := lists.take(places.flatten()))
            )
            table = pa.Table.from_arrays([groups, mine.flatten()], ["group", "value"])
            merged = table.group_by("group", use_threads=False).aggregate(
                [("value", "distinct", _WITH_NULL)]
            )
            return [merged.sort_by("group").column("value_distinct").combine_chunks()]

        return [(places_of(len(lists)), "list", None)], finish

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        # Without a value a group would be lost among others.
        return [pa.array([[*each] or [None] for each in accumulators], kinds[0])]

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        return None

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        (lists,) = columns
        values, groups = lists.flatten().is_valid(), pc.list_parent_indices(lists)
        table = pa.Table.from_arrays([groups, values.cast(pa.int64())], ["group", "value"])
        found = table.group_by("group", use_threads=False).aggregate([("value", "sum")])
        return found.sort_by("group").column("value_sum").combine_chunks()

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        kind = columns[0].type.value_type
        lists = cells_of(columns[0])
        if pa.types.is_floating(kind):
            lists = [[each if each == each else NAN for each in some] for some in lists]  # noqa: PLR0124
        return [{each for each in some if each is not None} for some in lists]


@dataclass(frozen=True, slots=True)
class _Spread:
    """Number of values, one of them, and mean and variance of the distances from that one.

    The distances are exact, so that large values lose no digits; Arrow alone would.
    """

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        column = _measured(column)
        return [(column, "count", None), (column, "min", None), (rows.places, "list", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        number, least, places = found
        values = _measured(column).take(places.flatten())
        group = pc.list_parent_indices(places)
        distance = _distances(values, least.take(group))
        table = pa.Table.from_arrays([group, distance, distance], ["group", "mean", "spread"])
        asked = [("mean", "mean", None), ("spread", "variance", pc.VarianceOptions(ddof=0))]
        of_groups = table.group_by("group", use_threads=False).aggregate(asked).combine_chunks()
        return [number, least, *(of_groups[name].combine_chunks() for name in _OF_DISTANCES)]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        rows = zip(*(each.to_pylist() for each in columns), strict=True)
        return [(n, base, mean, variance * n) if n else None for n, base, mean, variance in rows]


_OF_DISTANCES: Final = ("mean_mean", "spread_variance")


def _measured(column: pa.Array) -> pa.Array:
    """Return numbers of the type in which their distances are exact."""
    kind = column.type
    if pa.types.is_decimal(kind) and kind.precision < DIGITS_MAX:
        return column.cast(pa.decimal256(kind.precision, kind.scale))
    if pa.types.is_unsigned_integer(kind):
        return column.cast(pa.uint64())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.cast(pa.int64())
    return column.cast(pa.float64())


def _distances(values: pa.Array, least: pa.Array) -> pa.Array:
    """Return how far values are above their least ones, as floats."""
    found = pc.subtract(values, least)
    if pa.types.is_integer(found.type):
        found = found.view(pa.uint64())  # Where 63 bits do not hold it.
    return found.cast(pa.float64(), safe=False)


@dataclass(frozen=True, slots=True)
class _Truth(_OneColumn):
    """Whether any, or all values are true."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        return [(truth(column), self.aggregate.kind, _NO_NULLS)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        return found

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        answers: list[Any] = columns[0].to_pylist()
        return answers


@dataclass(frozen=True, slots=True)
class _CountIf(_OneColumn):
    """How many values are true."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        return [(truth(column).fill_null(False).cast(pa.int64()), "sum", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        return found

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        numbers: list[Any] = columns[0].to_pylist()
        return numbers

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        return [(columns[0], "sum", None)], lambda found: found


@dataclass(frozen=True, slots=True)
class _Best:
    """The value of the row by which something is least or greatest, and of these the earliest."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        """Return the ranks of rows in that order, without those where there is nothing."""
        by = column.field("by")
        ranks = pc.sort_indices(self._order(by, rows)).cast(pa.int64())
        return [(pc.if_else(by.is_valid(), ranks, pa.scalar(None, pa.int64())), "min", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        by, of = column.field("by"), column.field("of")
        at = self._order(by, rows).take(found[0])
        return [rows.times.take(at), by.take(at), of.take(at)]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        times, by, of = columns[0].to_pylist(), cells_of(columns[1]), cells_of(columns[2])
        found = zip(times, by, of, strict=True)
        return [None if time is None else (time, (b, value)) for time, b, value in found]

    def merging(self, columns: list[pa.Array]) -> tuple[list[Input], Finish]:
        times, by, of = columns
        both = pa.StructArray.from_arrays([by, of], ["by", "of"])
        # Those without a time are of no value, and have no rank.
        rows = Rows(times.fill_null(pc.min(times).as_py() or 0))
        finish = self.finish
        return self.inputs(both, rows), lambda found: finish(found, both, rows)

    def columns(self, accumulators: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
        rows = [(None, None, None) if not each else (each[0], *each[1]) for each in accumulators]
        return _unzipped(rows, kinds)

    def stored(self, columns: list[pa.Array]) -> pa.Array | None:
        times, by, of = columns
        return _tuples(times, _tuples(by, of), missing=times.is_null())

    def results(self, columns: list[pa.Array]) -> pa.Array | None:
        return columns[2]

    def _order(self, by: pa.Array, rows: Rows) -> pa.Array:
        # NaN is behind all numbers, in either order.
        upwards = "ascending" if self.aggregate.kind == "arg_min" else "descending"
        if pa.types.is_null(by.type):
            by = by.cast(pa.bool_())
        elif pa.types.is_duration(by.type):
            by = by.cast(pa.int64())
        table = pa.Table.from_arrays([by, rows.times], ["by", "time"])
        keys = [("by", upwards), ("time", "ascending")]
        return pc.sort_indices(table, sort_keys=keys).cast(pa.int64())


@dataclass(frozen=True, slots=True)
class _Counts:
    """The different values of a group, and how many of each there are."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        return [(rows.places, "list", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        (places,) = found
        if pa.types.is_null(column.type):
            column = column.cast(pa.bool_())  # Arrow does not group by the other.
        group, values = _values_by_group(places, one_keys_of(column))
        return _counted(group, values, len(places))

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        values, numbers = cells_of(columns[0]), columns[1].to_pylist()
        if pa.types.is_floating(columns[0].type.value_type):
            values = [[each if each == each else NAN for each in some] for some in values]  # noqa: PLR0124
        return [dict(zip(some, n, strict=True)) for some, n in zip(values, numbers, strict=True)]


@dataclass(frozen=True, slots=True)
class _Quantile:
    """The numbers of small groups as `float_bits`, the filled buckets of large ones."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        return [(rows.places, "list", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        (places,) = found
        group, bits = _values_by_group(places, _float_bits(_floats(column)))
        sizes = pc.value_counts(group)
        large = sizes.field("values").filter(pc.greater(sizes.field("counts"), EXACT_MAX))
        is_large = pc.is_in(group, value_set=large)
        is_small = pc.invert(is_large)
        small = _lists(group.filter(is_small), bits.filter(is_small), len(places))
        buckets = pc.shift_right(bits.filter(is_large), pa.scalar(FINEST_SHIFT, pa.int64()))
        return [small, *_counted(group.filter(is_large), buckets, len(places))]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        return [
            fitted(0, dict(zip(buckets, numbers, strict=True))) if buckets else sorted(bits)
            for bits, buckets, numbers in zip(*(each.to_pylist() for each in columns), strict=True)
        ]


class _ApproxDistinct(_Distinct):
    """The different values of a group; of many only what is kept of them."""

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        return [
            few_or_registers({one_key(each) for each in some})
            for some in super().accumulators(columns)
        ]


@dataclass(frozen=True, slots=True)
class _Decayed:
    """The newest time of a group, and sums of values and weights as they are at that time."""

    aggregate: Aggregate

    def inputs(self, column: pa.Array, rows: Rows) -> list[Input]:
        times = pc.if_else(column.is_valid(), rows.times, pa.scalar(None, pa.int64()))
        return [(times, "max", None), (rows.places, "list", None)]

    def finish(self, found: list[pa.Array], column: pa.Array, rows: Rows) -> list[pa.Array]:
        newest, places = found
        at, group = places.flatten(), pc.list_parent_indices(places)
        values = _floats(column).take(at)
        ages = pc.subtract(newest.take(group), rows.times.take(at)).cast(pa.float64(), safe=False)
        halvings = pc.divide(ages, -float(self.aggregate.option))
        weights = pc.if_else(values.is_valid(), pc.power(2.0, halvings), _NO_NUMBER)
        table = pa.Table.from_arrays(
            [group, pc.multiply(values, weights), weights], ["group", "total", "weight"]
        )
        sums = table.group_by("group", use_threads=False).aggregate(
            [("total", "sum"), ("weight", "sum")]
        )
        sums = sums.combine_chunks()
        return [newest, *(sums[name].combine_chunks() for name in ("total_sum", "weight_sum"))]

    def accumulators(self, columns: list[pa.Array]) -> list[Any]:
        rows = zip(*(each.to_pylist() for each in columns), strict=True)
        return [None if row[0] is None else row for row in rows]


def _tuples(*parts: pa.Array, missing: pa.Array | None = None) -> pa.Array:
    return pa.StructArray.from_arrays(parts, [*map(str, range(len(parts)))], mask=missing)


def _unzipped(rows: list[Any], kinds: list[pa.DataType]) -> list[pa.Array]:
    return [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]


def _values_by_group(places: pa.Array, column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the values at some places, without missing ones, each with the number of its group."""
    group, values = pc.list_parent_indices(places).cast(pa.int64()), column.take(places.flatten())
    there = values.is_valid()
    return group.filter(there), values.filter(there)


def _counted(group: pa.Array, values: pa.Array, groups: int) -> list[pa.Array]:
    """Return a list of the different values for each group, and one of their numbers."""
    table = pa.Table.from_arrays([group, values], ["group", "value"])
    counted = table.group_by(["group", "value"], use_threads=False).aggregate([([], "count_all")])
    counted = counted.sort_by("group")  # Of two keys Arrow keeps no order.
    columns = [_whole(counted[name]) for name in ("group", "value", "count_all")]
    return [_lists(columns[0], each, groups) for each in columns[1:]]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def _lists(group: pa.Array, values: pa.Array, groups: int) -> pa.Array:
    """Return a list for each group, of values that are in the order of the groups."""
    sizes = {each["values"]: each["counts"] for each in pc.value_counts(group).to_pylist()}
    ends = accumulate(sizes.get(each, 0) for each in range(groups))
    return pa.LargeListArray.from_arrays(pa.array([0, *ends], pa.int64()), values)


def _floats(column: pa.Array) -> pa.Array:
    if pa.types.is_decimal(column.type):  # Arrow does not round them as Python does.
        numbers = [None if each is None else float(each) for each in column.to_pylist()]
        return pa.array(numbers, pa.float64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.float64(), safe=False)


def _float_bits(numbers: pa.Array) -> pa.Array:
    """Return the bits of floats in the order of floats; see `float_bits`."""
    bits = pc.add(numbers, 0.0).view(pa.int64())  # -0.0 is 0.0.
    flipped = pc.bit_wise_xor(bits, pa.scalar(_INT64_MAX, pa.int64()))
    bits = pc.if_else(pc.less(bits, 0), flipped, bits)
    return pc.if_else(pc.is_nan(numbers), pa.scalar(NAN_BITS, pa.int64()), bits)


_PARTIALS: Final[dict[str, Callable[[Aggregate], Partial]]] = {
    "sum": _Sum,
    "mean": _Mean,
    "min": _Extreme,
    "max": _Extreme,
    "first": _Edge,
    "last": _Edge,
    "collect": _Values,
    "top": _Values,
    "distinct": _Distinct,
    "variance": _Spread,
    "stddev": _Spread,
    "any": _Truth,
    "all": _Truth,
    "count_if": _CountIf,
    "arg_min": _Best,
    "arg_max": _Best,
    "mode": _Counts,
    "quantile": _Quantile,
    "approx_distinct": _ApproxDistinct,
    "ewma": _Decayed,
}


def _is_whole(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_duration(kind)
    )
