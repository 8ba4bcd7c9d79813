"""The writing half of folders of columns: records or tables to record batches of one schema."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Protocol

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import LogColumns, fields_of, is_record
from gearpy.columns.results import is_of_results, unmarked
from gearpy.columns.row_schema import row_schema_of
from gearpy.columns.values import array_of, check_cast, plain_cells, refuse_unknown
from gearpy.columns.widening import told_type, wider_schema
from gearpy.connectors.files.stamps import each
from gearpy.connectors.files.tables import ARROW_ERRORS, conformed, plain_schema
from gearpy.connectors.folders.writer import PartFormat, RowWriter
from gearpy.core.base.fields import rows_of_pairs
from gearpy.errors import ConfigError
from gearpy.messages.table import Table
from gearpy.task.api.window_result import CoGroup, JoinResult, WindowResult

#: A schema that has this column is of the fields of results of windows, one column for each.
_OWN_FIELD: Final = "start"
#: Columns wait in memory until they make a group, which is what a reader reads at a time.
_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024
_NOT_TOLD: Final[Mapping[str, Any]] = MappingProxyType({})


class ColumnsOf:
    """Makes columns of the records of a sink.

    Results of windows and joins have the columns that `LogColumns` gives them, unless the schema
    has those of their own fields. Without a schema it has that of all records so far: it grows.
    """

    def __init__(self, name: str, schema: pa.Schema | None) -> None:
        self._name = name
        self._given = schema
        self.is_given = schema is not None
        self._results: LogColumns | None = None  # There was a result of a window or join.
        self.schema = schema
        self.keys: Mapping[str, Any] = {}  #: The columns of keys, as `LogColumns` takes them.
        self.fields: Mapping[str, Any] = {}  #: Types of others.

    def batch_of(self, records: Sequence[Any]) -> pa.RecordBatch:
        before = self.schema
        are_results = False
        if type(records) is Table and is_of_results(records.batch.schema):
            are_results = True
        elif type(records) is Table:
            batch = self._of_table(records)
            if batch is not None:
                return batch
            self.schema = before
        if are_results or (
            isinstance(next(iter(records), None), WindowResult | JoinResult | CoGroup)
            and has_result_columns(self.schema)
        ):
            if self._results is None:
                self._results = LogColumns(self._name, schema=self._given, keys=self.keys)
                self._results.fields = self.fields
                if self._given is None and self.schema is not None:
                    self._results.adopt(self.schema, may_grow=True)
            batch = self._results.batch_of(records)
            self.schema = batch.schema
            return batch
        records = list(records)
        try:
            return self._of_records(records)
        except ARROW_ERRORS:
            self.schema = before
            try:
                each(self._name, lambda one: self._of_records([one]), records)
            finally:
                self.schema = before
            raise

    def _of_records(self, records: list[Any]) -> pa.RecordBatch:
        records = [*rows_of_pairs(records)]
        kinds = {type(record): record for record in records}
        for kind, example in kinds.items():
            if not is_record(example):
                raise TypeError(
                    f"{kind.__name__} has no fields: map it to a dict, dataclass or NamedTuple "
                    "before"
                )
        cells: dict[str, list[Any]] = {}
        if records:
            cells = fields_of(records if len(kinds) == 1 else plain_cells(records))
        if self.schema is None:
            self.schema = _schema_of(cells, self.fields)
        try:
            return _batch_of(cells, self.schema, len(records))
        except ARROW_ERRORS:
            wide = self.schema
            if self._given is None:
                with suppress(ValueError):  # The error at hand tells it better.
                    wide = wider_schema(self.schema, _schema_of(cells))
            if wide.equals(self.schema):
                raise
        self.schema = wide
        return _batch_of(cells, wide, len(records))

    def _of_table(self, table: Table) -> pa.RecordBatch | None:
        """Return its columns; None if a row does not fit, which is found one by one."""
        batch = table.batch.replace_schema_metadata(unmarked(table.batch.schema).metadata)
        if self.schema is None:
            self.schema = plain_schema(batch.schema)
        try:
            if self._given is None:
                self.schema = wider_schema(self.schema, plain_schema(batch.schema))
            refuse_unknown(batch.schema.names, self.schema.names)
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

    def expect(self, keys: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self.keys, self.fields = keys, fields

    def snapshot(self) -> bytes | None:
        return None if self.schema is None else self.schema.serialize().to_pybytes()

    def restore(self, state: bytes | None) -> None:
        if self.schema is None and state is not None:
            self.schema = pa.ipc.read_schema(pa.py_buffer(state))


def has_result_columns(schema: pa.Schema | None) -> bool:
    """Tell whether results of windows have their columns; else they have those of their fields."""
    return schema is None or _OWN_FIELD not in schema.names


def _schema_of(cells: dict[str, list[Any]], told: Mapping[str, Any] = _NOT_TOLD) -> pa.Schema:
    if not cells:
        raise ValueError("there are no fields in it")
    fields = [(name, told_type(name, column, told.get(name))) for name, column in cells.items()]
    return pa.schema(fields)


def _batch_of(cells: dict[str, list[Any]], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    refuse_unknown(cells, schema.names)
    nothing, columns = [None] * rows, []
    for field in schema:
        try:
            columns.append(array_of(field, cells.get(field.name, nothing)))
        except ARROW_ERRORS as error:
            raise ValueError(f"field {field.name!r} is {field.type}: {error}") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class ColumnWriter(Protocol):
    """Writes tables into one file, as the writers of pyarrow do."""

    def write_table(self, table: pa.Table, size: int, /) -> None: ...

    def close(self) -> None: ...


class ColumnFormat(ColumnsOf, PartFormat):
    """`PartFormat` of files of columns, all with one schema; None as schema to find it out."""

    def __init__(
        self,
        name: str,
        ending: str,
        schema: pa.Schema | None,
        begin: Callable[[ColumnsOf, BinaryIO], RowWriter],
    ) -> None:
        super().__init__(name, schema)
        self.ending = ending
        self._begin = begin

    def begin(self, file: BinaryIO) -> RowWriter:
        return self._begin(self, file)


class WaitingRows(RowWriter):
    """The rows of one file, which wait for others until they are worth a group."""

    def __init__(self, columns: ColumnsOf, begin: Callable[[pa.Schema], ColumnWriter]) -> None:
        self._columns = columns
        self._begin = begin
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0  # Those in `_waiting`.
        self._bytes = 0
        self._writer: ColumnWriter | None = None
        self._schema: pa.Schema | None = None  # The file has it when it has rows.

    def write(self, values: Sequence[Any]) -> bool:
        batch = self._columns.batch_of(values)
        if self._schema is not None and not batch.schema.equals(self._schema):
            return False
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write_group()
        return True

    def finish(self) -> None:
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()

    def _write_group(self) -> None:
        if self._schema is None:
            self._schema = self._columns.schema
        assert self._schema is not None, "records come first"
        table = pa.Table.from_batches([conformed(batch, self._schema) for batch in self._waiting])
        self._waiting, self._rows, self._bytes = [], 0, 0
        if self._writer is None:
            self._writer = self._begin(table.schema)
        self._writer.write_table(table.combine_chunks(), table.num_rows)


def checked_schema(name: str, schema: Any) -> pa.Schema | None:
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    try:
        return row_schema_of(schema).arrow
    except ConfigError as error:
        raise ConfigError(
            f"{name}: schema is {schema!r:.100}, need a pyarrow.Schema: {error}"
        ) from error
