"""Exactly once into a table of a database: rows are kept until their epoch is complete.

What is one for all databases is here: who owns the rows, which epoch is written, what becomes of
records that do not fit, and how a database that is away is waited for. A subclass speaks to one.
"""

import json
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, TypedDict, TypeVar
from uuid import UUID

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.columns.log_columns import EVENT_TIME, LogColumns
from gearpy.columns.row_schema import SchemaLike, row_schema_of
from gearpy.columns.values import cast_column, refuse_unknown
from gearpy.connectors.epoch_writer import EpochOwner, EpochRecords, EpochWriter
from gearpy.connectors.files.tables import conformed
from gearpy.core.handover.ledger import LATEST, LedgerEntry
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table
from gearpy.task.api.interfaces import PacedWriter, Sink, SinkContext

_log = logging.getLogger(__name__)
#: Tells which epoch a row is of, so that it can be taken back; only in tables that have it.
EPOCH_COLUMN: Final = "gearpy_epoch"
#: The table that keeps the ledger.
OWNERS: Final = "gearpy_owners"
_RETRY_S: Final = 1.0
#: The texts in columns of these kinds have a form.
_PARSERS: Final[Mapping[str, Any]] = {"json": json.loads, "jsonb": json.loads, "uuid": UUID}
#: Columns that records of windows have beside their own; written if the table has them.
_ADDED: Final = frozenset(
    {
        "window_start",
        "window_end",
        "firing",
        "timing",
        "retracts",
        "local_start",
        "local_end",
        EVENT_TIME,
    }
)


class TableConnection(Protocol):
    """A connection of a database's own library."""

    def close(self) -> Any: ...


ConnectionT = TypeVar("ConnectionT", bound=TableConnection)


class TableColumn(NamedTuple):
    """A column of a table: name, type in the database, Arrow field, and who fills it."""

    name: str
    kind: str
    field: pa.Field
    is_filled: bool = False  #: The database fills it, if nobody else does.
    chars_max: int = 0  #: The most characters of a text; 0: any number.


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTable:
    """The table of a sink."""

    name: str
    upsert: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    key: tuple[str, ...] = ()
    schema: pa.Schema | None = None
    creates: bool = False


class TableDatabase(ABC):
    """A database as people are told of it, and the fate of its errors."""

    def __init__(self, operator: str, shown: str) -> None:
        self._operator = operator
        self.shown = shown

    @abstractmethod
    def trouble(self, error: Exception) -> str:
        """Return the database to wait for, if the error may pass by itself; empty if not."""

    def failure(self, error: Exception) -> OperatorError:
        text = str(getattr(error, "orig", None) or error).strip()
        return OperatorError(operator=self._operator, cause=f"{self.shown}: {text}", is_final=True)


class TargetOptions(TypedDict, total=False):
    """Options of all sinks of tables of databases.

    Attributes:
        upsert: names of the columns of its key: a record takes the place of the row of its key. The
            table needs a primary key, or a unique index, of these. By default records are added.
        columns: names of the columns to write; by default all.
        key: names of the columns for the parts of a window's key.
        schema: of the columns, for ``create``; by default that of the first epoch's.
        create: make the table if it is not there.
    """

    upsert: str | Sequence[str]
    columns: Sequence[str] | None
    key: str | Sequence[str]
    schema: SchemaLike[Any] | None
    create: bool


def target_table(
    function: str,
    table: str,
    *,
    upsert: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    key: str | Sequence[str] = (),
    schema: SchemaLike[Any] | None = None,
    create: bool = False,
) -> TargetTable:
    names = column_names(function, "upsert", upsert)
    chosen = None if columns is None else column_names(function, "columns", columns)
    if not table or len(table.split(".")) > 2:  # noqa: PLR2004 - schema and table
        raise ConfigError(f"{function}: table is {table!r}: write 'table' or 'schema.table'")
    if chosen is not None and (missing := [each for each in names if each not in chosen]):
        raise ConfigError(f"{function}: upsert={missing[0]!r} is not among columns=")
    return TargetTable(
        name=table,
        upsert=names,
        columns=chosen,
        key=column_names(function, "key", key),
        schema=None if schema is None else row_schema_of(schema).arrow,
        creates=create,
    )


def column_names(function: str, argument: str, given: str | Iterable[str]) -> tuple[str, ...]:
    listed: Any = (given,) if isinstance(given, str) else given
    names = tuple(listed) if isinstance(listed, Iterable) else (listed,)
    if not all(isinstance(each, str) and each for each in names):
        raise ConfigError(
            f"{function}: {argument} is {given!r}, must be the name of a column, or a list of names"
        )
    return names


class TableWriter(EpochWriter[Any], PacedWriter[Any], Generic[ConnectionT]):
    """Writes the records of one task.

    What an epoch has brought is in the checkpoint until its transaction has been committed. While
    the database is away nothing more is taken, and a timer tries again.

    Runs on: the task's thread, and that of the timer, one at a time.
    """

    def __init__(
        self, operator: str, database: TableDatabase, table: TargetTable, task_index: int
    ) -> None:
        super().__init__(operator, task_index)
        self._told = database
        self._connection: ConnectionT | None = None
        self._table = table
        self._columns: list[TableColumn] = []
        self._converter = LogColumns(operator, schema=table.schema, key=table.key)
        self._batches: list[pa.RecordBatch] = []
        self._first: list[pa.RecordBatch] = []  # They tell the columns of a table.
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._trouble = ""
        self._is_closed = False
        self._is_known = False  # The columns were asked for on this connection.
        self._unclaimed: list[str] = []  # Runs that are to be taken over.
        self._due: dict[int, EpochRecords] = {}
        self._wake: Any = lambda: None

    # -- the task ----------------------------------------------------------------------------

    def begin(self, context: SinkContext) -> None:
        self._wake = context.wake
        self._converter.keys, self._converter.fields = context.keys, context.fields

    def recover(
        self, prepared: Mapping[int, EpochRecords | None], *, epoch: int, run: str, incarnation: int
    ) -> None:
        """Take over, and write prepared records, as soon as the database is there."""
        with self._lock:
            self._claim(prepared, epoch=epoch, run=run, incarnation=incarnation)
            self._unclaimed = [*self._claims]
            self._due = {number: records for number, records in prepared.items() if records}
        self.work()

    def write_batch(self, batch: Batch[Any]) -> None:
        if not len(batch.values):
            return
        if self._kept_rows + len(batch) > self.epoch_records_max:
            raise GearpyError(
                f"{self._name}: more than {self.epoch_records_max} records came before their epoch "
                "could end: raise its parallelism"
            )
        if self._columns:
            self._batches.append(self._rows(batch))
        else:
            try:
                made = self._converter.batch_of(batch.values)
                settled = self._converter.settled_schema()
                self.check(list(map(self.column_for, settled)), conformed(made, settled))
            except (ValueError, pa.ArrowException) as error:
                raise OperatorError(operator=self._name, cause=str(error)) from error
            self._first.append(made)

    @property
    def epoch_fill(self) -> float:
        return self._kept_rows / self.epoch_records_max

    def prepare(self, epoch: int) -> EpochRecords | None:
        first, self._first = self._first, []
        if first:
            self._converter.settle()
            fitted = list(map(self._converter.fitted, first))
            self._make_table(self._converter.schema)
            self._batches += map(self._fitting, fitted)
        batches, self._batches = self._batches, []
        if not batches:
            return None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batches[0].schema) as writer:
            writer.write_table(pa.Table.from_batches(batches).combine_chunks())
        return {"run": self._run, "values": [sink.getvalue().to_pybytes()], "timestamps": []}

    def commit(self, epoch: int, prepared: EpochRecords | None) -> None:
        """Write the records of the epoch, or keep them until the database is back."""
        if prepared is not None:
            with self._lock:
                self._due[epoch] = prepared
        self.work()
        if self._failure is not None:
            raise self._failure

    def close(self, *, completed: bool) -> None:
        with self._lock:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            self.disconnect()

    @property
    def has_room(self) -> bool:
        return not self._trouble

    @property
    def is_delivered(self) -> bool:
        return not (self._due or self._unclaimed)

    @property
    def waits_for(self) -> str:
        return self._trouble

    # -- rows --------------------------------------------------------------------------------

    @property
    def _kept_rows(self) -> int:
        return sum(map(len, [*self._first, *self._batches]))

    def _rows(self, batch: Batch[Any]) -> pa.RecordBatch:
        values = batch.values
        is_stamped = any(each.name == EVENT_TIME for each in self._columns)
        made = self._converter.batch_of(values, batch.timestamps if is_stamped else ())
        try:
            return self._fitting(made)
        except (ValueError, TypeError, pa.ArrowException) as error:
            if len(values) == 1 or type(values) is Table:
                raise OperatorError(operator=self._name, cause=str(error)) from error
            for value, time in zip(values, batch.timestamps, strict=True):
                self._rows(Batch([value], [time]))  # Raises for the first that does not fit.
            raise OperatorError(operator=self._name, cause=str(error)) from error

    def _fitting(self, made: pa.RecordBatch) -> pa.RecordBatch:
        own = [each for each in self._columns if each.name != EPOCH_COLUMN]
        refuse_unknown(set(made.schema.names) - _ADDED, [each.name for each in own])
        arrays = []
        for column in own:
            if column.name in made.schema.names:
                array = cast_column(made.column(column.name), column.field.type)
            else:
                array = pa.nulls(made.num_rows, column.field.type)
            if array.null_count and not column.field.nullable:
                raise ValueError(f"column {column.name!r} of {self._table.name} must not be null")
            arrays.append(array)
        rows = pa.RecordBatch.from_arrays(arrays, names=[each.name for each in own])
        self.check(own, rows)
        return rows

    # -- the database, in a subclass ---------------------------------------------------------

    @abstractmethod
    def new_connection(self) -> ConnectionT: ...

    def make_ledger(self) -> None:
        """Make the table that keeps it, if it is not there."""

    def connect(self) -> None:
        if self._connection is None:
            self._connection = self.new_connection()
            self.make_ledger()

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def connected(self) -> ConnectionT:
        assert self._connection is not None, "connect comes first"
        return self._connection

    @abstractmethod
    def columns_there(self) -> list[TableColumn]:
        """Return the columns of the table, or the wanted ones; none if it is not there."""

    def column_for(self, field: pa.Field) -> TableColumn:
        """Return a column to make for an Arrow field, or raise `ConfigError` if there is none."""
        return TableColumn(field.name, "", field)

    @abstractmethod
    def create(self, fields: Sequence[pa.Field]) -> None:
        """Make the table of these and the key, or with `EPOCH_COLUMN`, if it is not there."""

    def check(self, columns: Sequence[TableColumn], rows: pa.RecordBatch) -> None:
        """Raise `ValueError` for a value that the database would refuse or change."""
        check_texts(columns, rows)

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]: ...

    @abstractmethod
    def entry(self, owner: EpochOwner) -> LedgerEntry:
        """Return the entry of the ledger, which nobody else changes in this transaction."""

    @abstractmethod
    def note(self, owner: EpochOwner, entry: LedgerEntry) -> None: ...

    @abstractmethod
    def delete_marked(self, first: str, last: str) -> None:
        """Delete the rows with an `EPOCH_COLUMN` from the first to the last, byte by byte."""

    @abstractmethod
    def put(self, rows: Sequence[pa.RecordBatch]) -> None:
        """Add rows, or write the last one of each key over the row that is there."""

    # -- the work ----------------------------------------------------------------------------

    def work(self) -> None:
        """Do what there is to do; if the database is away, soon again."""
        with self._lock:
            if self._is_closed or self._failure is not None:
                return
            try:
                self.connect()
                self._look_at_table()
                while self._unclaimed:
                    run = self._unclaimed[0]
                    self.take_over(self._owner_of(run), self._claims[run].since)
                    del self._unclaimed[0]
                for epoch in sorted(self._due):
                    records = self._due[epoch]
                    batch: Batch[Any] = Batch(records["values"], records["timestamps"])
                    self.write_epoch(self._owner_of(records["run"]), epoch, batch)
                    del self._due[epoch]
                self._trouble = ""
            except Exception as error:  # noqa: BLE001 - it ends the task
                self.disconnect()
                self._is_known = False
                if trouble := self._told.trouble(error):
                    if not self._trouble:
                        _log.warning("%s waits for %s", self._name, trouble)
                    self._trouble = trouble
                    self._timer = threading.Timer(_RETRY_S, self._try_again)
                    self._timer.daemon = True
                    self._timer.start()
                else:
                    is_own = isinstance(error, GearpyError)
                    self._failure = error if is_own else self._told.failure(error)

    def _try_again(self) -> None:
        self.work()
        if not self._trouble:
            self._wake()

    def _look_at_table(self) -> None:
        if self._is_known:
            return
        table = self._table
        columns = self.columns_there()
        if columns != self._columns:
            self._use(columns)
        if not columns and not table.creates:
            raise OperatorError(
                operator=self._name,
                cause=f"there is no table {table.name} in {self._told.shown}: make it, or say "
                "create=True",
                is_final=True,
            )
        if not columns and table.schema is not None:
            self._make_table(table.schema)
        self._is_known = True

    def _use(self, columns: Sequence[TableColumn]) -> None:
        """Write to these columns; what the database fills is written only if that was asked for."""
        self._columns = [
            each for each in columns if self._table.columns is not None or not each.is_filled
        ]
        own = [each.field for each in self._columns if each.name not in {*_ADDED, EPOCH_COLUMN}]
        if own:
            self._converter = LogColumns(self._name, schema=pa.schema(own), key=self._table.key)

    def _make_table(self, schema: pa.Schema | None) -> None:
        """Make the table if it is not there; columns that records of windows have, too."""
        assert schema is not None, "records come first"
        table = self._table
        self.connect()
        self.create([each for each in schema if not table.columns or each.name in table.columns])
        self._use(self.columns_there())

    # -- transactions ------------------------------------------------------------------------

    def take_over(self, owner: EpochOwner, epoch: int) -> None:
        with self.transaction():
            found = self.entry(owner)
            step = self._claims[owner.run].step(found)
            if step is None:
                return
            if found.committed > epoch and not self._table.upsert:
                if not self._is_marked:
                    raise OperatorError(
                        operator=self._name,
                        cause=f"the application goes back to epoch {epoch}, and table "
                        f"{self._table.name} has rows of later ones, which nothing tells from "
                        f"others: give such a table a column {EPOCH_COLUMN} text, or upsert= a key",
                        is_final=True,
                    )
                self.delete_marked(_mark(owner, epoch + 1), _mark(owner, LATEST))
            self.note(owner, step.entry)

    def write_epoch(self, owner: EpochOwner, epoch: int, batch: Batch[Any]) -> None:
        with self.transaction():
            entry = self._claims[owner.run].commit(self.entry(owner), epoch)
            if entry is None:
                return
            rows = [rows for data in batch.values for rows in pa.ipc.open_stream(data)]
            if self._is_marked and not self._table.upsert:
                mark = pa.scalar(_mark(owner, epoch))
                rows = [
                    each.append_column(EPOCH_COLUMN, pa.repeat(mark, each.num_rows))
                    for each in rows
                ]
            self.put(rows)
            self.note(owner, entry)

    @property
    def _is_marked(self) -> bool:
        return any(each.name == EPOCH_COLUMN for each in self._columns)


def _mark(owner: EpochOwner, epoch: int) -> str:
    """Return the mark of a task's rows of an epoch; later epochs have greater ones."""
    return f"{owner.run}/{owner.sink}/{owner.task}/{epoch:020d}"


class TableSink(Sink[Any]):
    """A table of a database, or of a catalog.

    Args:
        make: returns the writer of a task, by its number.
        one_task: whether one writer has the table at a time, where nobody says otherwise.
    """

    transactional = True
    columnar = True
    paced = True

    def __init__(
        self, description: str, make: Callable[[int], TableWriter[Any]], *, one_task: bool = False
    ) -> None:
        self._description = description
        self._make = make
        self.one_task = one_task

    @property
    def description(self) -> str:
        return self._description

    def open(self, task_index: int, parallelism: int) -> TableWriter[Any]:
        return self._make(task_index)


def table_mistake(operator: str, table: str, place: str, text: str) -> OperatorError:
    cause = f"table {table} in {place} {text}"
    return OperatorError(operator=operator, cause=cause, is_final=True)


def wanted_columns(
    operator: str, place: str, table: TargetTable, found: Sequence[TableColumn]
) -> list[TableColumn]:
    """Return the columns that a sink writes, of those that its table has."""
    wanted = table.columns
    if wanted and found and any(each.name == EPOCH_COLUMN for each in found):
        wanted = (*wanted, EPOCH_COLUMN)
    return chosen(operator, place, table.name, found, wanted)


def chosen(
    operator: str,
    place: str,
    table: str,
    found: Sequence[TableColumn],
    wanted: Sequence[str] | None,
) -> list[TableColumn]:
    """Return the columns of these names; one of a type that is not known here is refused."""
    there = {each.name: each for each in found}
    names = there if wanted is None or not found else wanted
    if missing := [each for each in names if each not in there]:
        raise table_mistake(
            operator, table, place, f"has no column {missing[0]!r}: it has {', '.join(there)}"
        )
    for each in names:
        if there[each].field.type == pa.null():
            raise table_mistake(
                operator,
                table,
                place,
                f"has column {each!r} of type {there[each].kind}: leave it out by columns=, or "
                "read a view that casts it to text",
            )
    return [there[each] for each in names]


def check_texts(columns: Iterable[TableColumn], rows: pa.RecordBatch) -> None:
    for column in columns:
        if not pa.types.is_string(column.field.type):
            continue
        cells = rows.column(column.name)
        if pc.any(pc.match_substring(cells, "\0")).as_py():
            raise ValueError(f"column {column.name!r}: a text with a NUL character: remove it")
        longest = pc.max(pc.utf8_length(cells)).as_py() or 0
        if 0 < column.chars_max < longest:
            raise ValueError(
                f"column {column.name!r} takes {column.chars_max} characters, not {longest}"
            )
        parse = _PARSERS.get(column.kind)
        if parse is None:
            continue
        for text in cells.drop_null().to_pylist():
            try:
                parse(text)
            except ValueError as error:
                raise ValueError(
                    f"column {column.name!r} is {column.kind}, and {text!r:.100} is none: {error}"
                ) from error


def last_of_each(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in order; all rows if there are no keys."""
    if not keys:
        return table
    columns = [table.column(key).to_pylist() for key in keys]
    last = {cells: place for place, cells in enumerate(zip(*columns, strict=True))}
    return table if len(last) == table.num_rows else table.take(sorted(last.values()))
