"""Windows of columns that fire early, once more for what is late, or by wall time.

Where tables come from, their rows become parts: some records of a key that fire together, as one
value. Here parts go into panes as records do, so that what fires, when, and what is kept are as
over rows. Results may be tables.
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import moments
from gearpy.columns.results import BEFORE, result_columns
from gearpy.columns.row_schema import as_table
from gearpy.columns.values import array_of
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.panes import PanePart
from gearpy.messages.data import Batch
from gearpy.messages.table import Table
from gearpy.task.aggregates.columns import (
    LAST,
    RECORDS,
    Aggregates,
    ColumnarWindows,
    Reader,
)
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.rows import fold_of, fold_of_one
from gearpy.task.aggregates.windows import WindowStage
from gearpy.task.api.failure import operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import local_bounds
from gearpy.wire.values.records import register_record

register_record(PanePart, "gearpy.PanePart")  # Late ones wait in state.
_KEY: Final = itemgetter(0)
_VALUE: Final = itemgetter(1)


class MergePanesStage(WindowStage):
    """A `WindowStage` whose records are parts; its state is as if it were given the records.

    Args:
        windows: as at the other end, like all that follows.
        key: names of its columns.
        results: the schema of results as a table; None: they are `WindowResult`s.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        windows: ColumnarWindows,
        key: Sequence[str],
        aggregates: Aggregates,
        *,
        results: pa.Schema | None = None,
    ) -> None:
        limit = context.limits.batch_records
        super().__init__(
            context, name, windows, _KEY if key else None, _fold_of_parts(aggregates), limit=limit
        )
        self._reader = Reader(tuple(key), aggregates)
        self._schema = results
        self._bounds_of = local_bounds(windows)[1]

    def process(self, batch: Batch) -> Iterator[Batch]:
        if not batch.values:
            return iter(())
        table = as_table(batch.values).batch
        keys, values = self._reader.pairs(table)
        counts, newest = (table.column(name).to_pylist() for name in (RECORDS, LAST))
        parts = list(map(PanePart, keys, values, counts, newest))
        return super().process(batch.giving(parts, list(batch.timestamps)))

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
        parts = [keys] if len(columns.key) == 1 else zip(*keys, strict=True) if columns.key else ()
        cells = [values] if columns.is_single else [[e[n] for e in values] for n in columns.value]
        local = [] if self._bounds_of is None else map(self._bounds_of, starts, ends)
        found = [*parts, *cells, *behind, *zip(*local, strict=True)]
        bounds, fields = [moments(starts), moments(ends)], [*schema][len(BEFORE) :]
        arrays = [array_of(field, [*each]) for field, each in zip(fields, found, strict=True)]
        return pa.RecordBatch.from_arrays([*bounds, *arrays], schema=schema)


def _fold_of_parts(aggregates: Aggregates) -> Fold:
    fold = fold_of_one(aggregates) if isinstance(aggregates, Aggregate) else fold_of(aggregates)
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
