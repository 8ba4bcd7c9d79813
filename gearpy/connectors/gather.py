"""A sink that keeps the first or the last records in memory, as they come: rows or columns."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.fields import fields_of, is_record
from gearpy.columns.log_columns import LogColumns
from gearpy.columns.row_schema import RowSchema
from gearpy.connectors.files.tables import conformed
from gearpy.errors import ConfigError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table
from gearpy.task.api.interfaces import Sink, SinkWriter


class GatherSink(Sink):
    """Keeps the first or last records of an application of this process.

    Runs on: threads of tasks write, any thread reads.
    """

    columnar = True
    of_program = True

    def __init__(self, *, first: int | None = None, last: int | None = None) -> None:
        self._first = first
        self._last = last
        self._batches: deque[Batch] = deque()
        self._kept = 0
        self._lock = threading.Lock()

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        return _Writer(self)

    @property
    def is_full(self) -> bool:
        return self._first is not None and self._kept >= self._first

    @property
    def records(self) -> list[Any]:
        return [value for batch in self._found() for value in batch.values]

    def table(self, operator: str, schema: RowSchema | None = None) -> pa.Table:
        """Return the records as columns, the same ones that a window log of the stream has."""
        batches = self._found()
        if not batches:
            if schema is None:
                raise ConfigError(
                    "there is no record, so nothing tells the columns: give the source a schema, "
                    "or wait longer for one"
                )
            return schema.arrow.empty_table()
        columns = LogColumns(operator)
        if all(type(batch.values) is Table for batch in batches):
            found = [columns.batch_of(each.values, each.timestamps) for each in batches]
            return pa.Table.from_batches([conformed(each, columns.schema) for each in found])
        values, unknown = _typed([value for batch in batches for value in batch.values])
        times = [time for batch in batches for time in batch.timestamps]
        table = pa.Table.from_batches([columns.batch_of(values, times)])
        for place, name in unknown.items():
            table = table.add_column(place, name, pa.nulls(len(values)))
        return table

    def take(self, batch: Batch) -> None:
        with self._lock:
            if self._first is not None and len(batch.values) > self._first - self._kept:
                batch = _part(batch, slice(0, self._first - self._kept))
            if not len(batch.values):
                return
            is_table = type(batch.values) is Table
            kept = batch if is_table else Batch(list(batch.values), [*map(int, batch.timestamps)])
            self._batches.append(kept)
            self._kept += len(kept.values)
            while (
                self._last is not None and self._kept - len(self._batches[0].values) >= self._last
            ):
                self._kept -= len(self._batches.popleft().values)

    def _found(self) -> Sequence[Batch]:
        with self._lock:
            batches, over = [*self._batches], self._kept - (self._last or self._kept)
        if over > 0:
            batches[0] = _part(batches[0], slice(over, None))
        return batches


class _Writer(SinkWriter):
    """Writes what one task has."""

    def __init__(self, sink: GatherSink) -> None:
        self._sink = sink

    def write_batch(self, batch: Batch) -> None:
        self._sink.take(batch)


def _part(batch: Batch, part: slice) -> Batch:
    return Batch(batch.values[part], batch.timestamps[part])


def _typed(values: list[Any]) -> tuple[list[Any], dict[int, str]]:
    """Return records with fields whose types can be told, and the other fields by their places.

    A column of nothing but None is the rule among a few records.
    """
    if not any(map(is_record, values)):
        return [{"value": value} for value in values], {}
    if any(isinstance(value, tuple) for value in values):
        return values, {}
    cells = fields_of(values)
    unknown = {
        place: name
        for place, (name, column) in enumerate(cells.items())
        if all(cell is None for cell in column)
    }
    if not unknown or len(unknown) == len(cells):
        return values, {}
    known = [(name, column) for name, column in cells.items() if name not in unknown.values()]
    names = [name for name, _ in known]
    rows = zip(*(column for _, column in known), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows], unknown
