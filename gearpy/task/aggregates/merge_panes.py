"""Windows of columns that fire early, once more for what is late, or by wall time.

Where tables come from, their rows become parts: some records of a key that fire together, as one
value. Here parts go into panes as records do, so that what fires, when, and what is kept are as
over rows. Results may be tables.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import moments
from gearpy.columns.results import BEFORE, cells_of_results, column_of, result_columns
from gearpy.columns.row_schema import as_table
from gearpy.core.window.aligned import AlignedPanes
from gearpy.core.window.panes import Fired, PanePart
from gearpy.core.window.trigger import EveryEvent, EveryWall, counts_records, delays_of, phases_of
from gearpy.core.window.windows import DisjointWindows, SessionWindows
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch, Origin
from gearpy.messages.table import Table, Times, oldest_of
from gearpy.task.aggregates.columns import (
    FIRST,
    LAST,
    RECORDS,
    ColumnGroups,
    Reader,
    codes_of,
)
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.merge_tables import TableMerge, mergeable
from gearpy.task.aggregates.partials import places_of
from gearpy.task.aggregates.windows import WindowStage
from gearpy.task.api.failure import operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import local_bounds
from gearpy.task.time.pieces import TimePieces, session_numbers
from gearpy.wire.values.records import register_record

register_record(PanePart, "gearpy.PanePart")  # Late ones wait in state.
_KEY: Final = itemgetter(0)
_VALUE: Final = itemgetter(1)
#: Parts that wait are merged when they are so many, and twice as many as that gave.
_MERGED_FROM: Final = 1 << 16


class MergePanesStage(WindowStage):
    """A `WindowStage` whose records are parts; its state is as if it were given the records.

    Args:
        results: the schema of results as a table; None: they are `WindowResult`s.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        groups: ColumnGroups,
        *,
        schema: pa.Schema | None = None,
        results: pa.Schema | None = None,
    ) -> None:
        windows, key_of = groups.windows, _KEY if groups.key else None
        limit = context.limits.batch_records
        super().__init__(context, name, windows, key_of, _of_parts(groups.fold), limit=limit)
        self._reader = Reader(groups)
        self._schema = results
        self._bounds_of = local_bounds(windows)[1]
        self._windows = windows
        self._key_names = tuple(groups.key)
        self._merge = TableMerge(groups)
        early, _ = phases_of(windows.trigger)
        is_merged = schema is not None and mergeable(groups.aggregates, schema)
        is_merged = is_merged and windows.clock == "event"
        #: Parts wait to become fewer, as they make nothing fire before event time does.
        self._keeps = is_merged and not counts_records(early) and not delays_of(early, EveryWall)
        #: Records are counted for a trigger, in one window each.
        self._counts = is_merged and counts_records(early) and isinstance(windows, DisjointWindows)
        self._delays = delays_of(early, EveryEvent)
        self._waiting: list[pa.RecordBatch] = []
        self._oldest_ms = MAX_MS  # Of the parts that wait.
        self._merged_rows = 0

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Take parts; yield the results that they cause. Late ones may have to wait."""
        if not batch.values:
            return
        table, oldest_ms = as_table(batch.values).batch, oldest_of(batch.timestamps, MAX_MS)
        if self._keeps and not batch.has_late:
            self._wait(table, oldest_ms)
        elif self._counts and not batch.has_late and oldest_ms >= self._panes.clock_ms:
            yield from self._counted(table, Times.of(batch.timestamps), batch.origin)
        else:
            self._settle()
            yield from super().process(batch.giving(self._parts(table), [*batch.timestamps]))

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        if self._due_ms <= watermark_ms or len(self._gate):
            self._settle()
        yield from super().on_watermark(watermark_ms)

    def snapshot(self) -> list[int]:
        self._settle()
        return super().snapshot()

    @property
    def open_windows(self) -> int:
        self._settle()
        return super().open_windows

    @property
    def hold_ms(self) -> int:
        return min(super().hold_ms, self._oldest_ms)

    # -- parts that wait ---------------------------------------------------------------------

    def _wait(self, table: pa.RecordBatch, oldest_ms: int) -> None:
        self._waiting.append(table)
        self._oldest_ms = min(self._oldest_ms, oldest_ms)
        if sum(map(len, self._waiting)) > max(_MERGED_FROM, 2 * self._merged_rows):
            self._waiting = [self._fewer(self._waiting)]
            self._merged_rows = len(self._waiting[0])

    @property
    def _due_ms(self) -> int:
        """The event time at which one of the parts that wait may make its window fire."""
        oldest_ms, windows = self._oldest_ms, self._windows
        if oldest_ms == MAX_MS:
            return MAX_MS
        if isinstance(windows, SessionWindows):
            end_ms = oldest_ms + windows.gap_ms
        else:
            end_ms = windows.end_of(windows.starts_of(oldest_ms)[0])
        return min(end_ms, MAX_MS, *(oldest_ms + delay_ms for delay_ms in self._delays))

    def _settle(self) -> None:
        """Put the parts that wait into their panes, where they make nothing fire yet."""
        if not self._waiting:
            return
        table = self._fewer(self._waiting)
        self._waiting, self._oldest_ms, self._merged_rows = [], MAX_MS, 0
        times = table.column(FIRST).to_pylist()
        fired = [*self._fired(Batch(self._parts(table), times))]
        assert not fired, "they have come before event time was there"

    def _fewer(self, tables: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Merge the parts of a key that are in the same windows."""
        table = pa.concat_batches(tables)
        first, last = (table.column(name) for name in (FIRST, LAST))
        keys = [table.column(name) for name in self._key_names]
        if isinstance(self._windows, SessionWindows):
            codes, _ = codes_of(keys, len(table))
            ends = first.to_numpy(), last.to_numpy()
            by = [session_numbers(codes, *ends, self._windows.gap_ms)]
        else:
            pieces = TimePieces(self._windows).numbers(Times(first))
            by = [*([] if pieces is None else [pieces]), *keys]
        return self._joined(table, by)[0]

    def _joined(self, table: pa.RecordBatch, by: list[pa.Array]) -> tuple[pa.RecordBatch, pa.Array]:
        """Merge rows that are alike in some columns; with each comes the place of its last one."""
        places = places_of(len(table))
        asked = [(table.column(FIRST), "min"), (table.column(LAST), "max"), (places, "max")]
        arrays, _, more = self._merge.merged(table, by, [(*each, None) for each in asked])
        *spans, ends = more
        return pa.RecordBatch.from_arrays([*arrays, *spans], schema=table.schema), ends

    # -- records that are counted ------------------------------------------------------------

    def _counted(self, table: pa.RecordBatch, times: Times, origin: Origin) -> Iterator[Batch]:
        """Take records in time, which are a part each, as few parts: up to each that fires.

        What they make fire comes in the order of the records that did.
        """
        now_ms, panes = self._context.now_ms(), self._panes
        assert isinstance(panes, AlignedPanes), "each record is in one window"
        table, ends = self._joined(table, [self._firing_numbers(table, times, now_ms)])
        out: list[tuple[int, Sequence[Fired]]] = []
        first = table.column(FIRST).to_pylist()
        for part, time_ms, end in zip(self._parts(table), first, ends.to_pylist(), strict=True):
            if fired := panes.add(part.key, part, time_ms, now_ms):
                out.append((end, fired))
        out.sort(key=itemgetter(0))
        found = list(chain.from_iterable(fired for _, fired in out))
        for at in range(0, len(found), self._limit):
            yield self._results(found[at : at + self._limit], origin)
        if len(self._gate):
            yield from self._due(panes.clock_ms)

    def _firing_numbers(self, table: pa.RecordBatch, times: Times, now_ms: int) -> pa.Array:
        """Return a number for each record, alike for those of a pane up to one that fires."""
        panes, windows = self._panes, self._windows
        assert isinstance(panes, AlignedPanes), "each record is in one window"
        assert isinstance(windows, DisjointWindows)
        pieces = TimePieces(windows).numbers(times)
        keys = [table.column(name) for name in self._key_names]
        codes, _ = codes_of([*([] if pieces is None else [pieces]), *keys], len(table))
        order = np.argsort(codes, kind="stable")
        is_first = np.append([True], codes[order[1:]] != codes[order[:-1]])
        begins = np.flatnonzero(is_first)
        group = np.cumsum(is_first) - 1
        firsts = pa.array(order[begins])
        of_groups = self._reader.keys(table.take(firsts)), times.take(firsts)
        missing = [
            panes.records_missing(key, time_ms, now_ms)
            for key, time_ms in zip(*of_groups, strict=True)
        ]
        behind = np.arange(len(order)) - begins[group] - np.array(missing)[group]
        run = np.where(behind < 0, 0, 1 + behind // panes.records_missing_anew)
        goes_on = np.append([False], (run[1:] == run[:-1]) & ~is_first[1:])
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.cumsum(~goes_on)
        return pa.array(numbers)

    # -- from and to Python ------------------------------------------------------------------

    def _parts(self, table: pa.RecordBatch) -> list[PanePart]:
        keys, values = self._reader.pairs(table)
        counts, newest = (table.column(name).to_pylist() for name in (RECORDS, LAST))
        return list(map(PanePart, keys, values, counts, newest))

    def _made(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self._schema is None:
            return super()._made(rows)
        try:
            return Table(self._table(self._schema, rows))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise operator_error(self.name, error) from error

    def _table(self, schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = result_columns(schema)
        assert columns is not None, "it is of results"
        keys, values, starts, ends, *behind = map(list, zip(*rows, strict=True))
        local = [] if self._bounds_of is None else map(self._bounds_of, starts, ends)
        found = [*cells_of_results(columns, keys, values), *behind, *zip(*local, strict=True)]
        bounds, fields = [moments(starts), moments(ends)], [*schema][len(BEFORE) :]
        arrays = [column_of(field, [*each]) for field, each in zip(fields, found, strict=True)]
        return pa.RecordBatch.from_arrays([*bounds, *arrays], schema=schema)


def _of_parts(fold: Fold) -> Fold:
    merge = fold.merge
    assert merge is not None, "aggregates of columns can be merged"
    return Fold(
        kind="fold",
        first=_VALUE,
        add=lambda value, part: merge(value, part.value),
        merge=merge,
        result=fold.result,
        records_in=lambda parts: sum(part.records for part in parts),
        takes_parts=True,
    )
