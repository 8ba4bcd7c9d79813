"""The gate before a step that takes columns and sees in which order records come."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema, as_table, inferred_schema
from gearpy.core.base.key_copy import PIECE
from gearpy.core.window.event_order import Held
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, joined_rows
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.event_gate import EventGate, Waits, content_of, first_key_of

_PLACE: Final = attrgetter("place_ms", "side", "rank", "turn")
_RANK: Final = attrgetter("rank", "turn")
_RANK_OF: Final = attrgetter("rank")


class TableGate(EventGate):
    """Lets rows of tables wait for event time: late ones, or all of them.

    They come in the order in which they would come as rows, and are told at the end of an epoch as
    rows are: a step goes on from them in either form.
    """

    def __init__(
        self,
        context: TaskContext,
        key: Callable[[Any], Any] | None,
        schema: RowSchema,
        *,
        waits: Waits = "all",
    ) -> None:
        super().__init__(context, key, waits=waits)
        self._order = self._tables = _TableOrder(schema)
        self._columns = RowSchema(schema.arrow)

    def take(self, batch: Batch) -> Batch:
        table = as_table(batch.values, self._columns)  # Rows come out of quarantine.
        return super().take(batch.giving(table, Times.of(batch.timestamps)))

    def due(self, watermark_ms: int) -> Iterator[tuple[int, Batch]]:
        found = self._tables.due_rows(watermark_ms, is_inclusive=self._is_alone)
        if found is None:
            return
        is_late = pc.less(found.times, found.places)
        start = 0
        for at in pc.indices_nonzero(is_late).to_pylist():
            if start < at:
                yield MIN_MS, found.part(start, at).batch()
            yield found.places[at].as_py(), found.part(at, at + 1).batch()
            start = at + 1
        if start < len(found):
            yield MIN_MS, found.part(start, len(found)).batch()

    def _divided(self, batch: Batch) -> tuple[Batch | None, Batch]:
        table, times = batch.values, batch.timestamps
        assert type(table) is Table
        assert type(times) is Times
        if times.promised is None:
            return None, batch
        late = pc.less(times.array, times.promised)
        if not late.true_count:
            return None, batch
        in_time = pc.invert(late)
        rest = table.filter(in_time), Times(times.array.filter(in_time))
        held = batch.giving(table.filter(late), times.filter(late))
        return held, Batch(*rest, origin=batch.origin)

    def _put(self, batch: Batch) -> None:
        table, times = batch.values, batch.timestamps
        assert type(table) is Table
        assert type(times) is Times
        self._tables.put(table.batch, times.array, _places_of(times), rank=batch.origin.rank)


class SidesGate(EventGate):
    """Lets rows of tables of two kinds wait for event time, such as those of both sides of a join.

    All wait. Of each side they come in the order in which they would come as rows, in which those
    of the right side are first at one time.

    Args:
        schemas: of the tables of the left and of the right side: the columns of the key, and that
            of records. Of rows, the first field is the number of the side, the second the key.
    """

    def __init__(
        self, context: TaskContext, key: Callable[[Any], Any], schemas: Sequence[RowSchema]
    ) -> None:
        super().__init__(context, key, waits="all")
        last = len(schemas) - 1
        self._tables = [
            _TableOrder(schema, last - at, key_columns=len(schema.arrow) - 1)
            for at, schema in enumerate(schemas)
        ]
        self._order = _Sides(self._tables)

    def hold(self, table: Table, times: Times, side: int, rank: tuple[int, ...]) -> None:
        self._tables[side].put(table.batch, times.array, _places_of(times), rank=rank)

    def load(self, records: Iterable[Held]) -> None:
        self._order.load(records)

    def due_of(self, side: int, watermark_ms: int) -> "HeldRows | None":
        """Take out the rows of a side that event time has passed, in order."""
        return self._tables[side].due_rows(watermark_ms, is_inclusive=False)


@dataclass(slots=True)
class HeldRows:
    """Rows of one rank in the order of their places."""

    rows: pa.RecordBatch
    times: pa.Array
    places: pa.Array
    rank: tuple[int, ...] = ()
    turn: int = 0

    def __len__(self) -> int:
        return len(self.times)

    @property
    def first_ms(self) -> int:
        first: int = self.places[0].as_py()
        return first

    def before(self, until_ms: int) -> int:
        """Return how many of the rows have their place before a time."""
        return bisect_left(range(len(self)), until_ms, key=lambda at: self.places[at].as_py())

    def part(self, start: int, stop: int) -> "HeldRows":
        return self._changed(lambda each: each.slice(start, stop - start), self.turn + start)

    def take(self, order: pa.Array) -> "HeldRows":
        return self._changed(lambda each: each.take(order), self.turn)

    def _changed(self, change: Callable[[Any], Any], turn: int) -> "HeldRows":
        rows, times, places = map(change, (self.rows, self.times, self.places))
        return HeldRows(rows, times, places, self.rank, turn)

    def batch(self) -> Batch:
        return Batch(Table(self.rows), Times(self.times))


class _TableOrder:
    """Keeps rows of tables until event time has passed them; see `EventOrder`."""

    def __init__(self, schema: RowSchema, side: int = 0, *, key_columns: int = 0) -> None:
        self._schema = schema
        self._key_columns = key_columns
        self.side = side
        self._waiting: list[HeldRows] = []
        self._turn = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for held in self._waiting:
            for at in range(0, len(held), PIECE):  # For its size only the first ones are asked.
                some = held.part(at, at + PIECE)
                turns = range(some.turn, some.turn + len(some))
                places, times = some.places.to_pylist(), some.times.to_pylist()
                ranks, rows = repeat(some.rank), self._schema.rows(some.rows)
                yield from zip(places, repeat(self.side), ranks, turns, times, rows, strict=False)

    @property
    def first_ms(self) -> int:
        return min((each.first_ms for each in self._waiting), default=MAX_MS)

    def put(
        self, rows: pa.RecordBatch, times: pa.Array, places: pa.Array, *, rank: tuple[int, ...]
    ) -> None:
        held = _in_order(HeldRows(rows, times, places, rank, self._turn))
        self._waiting.append(held)
        self._turn += len(held)

    def due_rows(self, passed_ms: int, *, is_inclusive: bool) -> HeldRows | None:
        """Take out the rows that event time has passed, in order; all, where it has ended."""
        until_ms = passed_ms + 1 if is_inclusive or passed_ms >= MAX_MS else passed_ms
        due: list[HeldRows] = []
        waiting: list[HeldRows] = []
        for each in self._waiting:
            end = each.before(until_ms)
            if end:
                due.append(each.part(0, end))
            if end < len(each):
                rest = each.part(end, len(each))
                # A few rows of the far future would keep all of them in memory.
                waiting.append(rest if len(rest) > end else rest.take(pa.array(range(len(rest)))))
        self._waiting = waiting
        if not due:
            return None
        due.sort(key=_RANK)
        unknown = sum(1 for each in due if not each.rank)
        if unknown:
            due[:unknown] = [self._by_content(_joined(due[:unknown]))]
        return _in_order(_joined(due))

    def load(self, records: Iterable[Held]) -> None:
        """Take back rows that were held before; they may be of several tasks."""
        known = sorted(records, key=_RANK)
        for rank, alike in groupby(known, key=_RANK_OF):
            held = sorted(alike, key=_PLACE)
            rows = [each.value for each in held]
            try:
                table = self._schema.table(rows)
            except OperatorError:  # They are not quite what a function has promised.
                table = inferred_schema(rows).table(rows)
            times, places = ([getattr(each, name) for each in held] for name in _TIMES)
            self.put(table, pa.array(times, pa.int64()), pa.array(places, pa.int64()), rank=rank)

    def _by_content(self, found: HeldRows) -> HeldRows:
        """Order rows of which nobody knows the partition; those of one time by what they are.

        Those of a side by their keys first, as `EventGate` does, so that few are made rows.
        """
        columns = [found.places, found.times]
        for key in map(found.rows.column, range(self._key_columns)):
            if _has_order(key.type):
                columns += [key.is_valid(), key]  # None comes first.
        table = pa.table(columns, [str(at) for at in range(len(columns))])
        order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
        order = order.to_numpy().copy()
        is_first = np.ones(len(order) + 1, bool)  # Of those that are alike; and behind the last.
        is_first[1:-1] = np.any([_changes(each.take(pa.array(order))) for each in columns], axis=0)
        tied = np.flatnonzero(~(is_first[:-1] & is_first[1:]))
        rows = self._schema.rows(found.rows.take(pa.array(order[tied])))
        contents = [(first_key_of(row), content_of(row)) for row in rows]
        of = is_first.cumsum()[tied].tolist()
        among = sorted(range(len(tied)), key=lambda at: (of[at], contents[at]))
        order[tied] = order[tied[among]]
        return found.take(pa.array(order))


class _Sides:
    """Keeps rows of tables of several kinds; see `EventOrder`."""

    def __init__(self, parts: Sequence[_TableOrder]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return chain.from_iterable(self._parts)

    @property
    def first_ms(self) -> int:
        return min(each.first_ms for each in self._parts)

    def load(self, records: Iterable[Held]) -> None:
        held = list(records)
        for part in self._parts:
            part.load(each for each in held if each.side == part.side)


_TIMES: Final = ("time_ms", "place_ms")


def _places_of(times: Times) -> pa.Array:
    if times.promised is None:
        return times.array
    return pc.max_element_wise(times.array, times.promised)


def _has_order(kind: pa.DataType) -> bool:
    """Tell whether values are in the order of keys of rows; others come as if all were one."""
    is_small = pa.types.is_integer(kind) and kind != pa.uint64()
    return bool(is_small or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _changes(values: pa.Array) -> Any:
    """Return for each value but the first whether it is another one; of None it is not."""
    changes = pc.not_equal(values[:-1], values[1:]).fill_null(False)
    return changes.to_numpy(zero_copy_only=False)


def _in_order(held: HeldRows) -> HeldRows:
    places = held.places
    if pc.all(pc.less_equal(places[:-1], places[1:])).as_py() is not False:
        return held
    return held.take(pc.array_sort_indices(places))  # Equal ones stay as they are.


def _joined(parts: Sequence[HeldRows]) -> HeldRows:
    if len(parts) == 1:
        return parts[0]
    rows = joined_rows([each.rows for each in parts])
    times, places = (
        pa.concat_arrays([getattr(each, name) for each in parts]) for name in ("times", "places")
    )
    return HeldRows(rows, times, places, parts[0].rank, parts[0].turn)
