"""A sink that keeps the first or the last records in memory, as they come: rows or columns."""

import threading
from collections import deque
from collections.abc import Sequence
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import (
    EVENT_TIME,
    LogColumns,
    columns_of_pairs,
    fields_of,
    is_record,
)
from gearpy.columns.results import pair_keys, result_columns, unmarked
from gearpy.columns.row_schema import RowSchema
from gearpy.columns.widening import wider_schema
from gearpy.connectors.files.tables import conformed
from gearpy.core.base.fields import rows_of_pairs
from gearpy.distribution import require
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Sink, SinkContext, SinkWriter
from gearpy.task.api.window_result import rows_in

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl


def to_table() -> "GatherSink":
    """Gather the records as columns in the memory of this process.

    What it returns is the sink, and has the table: `to_arrow`, `to_pandas` and `to_polars` give
    what has come so far. Libraries that take Arrow by its interface for Python take it as it
    is: ``polars.DataFrame(found)``, ``pyarrow.table(found)``, ``duckdb.sql("from found")``.

    The columns are those of `Stream.to_arrow`. As with `to_list`, all records are in this process
    with embedded runs, also on several processes, and on a cluster in that of a task; after a
    failure records come again that are there already.

    Example:
        >>> import gearpy as gp
        >>> app, found = gp.StreamApp("squares"), gp.to_table()
        >>> app.read(gp.rows([{"n": 2}, {"n": 3}])).write(found)
        >>> _ = gp.run(app)
        >>> found.to_arrow().column("n").to_pylist()
        [2, 3]
    """
    return GatherSink("to_table")


class GatherSink(Sink):
    """A sink that keeps records in memory, and gives them as a table; see `to_table`.

    Runs on: threads of tasks write, any thread reads.

    Args:
        name: who asks for the table, for errors.
        first: how many records to keep; all if not given.
        last: how many of the last ones to keep.
    """

    columnar = True
    of_program = True

    def __init__(
        self,
        name: str,
        *,
        first: int | None = None,
        last: int | None = None,
    ) -> None:
        self._name = name
        self.schema: RowSchema | None = None  #: Of the records, where the program tells it.
        self._first = first
        self._last = last
        self._batches: deque[Batch] = deque()
        self._kept = 0
        self._lock = threading.Lock()

    @property
    def description(self) -> str:
        return self._name

    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        return _Writer(self)

    @property
    def is_full(self) -> bool:
        return self._first is not None and self._kept >= self._first

    @property
    def records(self) -> list[Any]:
        return [value for batch in self._found() for value in rows_in(batch.values, self.schema)]

    def to_arrow(self) -> pa.Table:
        """Return the records as a `pyarrow.Table`, with the columns that a window log has.

        Columns that come as such have the types that they had, also those without a twin in Spark.

        Raises:
            ConfigError: there are no records, or none in a column, and nothing else tells the
                types.
            OperatorError: records do not fit to each other.
        """
        batches = self._found()
        if not batches:
            if self.schema is None:
                raise ConfigError(
                    f"{self._name}: there is no record, so nothing tells the columns: give the "
                    "source a schema, or wait longer for a record"
                )
            batches = [Batch(Table(RowSchema(self.schema.arrow).table([])), Times.of([]))]
        if all(type(batch.values) is Table for batch in batches):
            try:
                found = [_with_times(each) for each in batches]
                schema = reduce(wider_schema, (each.schema for each in found))
                return pa.Table.from_batches([conformed(each, schema) for each in found])
            except (ValueError, pa.ArrowException) as error:
                raise OperatorError(operator=self._name, cause=str(error)) from error
        columns = LogColumns(self._name)
        values, unknown = _typed(rows_of_pairs(self.records))
        times = [time for batch in batches for time in batch.timestamps]
        table = pa.Table.from_batches([columns.batch_of(values, times)])
        for place, name in unknown.items():
            table = table.add_column(place, name, pa.nulls(len(values)))
        return table

    def to_pandas(self) -> "pd.DataFrame":
        """Return the records as a `pandas.DataFrame`, with the columns of `to_arrow`.

        Raises:
            ConfigError: see `to_arrow`; or pandas is not installed.
            OperatorError: records do not fit to each other.
        """
        require("to_pandas (to_arrow does without)", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Return the records as a `polars.DataFrame`, with the columns of `to_arrow`.

        Raises:
            ConfigError: see `to_arrow`; or Polars is not installed.
            OperatorError: records do not fit to each other.
        """
        require("to_polars (to_arrow does without)", "polars")
        frame: pl.DataFrame = import_module("polars").DataFrame(self.to_arrow())
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

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

    def begin(self, context: SinkContext) -> None:
        self._sink.schema = context.schema

    def write_batch(self, batch: Batch) -> None:
        self._sink.take(batch)


def _part(batch: Batch, part: slice) -> Batch:
    return Batch(batch.values[part], batch.timestamps[part])


def _with_times(batch: Batch) -> pa.RecordBatch:
    """Return columns as they are, which may be of types that no window log has, and the times."""
    assert type(batch.values) is Table
    rows = batch.values.batch
    if (key := pair_keys(rows.schema)) is not None:
        return pa.record_batch(columns_of_pairs(rows, key))
    has_times = EVENT_TIME in rows.schema.names or result_columns(rows.schema) is not None
    rows = rows.replace_schema_metadata(unmarked(rows.schema).metadata)
    if has_times:
        return rows
    times = Times.of(batch.timestamps).array.cast(pa.timestamp("ms", "UTC"))
    return rows.append_column(EVENT_TIME, times.cast(pa.timestamp("us", "UTC")))


def _typed(values: Sequence[Any]) -> tuple[Sequence[Any], dict[int, str]]:
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
