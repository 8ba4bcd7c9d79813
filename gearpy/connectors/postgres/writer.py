"""Writes records into a table, those of an epoch in one transaction."""

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import EVENT_TIME, LogColumns
from gearpy.columns.values import cast_column, refuse_unknown
from gearpy.connectors.epoch_writer import EpochOwner, EpochRecords, EpochWriter
from gearpy.connectors.files.tables import conformed
from gearpy.connectors.postgres.columns import (
    PostgresColumn,
    check_texts,
    columns_of,
    copied,
    type_of,
)
from gearpy.connectors.postgres.connection import PostgresAddress
from gearpy.core.handover.ledger import LedgerEntry
from gearpy.errors import GearpyError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table
from gearpy.task.api.interfaces import PacedWriter, SinkContext

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed, Identifier

_log = logging.getLogger(__name__)
#: Tells which epoch a row is of, so that it can be taken back; only in tables that have it.
EPOCH_COLUMN: Final = "gearpy_epoch"
_RETRY_S: Final = 1.0
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
_OWNERS: Final = """
create table if not exists gearpy_owners (
    run text, sink text, task integer, incarnation bigint not null, epoch bigint not null,
    primary key (run, sink, task))
"""
#: Two tasks that make one table at a time would fail: the one waits for the other.
_MAKING: Final = "select pg_advisory_xact_lock(hashtext('gearpy'))"
_FIND: Final = """
select incarnation, epoch from gearpy_owners where run = %s and sink = %s and task = %s for update
"""
_CLAIM: Final = """
insert into gearpy_owners values (%s, %s, %s, %s, %s)
on conflict (run, sink, task) do update set incarnation = excluded.incarnation,
    epoch = excluded.epoch
"""
_EPOCH_COLUMN: Final = (
    "select attname from pg_attribute where attrelid = to_regclass(%s) and attname = %s"
)
#: A process that was frozen may hold the lock of its last transaction.
_END_ZOMBIES: Final = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name like %s and usename = current_user and pid <> pg_backend_pid()
    and split_part(application_name, '/', 3)::bigint < %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresTable:
    """The table of a sink; see `postgres_sink`."""

    name: str
    upsert: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    key: tuple[str, ...] = ()
    schema: pa.Schema | None = None
    creates: bool = False


class PostgresWriter(EpochWriter[Any], PacedWriter[Any]):
    """Writes the records of one task.

    What an epoch has brought is in the checkpoint until its transaction has been committed. While
    the server is away nothing more is taken, and a timer tries again.

    Runs on: the task's thread, and that of the timer, one at a time.
    """

    def __init__(
        self, operator: str, address: PostgresAddress, table: PostgresTable, task_index: int
    ) -> None:
        super().__init__(operator, task_index)
        self._address = address
        self._table = table
        self._columns: list[PostgresColumn] = []
        self._converter = LogColumns(operator, schema=table.schema, key=table.key)
        self._batches: list[pa.RecordBatch] = []
        self._first: list[pa.RecordBatch] = []  # They tell the columns of a table.
        self._connection: Connection[Any] | None = None
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._trouble = ""
        self._failure: BaseException | None = None
        self._is_closed = False
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
        """Take over, and write prepared records, as soon as the server is there."""
        with self._lock:
            self._claim(prepared, epoch=epoch, run=run, incarnation=incarnation)
            self._unclaimed = [*self._claims]
            self._due = {number: records for number, records in prepared.items() if records}
        self._work()

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
                columns = [
                    PostgresColumn(each.name, type_of(each), each, False) for each in settled
                ]
                check_texts(columns, conformed(made, settled))
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
        """Write the records of the epoch, or keep them until the server is back."""
        if prepared is not None:
            with self._lock:
                self._due[epoch] = prepared
        self._work()
        if self._failure is not None:
            raise self._failure

    def close(self, *, completed: bool) -> None:
        with self._lock:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._disconnect()

    @property
    def has_room(self) -> bool:
        return not self._trouble

    @property
    def is_delivered(self) -> bool:
        return not (self._due or self._unclaimed)

    @property
    def failure(self) -> BaseException | None:
        return self._failure

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
        check_texts(own, rows)
        return rows

    # -- the server --------------------------------------------------------------------------

    def _work(self) -> None:
        """Do what there is to do; if the server is away, soon again."""
        with self._lock:
            if self._is_closed or self._failure is not None:
                return
            try:
                self._connected()
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
                self._disconnect()
                if trouble := self._address.trouble(error):
                    _log.warning("%s waits for %s", self._name, trouble)
                    self._trouble = trouble
                    self._timer = threading.Timer(_RETRY_S, self._try_again)
                    self._timer.daemon = True
                    self._timer.start()
                else:
                    is_own = isinstance(error, GearpyError)
                    self._failure = error if is_own else self._address.failure(error)

    def _try_again(self) -> None:
        self._work()
        if not self._trouble:
            self._wake()

    def _connected(self) -> "Connection[Any]":
        if self._connection is None:
            key = sha256(f"{self._run}/{self._name}/{self._task}".encode()).hexdigest()[:16]
            self._connection = self._address.connect(f"gearpy/{key}/{self._incarnation}")
            with self._connection.transaction():
                self._connection.execute(_MAKING)
                self._connection.execute(_OWNERS)
            self._connection.execute(_END_ZOMBIES, (f"gearpy/{key}/%", self._incarnation))
            table = self._table
            wanted = table.columns
            if wanted:
                own = self._connection.execute(_EPOCH_COLUMN, (table.name, EPOCH_COLUMN))
                wanted = (*wanted, *(name for (name,) in own.fetchall()))
            columns = columns_of(self._name, self._connection, table.name, wanted)
            if columns != self._columns:
                self._use(columns)
            if not (columns or (table.creates and table.schema is None)):
                if not table.creates:
                    raise OperatorError(
                        operator=self._name,
                        cause=f"there is no table {table.name} in postgres {self._address.shown}: "
                        "make it, or say create=True",
                        is_final=True,
                    )
                self._make_table(table.schema)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _use(self, columns: Sequence[PostgresColumn]) -> None:
        """Write to these columns; what the database fills is written only if that was asked for."""
        self._columns = [
            each for each in columns if self._table.columns is not None or not each.is_filled
        ]
        own = [each.field for each in self._columns if each.name not in {*_ADDED, EPOCH_COLUMN}]
        if own:
            self._converter = LogColumns(self._name, schema=pa.schema(own), key=self._table.key)

    def _make_table(self, schema: pa.Schema | None) -> None:
        """Make the table if it is not there; columns that records of windows have, too."""
        from psycopg import sql  # noqa: PLC0415 - an extra

        assert schema is not None, "records come first"
        table, connection = self._table, self._connected()
        fields = [field for field in schema if not table.columns or field.name in table.columns]
        parts = [
            sql.SQL("{} {}{}").format(
                sql.Identifier(field.name),
                sql.SQL(type_of(field)),
                sql.SQL("" if field.nullable else " not null"),
            )
            for field in fields
        ]
        if table.upsert:
            parts.append(sql.SQL("primary key ({})").format(self._names(table.upsert)))
        else:
            parts.append(sql.SQL("{} text").format(sql.Identifier(EPOCH_COLUMN)))
        with connection.transaction():
            connection.execute(_MAKING)
            connection.execute(
                sql.SQL("create table if not exists {} ({})").format(
                    self._target, sql.SQL(", ").join(parts)
                )
            )
        self._use(columns_of(self._name, connection, table.name, None))

    # -- transactions ------------------------------------------------------------------------

    def take_over(self, owner: EpochOwner, epoch: int) -> None:
        connection = self._connected()
        with connection.transaction():
            found = self._entry(connection, owner)
            step = self._claims[owner.run].step(found)
            if step is not None:
                if found.committed > epoch and not self._table.upsert:
                    self._take_back(connection, owner, epoch)
                connection.execute(_CLAIM, (*owner[:3], *step.entry))

    def _take_back(self, connection: "Connection[Any]", owner: EpochOwner, epoch: int) -> None:
        from psycopg import sql  # noqa: PLC0415 - an extra

        if not any(each.name == EPOCH_COLUMN for each in self._columns):
            raise OperatorError(
                operator=self._name,
                cause=f"the application goes back to epoch {epoch}, and table {self._table.name} "
                f"has rows of later ones, which nothing tells from others: give such a table a "
                f"column {EPOCH_COLUMN} text, or upsert= a key",
                is_final=True,
            )
        connection.execute(
            sql.SQL('delete from {} where {column} collate "C" > %s and {column} like %s').format(
                self._target, column=sql.Identifier(EPOCH_COLUMN)
            ),
            (_mark(owner, epoch), re.sub(r"([\\%_])", r"\\\1", _mark(owner)) + "%"),
        )

    def write_epoch(self, owner: EpochOwner, epoch: int, batch: Batch[Any]) -> None:
        connection = self._connected()
        with connection.transaction():
            entry = self._claims[owner.run].commit(self._entry(connection, owner), epoch)
            if entry is None:
                return
            rows = [rows for data in batch.values for rows in pa.ipc.open_stream(data)]
            mark = _mark(owner, epoch)
            if self._table.upsert:
                self._upsert(connection, rows)
            else:
                if any(each.name == EPOCH_COLUMN for each in self._columns):
                    rows = [
                        each.append_column(EPOCH_COLUMN, pa.array([mark] * each.num_rows))
                        for each in rows
                    ]
                self._copy(connection, self._target, rows)
            connection.execute(_CLAIM, (*owner[:3], *entry))

    def _entry(self, connection: "Connection[Any]", owner: EpochOwner) -> LedgerEntry:
        found = connection.execute(_FIND, owner[:3]).fetchone()
        return LedgerEntry() if found is None else LedgerEntry(*found)

    def _copy(
        self, connection: "Connection[Any]", target: "Identifier", rows: Sequence[pa.RecordBatch]
    ) -> None:
        from psycopg import sql  # noqa: PLC0415 - an extra

        statement = sql.SQL("copy {} ({}) from stdin (format csv)")
        names = self._names(rows[0].schema.names)
        with connection.cursor().copy(statement.format(target, names)) as copy:
            for each in rows:
                copy.write(copied(each))

    def _upsert(self, connection: "Connection[Any]", rows: Sequence[pa.RecordBatch]) -> None:
        """Write the last row of each key over the row that is there.

        A transaction may make few tables: each takes places in the server's table of locks.
        """
        from psycopg import sql  # noqa: PLC0415 - an extra

        own = rows[0].schema.names
        names, key = self._names(own), self._names(self._table.upsert)
        others = [each for each in own if each not in self._table.upsert]
        stage = (
            "create temp table gearpy_stage on commit drop as select {} from {} with no data",
            "alter table gearpy_stage add gearpy_place bigserial",
        )
        for text in stage:
            connection.execute(sql.SQL(text).format(names, self._target))
        self._copy(connection, sql.Identifier("gearpy_stage"), rows)
        changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(each)) for each in others]
        then = sql.SQL("update set {}").format(sql.SQL(", ").join(changes))
        connection.execute(
            sql.SQL(
                "insert into {target} ({names}) select distinct on ({key}) {names} from "
                "gearpy_stage order by {key}, gearpy_place desc on conflict ({key}) do {then}"
            ).format(
                target=self._target,
                names=names,
                key=key,
                then=then if others else sql.SQL("nothing"),
            )
        )
        connection.execute("drop table gearpy_stage")

    @property
    def _target(self) -> "Identifier":
        from psycopg import sql  # noqa: PLC0415 - an extra

        return sql.Identifier(*self._table.name.split("."))

    def _names(self, names: Sequence[str]) -> "Composed":
        from psycopg import sql  # noqa: PLC0415 - an extra

        return sql.SQL(", ").join(map(sql.Identifier, names))


def _mark(owner: EpochOwner, epoch: int | None = None) -> str:
    """Return the mark of a task's rows of an epoch; without one, how all its marks begin."""
    number = "" if epoch is None else f"{epoch:020d}"
    return f"{owner.run}/{owner.sink}/{owner.task}/{number}"
