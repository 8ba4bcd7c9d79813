"""The writing half of folders of columns: records or tables to record batches of one schema."""

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final, Protocol

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.fields import fields_of, is_record
from gearpy.columns.log_columns import LogColumns
from gearpy.columns.row_schema import row_schema_of
from gearpy.columns.values import array_of, check_cast, plain_cells, refuse_unknown
from gearpy.connectors.files.stamps import each
from gearpy.connectors.files.tables import ARROW_ERRORS, conformed, plain_schema
from gearpy.connectors.folders.writer import RowWriter
from gearpy.errors import ConfigError
from gearpy.messages.table import Table
from gearpy.task.api.window_result import CoGroup, JoinResult, WindowResult

#: A schema that has this column is of the fields of results of windows, one column for each.
_OWN_FIELD: Final = "start"
#: Columns wait in memory until they make a group, which is what a reader reads at a time.
_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024


class ColumnsOf:
    """Makes columns of the records of a sink, all with one schema.

    Results of windows and joins have the columns that `LogColumns` gives them, unless the schema
    has those of their own fields.

    Args:
        name: of the sink, for errors.
        schema: None to take that of the first records.
    """

    def __init__(self, name: str, schema: pa.Schema | None) -> None:
        self._name = name
        self._given = schema
        self._results: LogColumns | None = None  # Of windows and joins, when there was one.
        self.schema = schema

    def batch_of(self, records: Sequence[Any]) -> pa.RecordBatch:
        """Return the columns of some records, or of a table.

        Raises:
            OperatorError: one does not fit.
        """
        if type(records) is Table:
            batch = self._of_table(records)
            if batch is not None:
                return batch
        if isinstance(next(iter(records), None), WindowResult | JoinResult | CoGroup) and (
            self.schema is None or _OWN_FIELD not in self.schema.names
        ):
            return self._of_results(records)
        records, schema = list(records), self.schema
        try:
            cells = _cells_of(records)
            schema = schema or _schema_of(cells)
            batch = _batch_of(cells, schema, len(records))
        except ARROW_ERRORS:
            if schema is None:  # The first record decides.
                firsts = records[:1]
                (schema,) = each(self._name, lambda one: _schema_of(_cells_of([one])), firsts)
            each(self._name, lambda one: _batch_of(_cells_of([one]), schema, 1), records)
            raise
        self.schema = schema
        return batch

    def _of_results(self, results: Sequence[Any]) -> pa.RecordBatch:
        """Return the columns of results of windows and joins, as window logs have them."""
        if self._results is None:
            self._results = LogColumns(self._name, schema=self._given)
            if self._given is None and self.schema is not None:
                self._results.adopt(self.schema)
        batch = self._results.batch_of(results)
        self.schema = batch.schema
        return batch

    def _of_table(self, table: Table) -> pa.RecordBatch | None:
        """Return its columns; None if a row does not fit, which is found one by one."""
        batch = table.batch
        if self.schema is None:
            self.schema = plain_schema(batch.schema)
        if not set(batch.schema.names) <= set(self.schema.names):
            return None
        try:
            for column, kind in zip(batch.schema.names, batch.schema.types, strict=True):
                check_cast(kind, self.schema.field(column).type)
            fitting = conformed(batch, self.schema)
        except ARROW_ERRORS:
            return None
        has_gaps = any(
            column.null_count and not field.nullable
            for field, column in zip(self.schema, fitting.columns, strict=True)
        )
        return None if has_gaps else fitting

    def snapshot(self) -> bytes | None:
        """Return the schema as Arrow writes it; None if there was no record yet."""
        return None if self.schema is None else self.schema.serialize().to_pybytes()

    def restore(self, state: bytes | None) -> None:
        """Keep to the schema of earlier files, unless one was given."""
        if self.schema is None and state is not None:
            self.schema = pa.ipc.read_schema(pa.py_buffer(state))


def _cells_of(records: list[Any]) -> dict[str, list[Any]]:
    """Return the fields of records by name.

    Raises:
        TypeError: one has no fields.
    """
    kinds = {type(record): record for record in records}
    for kind, example in kinds.items():
        if not is_record(example):
            raise TypeError(
                f"{kind.__name__} has no fields: map it to a dict, dataclass or NamedTuple before"
            )
    return fields_of(records if len(kinds) == 1 else plain_cells(records)) if records else {}


def _schema_of(cells: dict[str, list[Any]]) -> pa.Schema:
    if not cells:
        raise ValueError("there are no fields in it")
    return pa.schema([pa.field(name, pa.array(column).type) for name, column in cells.items()])


def _batch_of(cells: dict[str, list[Any]], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    refuse_unknown(cells, schema.names)
    nothing = [None] * rows
    columns = [_column(field, cells.get(field.name, nothing)) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(field: pa.Field, cells: list[Any]) -> pa.Array:
    try:
        return array_of(field, cells)
    except ARROW_ERRORS as error:
        raise ValueError(f"field {field.name!r} is {field.type}: {error}") from error


class ColumnWriter(Protocol):
    """Writes tables into one file, as the writers of pyarrow do."""

    def write_table(self, table: pa.Table, size: int, /) -> None:
        """Write a table, in groups of so many rows."""
        ...

    def close(self) -> None:
        """Write the end of the file."""
        ...


class ColumnFormat:
    """`PartFormat` of files of columns, all with one schema.

    Args:
        name: of the sink, for errors.
        ending: of the names of files.
        schema: None to take that of the first records.
        begin: begins to write a file, given what makes columns of its records.
    """

    def __init__(
        self,
        name: str,
        ending: str,
        schema: pa.Schema | None,
        begin: Callable[[ColumnsOf, BinaryIO], RowWriter],
    ) -> None:
        self.ending = ending
        self._columns = ColumnsOf(name, schema)
        self._begin = begin

    def begin(self, file: BinaryIO) -> RowWriter:
        """See `PartFormat`."""
        return self._begin(self._columns, file)

    def snapshot(self) -> bytes | None:
        """See `PartFormat`."""
        return self._columns.snapshot()

    def restore(self, state: bytes | None) -> None:
        """See `PartFormat`."""
        self._columns.restore(state)


class WaitingRows:
    """The rows of one file, which wait for others until they are worth a group.

    Args:
        columns: makes columns of records.
        begin: begins to write the file, given the schema.
    """

    def __init__(self, columns: ColumnsOf, begin: Callable[[pa.Schema], ColumnWriter]) -> None:
        self._columns = columns
        self._begin = begin
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0  # That wait.
        self._bytes = 0
        self._writer: ColumnWriter | None = None

    def write(self, values: Sequence[Any]) -> None:
        """Let the records wait."""
        batch = self._columns.batch_of(values)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write_group()

    def finish(self) -> None:
        """Write the waiting rows, and the end of the file."""
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._rows, self._bytes = [], 0, 0
        if self._writer is None:
            self._writer = self._begin(table.schema)
        self._writer.write_table(table.combine_chunks(), table.num_rows)


def checked_schema(name: str, schema: Any) -> pa.Schema | None:
    """Return the schema that a sink was given, as Arrow's.

    Raises:
        ConfigError: it is none.
    """
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    try:
        return row_schema_of(schema).arrow
    except ConfigError as error:
        raise ConfigError(
            f"{name}: schema is {schema!r:.100}, need a pyarrow.Schema: {error}"
        ) from error
