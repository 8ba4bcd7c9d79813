"""The stage that joins two streams in columns, by records whose event times are near each other.

What is kept of a side is in runs, each sorted by key and time; so all partners of a table are found
by a few binary searches.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.join.sides import LEFT, SIDES
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, joined_rows
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.joins.group_cells import cells_of_groups, rows_of_cells
from gearpy.task.joins.join_schema import SIDE_NAMES, JoinSchema
from gearpy.task.joins.runs import (
    PAIRS,
    Array,
    Numbers,
    SortedRun,
    add_run,
    less,
    more,
    paired,
)
from gearpy.task.joins.sides_stage import SidesStage
from gearpy.task.joins.streams import JoinSpec

_TIME: Final = "#time"
#: The namespace of records that wait for a partner; others are in those of numbers.
_WAITING: Final = 0


class IntervalTablesStage(SidesStage):
    """Joins two streams of tables; yields pairs with ``left - before <= right <= left + after``.

    They are those of `IntervalJoin`, as are the records that come out alone. What is kept is told
    once, at the end of the epoch in which it came, as one table for each group of keys; but
    records that wait for a partner, lest they come out alone, are told at the end of each epoch.
    """

    def __init__(self, context: TaskContext, name: str, spec: JoinSpec, schema: JoinSchema) -> None:
        super().__init__(context, name, spec, schema)
        assert spec.interval_ms is not None, "of other joins there is no form for columns"
        before_ms, after_ms = spec.interval_ms
        # Of a record of the left side, and of the right one: how much older and newer partners are.
        self._older_ms = (before_ms, after_ms)
        self._newer_ms = (after_ms, before_ms)
        self._types = [schema.arrow.field(side).type for side in SIDE_NAMES]
        self._description = f"{spec.description}, of columns"
        self._runs: tuple[list[SortedRun], list[SortedRun]] = ([], [])
        self._told: list[tuple[Any, list[int], int]] = []  # With the last time of need.
        self._told_waiting: dict[str, list[int]] = {}
        self._chunk = 0
        self._waits_from_ms = MAX_MS

    def process(self, batch: Batch) -> Iterator[Batch]:
        """Yield each pair whose second record is among these; late records are left out."""
        table, times = batch.values, Times.of(batch.timestamps)
        assert type(table) is Table
        own = times.array.to_numpy()
        late = own < self._watermark_ms
        if times.promised is not None:
            late |= own < times.promised.to_numpy()
        if late.any():
            self._context.counters.late_records += int(late.sum())
            table, own = table.filter(pa.array(~late)), own[~late]
        if not len(own):
            return
        side = SIDE_NAMES.index(table.batch.schema.names[-1])
        run = self._codes.run(table.batch, own, is_waiting=self._comes_alone[side])
        from_ms = less(run.times, self._older_ms[side])
        until_ms = more(run.times, self._newer_ms[side] + 1)
        for other in self._runs[1 - side]:
            yield from self._pairs(side, run, other, from_ms, until_ms)
        add_run(self._runs[side], run, self._needed_from_ms(side))
        self._note_hold()

    def _pairs(
        self, side: int, run: SortedRun, other: SortedRun, from_ms: Numbers, until_ms: Numbers
    ) -> Iterator[Batch]:
        if other.newest_ms < int(from_ms.min()) or other.oldest_ms >= int(until_ms.max()):
            return
        low, high = (
            np.searchsorted(other.order, other.places(run.codes, times))
            for times in (from_ms, until_ms)
        )
        counts = high - low
        has_some = np.flatnonzero(counts)
        low, counts = low[has_some], counts[has_some]
        run.is_waiting[has_some] = False
        for at, theirs in paired(low, counts):
            mine = has_some[at]
            other.is_waiting[theirs] = False
            rows = run.rows.take(run.at[mine])
            sides = [rows.column(-1), other.rows.column(-1).take(other.at[theirs])]
            both = sides if side == LEFT else sides[::-1]
            yield self._results(rows, both, run.times[mine], other.times[theirs])

    def _results(
        self, keyed: pa.RecordBatch, sides: list[Any], mine: Numbers, theirs: Numbers
    ) -> Batch:
        newest = np.maximum(mine, theirs)
        bounds = pa.array(np.minimum(mine, theirs)), pa.array(newest + 1)
        table = self._schema.made([*keyed.columns[:-1], *sides, *bounds])
        return Batch(Table(table), Times(pa.array(newest)))

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        """Yield the records that find no partner any more, if they come alone; forget them."""
        self._watermark_ms = watermark_ms
        for side in SIDES:
            for run in self._runs[side] if self._comes_alone[side] else ():
                yield from self._alone(side, run)
            self._runs[side][:] = [
                run for run in self._runs[side] if self._needed_ms(side, run) >= watermark_ms
            ]
        runs = [run for runs in self._runs for run in runs]
        if (moved := self._codes.forget([run.codes for run in runs])) is not None:
            for run in runs:
                run.recoded(moved)
        self._note_hold()

    def _alone(self, side: int, run: SortedRun) -> Iterator[Batch]:
        is_over = self._watermark_ms == MAX_MS
        until_ms = MAX_MS if is_over else self._needed_from_ms(side)
        over = np.flatnonzero(run.is_waiting & (run.times < until_ms))
        run.is_waiting[over] = False
        for at in range(0, len(over), PAIRS):
            some = over[at : at + PAIRS]
            rows, times = run.rows.take(run.at[some]), run.times[some]
            sides = [pa.nulls(len(some), kind) for kind in self._types]
            sides[side] = rows.columns[-1]
            yield self._results(rows, sides, times, times)

    def _note_hold(self) -> None:
        if any(self._comes_alone):
            holds = (run.hold_ms for runs in self._runs for run in runs)
            self._waits_from_ms = min(holds, default=MAX_MS)

    @property
    def _first_ms(self) -> int:
        return self._waits_from_ms

    def _needed_from_ms(self, side: int) -> int:
        """Return the time of the oldest records of a side that may find a partner."""
        return max(self._watermark_ms - self._newer_ms[side], MIN_MS)

    def _needed_ms(self, side: int, run: SortedRun) -> int:
        return min(run.newest_ms + self._newer_ms[side], MAX_MS - 1)

    # -- state and epochs ----------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        gone = [each for each in self._told if each[2] < self._watermark_ms]
        self._told = [each for each in self._told if each[2] >= self._watermark_ms]
        for namespace, groups, _ in gone:
            self._kept.delete(groups, namespace)
        self._chunk += 1
        for side, name in enumerate(SIDE_NAMES):
            from_ms = self._needed_from_ms(side)
            runs = [each for run in self._runs[side] if (each := run.since(from_ms))]
            self._runs[side][:] = runs
            if keys := self._told_waiting.pop(name, []):
                self._kept.delete(keys, (name, _WAITING))
            waiting = [(run, run.is_waiting) for run in runs]
            if self._comes_alone[side] and (keys := self._tell(waiting, (name, _WAITING))):
                self._told_waiting[name] = keys
            fresh = [(run, ~(run.is_told | run.is_waiting)) for run in runs]
            if keys := self._tell(fresh, (name, self._chunk)):
                last_ms = max(self._needed_ms(side, run) for run in runs)
                self._told.append(((name, self._chunk), keys, last_ms))
            for run, which in fresh:
                run.is_told |= which
        return [self._description, self._watermark_ms]

    def _tell(self, runs: list[tuple[SortedRun, Array]], namespace: Any) -> list[int]:
        """Give some records of runs to keyed state; return the keys of their cells."""
        parts = [
            run.rows.take(run.at[which]).append_column(_TIME, pa.array(run.times[which]))
            for run, which in runs
            if which.any()
        ]
        if not parts:
            return []
        codes = np.concatenate([run.codes[which] for run, which in runs])
        cells = cells_of_groups(joined_rows(parts), self._codes.groups(codes))
        self._kept.put_all([*cells], [*cells.values()], namespace)
        return [*cells]

    def restore(self, state: list[Any] | None) -> None:
        super().restore(state)
        for namespace, cells in self._kept.restored():
            name, chunk = namespace
            side, is_waiting = SIDE_NAMES.index(name), chunk == _WAITING
            rows = rows_of_cells(cells)
            times = rows.column(_TIME).to_numpy()
            rows = rows.drop_columns([_TIME])
            run = self._codes.run(rows, times, is_waiting=is_waiting, is_told=not is_waiting)
            if is_waiting:
                self._told_waiting[name] = list(cells)
            else:
                self._chunk = max(self._chunk, chunk)
                self._told.append((namespace, list(cells), self._needed_ms(side, run)))
            add_run(self._runs[side], run, MIN_MS)
        self._note_hold()

    def _tables(self) -> list[pa.RecordBatch]:
        return [run.rows for runs in self._runs for run in runs]

    def _tell_again(self) -> None:
        self._told, self._told_waiting = [], {}
        for runs in self._runs:
            for run in runs:
                run.is_told[:] = False
