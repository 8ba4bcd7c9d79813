"""The last rows of each key of tables: what they come to after each row, for a table at once.

As over rows, sixteen rows are folded once, and such parts are divided where most powers of two
divide their numbers. So a row costs a few steps however long a window is, and sums of floats are
those of rows to the last digit. What is kept is as over rows.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gearpy.columns.results import RunningSchema
from gearpy.columns.row_schema import RowSchema, as_table
from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.core.window.accumulators import Aggregate
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, joined_rows
from gearpy.state.encoding.coders import MSGPACK
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.rolling import PART, RollingSpan, RollingStage
from gearpy.task.aggregates.running_tables import Runs, as_tables, found_after, with_keys
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext

_Array: TypeAlias = NDArray[Any]
#: Keys whose records are at hand; those of others are read again.
_KEYS_MAX: Final = 1 << 16
#: So many records at most are written when an epoch ends, which should take some ms.
_UNWRITTEN_MAX: Final = 1 << 14
#: Rows are looked at one by one where windows have so many times more, until they have so many. A
#: table costs as much as if windows had so many records more.
_KEPT_MAX: Final = 64
_KEPT_BACK: Final = 8
_OF_TABLE: Final = 1 << 12
_GREATEST: Final = np.iinfo(np.int64).max


class _Records(NamedTuple):
    """Records of keys, of each in their order.

    Attributes:
        codes: the number of the key of each; so with all arrays here.
        at_ms: when it is in the window.
        times: its event time.
        numbers: its number among all of the key.
        is_written: keyed state has it.
    """

    rows: pa.RecordBatch
    codes: _Array
    at_ms: _Array
    times: _Array
    numbers: _Array
    is_written: _Array

    def joined(self, other: "_Records") -> "_Records":
        arrays = map(np.concatenate, zip(self[1:], other[1:], strict=True))
        return _Records(joined_rows([self.rows, other.rows]), *arrays)

    def taken(self, at: _Array) -> "_Records":
        return _Records(self.rows.take(pa.array(at)), *(each[at] for each in self[1:]))


class RollingTables(RollingStage):
    """A `RollingStage` of tables, whose results are a table. All records at hand are in one.

    Args:
        aggregates: those of the fold, by names of columns.
        schema: of the tables in which records come.
        results: the schema of the results.
        may_be_rows: what is behind takes rows, so that results that fit no table may be such.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        key: FieldGetter | FieldsGetter,
        span: RollingSpan,
        fold: Fold,
        *,
        aggregates: Mapping[str, Aggregate],
        schema: RowSchema,
        results: pa.Schema,
        may_be_rows: bool = False,
    ) -> None:
        super().__init__(context, name, key, span, fold)
        self._names = key
        self._aggregates = list(aggregates.values())
        self._schema = schema
        self._columns = RowSchema(schema.arrow)
        self._results = RunningSchema(results, tuple)
        self._may_be_rows = may_be_rows
        self._begin_again()

    def _begin_again(self) -> None:
        self._code_of: dict[Any, int] = {}
        self._runs_of: list[list[int]] = []  # By code, as `RollingWindow.runs`.
        empty, none = pa.RecordBatch.from_pylist([], self._schema.arrow), np.zeros(0, np.int64)
        self._kept = _Records(empty, none, none, none, none, np.zeros(0, bool))

    def process(self, batch: Batch) -> Iterator[Batch]:
        table, times = as_table(batch.values, self._columns), Times.of(batch.timestamps)
        if not len(table):
            return
        found = distinct_keys(table, self._names)
        assert found is not None, "the types of the key can be keys"
        keys, of_rows = found[0], found[1].to_numpy(zero_copy_only=False)
        results = None
        if self._goes_by_tables(keys, len(table), times[0]):
            codes = np.array([self._code_of[key] for key in keys])[of_rows]
            try:
                with np.errstate(all="ignore"):  # Python says nothing of infinite sums either.
                    results = self._found(table.batch, times.array.to_numpy(), codes)
            except (pa.ArrowException, *USER_ERRORS) as error:
                raise operator_error(self.name, error) from error
        if results is not None:
            yield batch.giving(Table(results), times)
            return
        self._write_all()
        rows = batch.giving(self._schema.rows(table.batch), list(times))
        batches = super().process(rows)
        yield from as_tables(batches, self._results, self.name, may_be_rows=self._may_be_rows)

    def snapshot(self) -> None:
        self._write_new()
        super().snapshot()

    def _goes_by_tables(self, keys: list[Any], rows: int, time_ms: int) -> bool:
        """Have the records of some keys at hand in a table, unless so few rows have come.

        All records at hand are looked at for them, where rows look at a few.
        """
        at_hand = self._at_hand
        if at_hand:
            most = _KEPT_BACK * rows - _OF_TABLE  # Of few rows nobody need count what is kept.
            if most < 0 or sum(len(each.rows) for each in at_hand.values()) > most:
                return False
            super().snapshot()
            at_hand.clear()
        if len(self._code_of) + len(keys) > _KEYS_MAX:
            self._write_all()
        try:
            self._read_keys([key for key in keys if key not in self._code_of], time_ms)
        except USER_ERRORS:  # One can be no key. Rows tell which record has it.
            return False
        return len(self._kept.codes) + _OF_TABLE <= _KEPT_MAX * rows

    # -- records that are kept -------------------------------------------------------------------

    def _read_keys(self, keys: list[Any], time_ms: int) -> None:
        """Take the records of keys from their state."""
        keys = list(dict.fromkeys(keys))  # Zeros of either sign are one key.
        windows = [self._read(key, time_ms) for key in keys]
        codes = range(len(self._code_of), len(self._code_of) + len(keys))
        self._code_of |= zip(keys, codes, strict=True)
        self._runs_of += [window.runs for window in windows]
        cells = [
            (row, code, at_ms, own_ms, window.first + at)
            for code, window in zip(codes, windows, strict=True)
            for at, ((row, own_ms), at_ms) in enumerate(zip(window.rows, window.times, strict=True))
        ]
        if cells:
            rows, *arrays = zip(*cells, strict=True)
            known = *map(np.array, arrays), np.ones(len(rows), bool)
            self._kept = self._kept.joined(_Records(self._schema.table(rows), *known))

    def _write_new(self) -> None:
        """Put the records into keyed state that it has not."""
        kept = self._kept
        order = np.flatnonzero(~kept.is_written)
        some = kept.taken(order[np.argsort(kept.codes[order], kind="stable")])
        rows = self._schema.rows(some.rows)
        values = [row if MSGPACK.keeps(row) else MSGPACK.encode(row) for row in rows]
        fields = zip(values, some.at_ms.tolist(), some.times.tolist(), strict=True)
        codes, at, counts = np.unique(kept.codes, return_index=True, return_counts=True)
        spans = map(range, kept.numbers[at].tolist(), (kept.numbers[at] + counts).tolist())
        numbers, keys = dict(zip(codes.tolist(), spans, strict=True)), list(self._code_of)
        for code, of_key in groupby(zip(some.codes.tolist(), fields, strict=True), itemgetter(0)):
            unwritten: list[Any] = [field for _, each in of_key for field in each]
            self._put(keys[code], self._runs_of[code], unwritten, numbers[code], unwritten[-2])
        self._kept = kept._replace(is_written=np.ones(len(kept.codes), bool))

    def _write_all(self) -> None:
        """Have no records at hand any more."""
        if self._code_of:
            self._write_new()
            self._begin_again()

    # -- what comes ------------------------------------------------------------------------------

    def _found(self, table: pa.RecordBatch, times: _Array, codes: _Array) -> pa.RecordBatch | None:
        """Return the results of a table, and keep it; None, and keep nothing."""
        numbers = np.zeros(len(codes), np.int64)  # Those of a key without any, but for the place.
        new = _Records(table, codes, times, times, numbers, np.zeros(len(codes), bool))
        records = self._kept.joined(new)
        windows = _Windows(records, new=len(table), span=self._span, event_ms=self._state.event_ms)
        found = found_after(windows, self._aggregates, records.rows, [None])
        if found is None:
            return None
        values = [each.slice(len(self._kept.codes)) for each in found[0]]
        results = with_keys(table, self._names.names, values, self._results.arrow)
        left = records.taken(windows.order[windows.last])
        left = left._replace(
            at_ms=windows.at_ms[windows.last], numbers=windows.numbers[windows.last]
        )
        self._kept = left
        if len(left.codes) - int(left.is_written.sum()) > _UNWRITTEN_MAX:
            self._write_new()
        return results


class _Bucket(NamedTuple):
    """Windows of some keys, whose rows are in places as their numbers divide.

    Attributes:
        rows: those of the keys.
        places: of the rows.
        size: how many places there are.
        asked: rows whose windows are asked for; so with all arrays here.
        start: the place of the first row of a window.
        end: the one behind the last.
        low: the first part of it that is whole.
        high: the one behind the last.
        power: which power of two divides the number at which whole parts are divided.
    """

    rows: _Array
    places: _Array
    size: int
    asked: _Array
    start: _Array
    end: _Array
    low: _Array
    high: _Array
    power: _Array


class _Windows(Runs):
    """The rows of a table key by key, behind those that are kept, and the window of each new one.

    Attributes:
        order: of the rows, key by key.
        at_ms: of the rows in that order, when each is in the window.
        numbers: likewise, among those of their keys.
        last: which of the rows in that order are in the last window of their key.
    """

    def __init__(self, records: _Records, *, new: int, span: RollingSpan, event_ms: int) -> None:
        codes, self._times = records.codes, records.times
        small = codes.astype(np.uint16) if codes.max() < 1 << 16 else codes  # By a radix sort.
        self.order = order = np.argsort(small, kind="stable")
        self.row_at = np.empty(len(codes), np.int64)
        self.row_at[order] = np.arange(len(codes))
        self.ends = np.zeros(1, np.int64)  # No key has anything before.
        run = codes[order]
        counts = np.bincount(codes)
        begins = np.cumsum(counts) - counts
        is_new = order >= len(codes) - new
        came_ms = records.at_ms[order]
        at_ms = _never_falling(run, came_ms)
        is_first = np.append([True], run[1:] != run[:-1])
        is_break = np.zeros(len(run), bool)
        if span.time_ms and event_ms > MIN_MS + span.time_ms:
            over_ms = event_ms - span.time_ms
            is_break[1:] = is_new[1:] & ~is_first[1:] & (at_ms[:-1] <= over_ms)
            at_ms = np.where(at_ms <= over_ms, came_ms, at_ms)
        self.at_ms = at_ms
        self.numbers = records.numbers[order][begins[run]] + np.arange(len(run)) - begins[run]
        stops = begins + counts
        for at in np.flatnonzero(is_break).tolist():
            self.numbers[at : stops[run[at]]] += -self.numbers[at] % PART
        starts = np.maximum.accumulate(np.where(is_break | is_first, np.arange(len(run)), 0))
        if span.records:
            starts = np.maximum(starts, np.arange(len(run)) - span.records + 1)
        else:
            starts = _since(np.cumsum(is_break | is_first), at_ms, span.time_ms)
        self.last = np.flatnonzero(np.arange(len(run)) >= starts[stops - 1][run])
        self._starts = starts
        self._asked = np.flatnonzero(is_new)
        self._buckets = list(self._in_buckets(run, begins, stops))

    def _in_buckets(self, run: _Array, begins: _Array, stops: _Array) -> Iterator[_Bucket]:
        """Yield the windows of keys, those of which are about as long, together."""
        asked, numbers = self._asked, self.numbers
        starts, ends = numbers[self._starts[asked]], numbers[asked] + 1
        low, high = -(-starts // PART), ends // PART
        most = np.zeros(len(begins), np.int64)
        np.maximum.at(most, run[asked], high - low)
        levels = np.frexp(most)[1]  # Their windows have fewer whole parts than two to this.
        for level in np.unique(levels).tolist():
            width = PART << level
            mine = np.flatnonzero(levels == level)
            origin = numbers[begins[mine]] // width * width
            sizes = -(-(numbers[stops[mine] - 1] + 1 - origin) // width) * width
            shift = np.zeros(len(begins), np.int64)  # From numbers to places.
            shift[mine] = np.cumsum(sizes) - sizes - origin
            rows = np.flatnonzero(levels[run] == level)
            which = np.flatnonzero(levels[run[asked]] == level)
            moved = shift[run[asked[which]]]
            odd = (np.maximum(low[which], 1) - 1) ^ high[which]
            power = np.frexp(odd)[1] - 1
            power = np.where((low[which] == 0) | (power > level), level, power)
            yield _Bucket(
                rows,
                numbers[rows] + shift[run[rows]],
                int(sizes.sum()),
                asked[which],
                starts[which] + moved,
                ends[which] + moved,
                low[which] + moved // PART,
                high[which] + moved // PART,
                power,
            )

    def of(self, before: Any, rows: Any) -> _Array:
        found: _Array = rows[self.order]
        return found

    def column(self, before: list[Any], rows: pa.Array) -> pa.Array:
        return rows.take(pa.array(self.order))

    def sums(self, numbers: _Array) -> _Array:
        """Return the sums of whole numbers of each window that is asked for."""
        sums, found = np.append(0, np.cumsum(numbers)), np.zeros_like(numbers)
        found[self._asked] = sums[self._asked + 1] - sums[self._starts[self._asked]]
        return found

    def float_sums(self, numbers: _Array) -> _Array:
        return self._folded(numbers, np.add, -0.0)  # To add this changes nothing.

    def least(self, ranks: _Array) -> _Array:
        return self._folded(ranks, np.minimum, _GREATEST)

    def _folded(self, values: _Array, join: np.ufunc, nothing: Any) -> _Array:
        """Return the value of each window that is asked for, as `RollingFold` has it."""
        found = np.zeros_like(values)
        for each in self._buckets:
            rows = np.full(each.size, nothing, values.dtype)
            rows[each.places] = values[each.rows]
            behind, ahead = _both_ways(rows, PART, join)
            parts = behind[PART - 1 :: PART]
            middle = np.full(len(each.asked), nothing, values.dtype)
            is_long = each.low < each.high
            for power in np.unique(each.power[is_long]).tolist():
                which = np.flatnonzero(is_long & (each.power == power))
                low, high = each.low[which], each.high[which]
                anchor = high >> power << power
                after, before = _both_ways(parts, 1 << power, join)
                middle[which] = join(
                    np.where(low < anchor, before[low], nothing),
                    np.where(anchor < high, after[high - 1], nothing),
                )
            start, end = each.start, each.end
            head = np.where(start % PART > 0, ahead[start], nothing)
            tail = np.where(end % PART > 0, behind[end - 1], nothing)
            found[each.asked] = join(join(head, middle), tail)
            inside = np.flatnonzero(each.low > each.high)  # In one part.
            if len(inside):
                joined, at, end = rows[start[inside]], start[inside] + 1, end[inside]
                while (goes_on := at < end).any():
                    value = rows[np.minimum(at, each.size - 1)]
                    joined = np.where(goes_on, join(joined, value), joined)
                    at += 1
                found[each.asked[inside]] = joined
        return found


def _both_ways(values: _Array, width: int, join: np.ufunc) -> tuple[_Array, _Array]:
    """Return the values merged from the begin of each piece on, and up to its end."""
    pieces = values.reshape(-1, width)
    forth = join.accumulate(pieces, axis=1)
    back = join.accumulate(pieces[:, ::-1], axis=1)[:, ::-1]
    return forth.ravel(), back.ravel()


def _never_falling(run: _Array, times: _Array) -> _Array:
    """Return for each row of a key the newest time so far."""
    falls = (times[1:] < times[:-1]) & (run[1:] == run[:-1])
    if not falls.any():
        return times
    different, ranks = np.unique(times, return_inverse=True)
    above = run * len(different)  # Each key is above those before it.
    found: _Array = different[np.maximum.accumulate(ranks + above) - above]
    return found


def _since(of: _Array, times: _Array, span_ms: int) -> _Array:
    """Return for each row the first one of its own that is less than this older."""
    different, ranks = np.unique(times, return_inverse=True)
    from_ms = np.maximum(times, MIN_MS + span_ms) - span_ms
    above = of * (len(different) + 1)
    found: _Array = np.searchsorted(
        ranks + above, np.searchsorted(different, from_ms, "right") + above
    )
    return found
