"""Writes records into a table of PostgreSQL, those of an epoch in one transaction."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Unpack

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.database.table_writer import (
    EPOCH_COLUMN,
    TableColumn,
    TableSink,
    TableWriter,
    TargetOptions,
    TargetTable,
    target_table,
    wanted_columns,
)
from gearpy.connectors.epoch_writer import EpochOwner
from gearpy.connectors.postgres.columns import columns_of, copied, type_of
from gearpy.connectors.postgres.connection import PostgresAddress, columns_called, table_called
from gearpy.connectors.shared_options import check_options, takes
from gearpy.core.handover.ledger import LedgerEntry
from gearpy.task.api.interfaces import Sink

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Identifier


@takes(TargetOptions, target_table)
def postgres_sink(url: str, table: str, **options: Unpack[TargetOptions]) -> Sink[Any]:
    """Write records into a table of PostgreSQL, each once; an epoch is one transaction.

    Records are dicts, dataclasses, NamedTuples, results of windows, or columns; their fields go
    into the columns of the same names. One that does not fit is dealt with by
    ``application.on-error``. While the server is away the stream waits. A table ``gearpy_owners``
    notes which epoch of which task was written last.

    Args:
        url: ``postgresql://user:password@host:port/database``; take the password from
            `os.environ` rather than write it into the program.
        table: name of the table, perhaps with that of its schema before a dot.
        options: those that all sinks of tables share, see `TargetOptions`.

    Raises:
        ConfigError: the address or the schema is none, or psycopg is missing.

    Example:
        >>> import gearpy as gp
        >>> sink = gp.postgres_sink("postgresql://ann@localhost/shop", "sales", upsert="id")
        >>> sink.description
        'postgres_sink(sales)'
    """
    check_options("postgres_sink", options, TargetOptions)
    where = target_table("postgres_sink", table, **options)
    name = f"postgres_sink({table})"
    return TableSink(name, partial(PostgresWriter, name, PostgresAddress(name, url), where))


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
#: Without a row two starts that look at a time would both find nothing, and the earlier one might
#: be the last to write.
_FIRST: Final = "insert into gearpy_owners values (%s, %s, %s, 0, 0) on conflict do nothing"
_NOTE: Final = """
update gearpy_owners set incarnation = %s, epoch = %s where run = %s and sink = %s and task = %s
"""
#: A process that was frozen may hold the lock of its last transaction.
_END_ZOMBIES: Final = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name like %s and usename = current_user and pid <> pg_backend_pid()
    and split_part(application_name, '/', 3)::bigint < %s
"""


class PostgresWriter(TableWriter["Connection[Any]"]):
    """Writes the records of one task; see `TableWriter`."""

    def __init__(
        self, operator: str, address: PostgresAddress, table: TargetTable, task_index: int
    ) -> None:
        super().__init__(operator, address, table, task_index)
        self._address = address

    @property
    def _key(self) -> str:
        named = f"{self._run}/{self._name}/{self._task}"
        return f"gearpy/{sha256(named.encode()).hexdigest()[:16]}"

    def new_connection(self) -> "Connection[Any]":
        return self._address.connect(f"{self._key}/{self._incarnation}")

    def make_ledger(self) -> None:
        with self.transaction():
            self.connected.execute(_MAKING)
            self.connected.execute(_OWNERS)
        self.connected.execute(_END_ZOMBIES, (f"{self._key}/%", self._incarnation))

    def columns_there(self) -> list[TableColumn]:
        found = columns_of(self.connected, self._table.name)
        return wanted_columns(self._name, self._address.shown, self._table, found)

    def column_for(self, field: pa.Field) -> TableColumn:
        return TableColumn(field.name, type_of(field), field)

    def create(self, fields: Sequence[pa.Field]) -> None:
        from psycopg import sql  # noqa: PLC0415 - an extra

        parts = [
            sql.SQL("{} {}{}").format(
                sql.Identifier(field.name),
                sql.SQL(type_of(field)),
                sql.SQL("" if field.nullable else " not null"),
            )
            for field in fields
        ]
        if self._table.upsert:
            parts.append(sql.SQL("primary key ({})").format(columns_called(self._table.upsert)))
        else:
            parts.append(sql.SQL("{} text").format(sql.Identifier(EPOCH_COLUMN)))
        with self.transaction():
            self.connected.execute(_MAKING)
            self.connected.execute(
                sql.SQL("create table if not exists {} ({})").format(
                    self._target, sql.SQL(", ").join(parts)
                )
            )

    # -- transactions ------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connected.transaction()

    def entry(self, owner: EpochOwner) -> LedgerEntry:
        if (found := self.connected.execute(_FIND, owner[:3]).fetchone()) is None:
            self.connected.execute(_FIRST, owner[:3])
            found = self.connected.execute(_FIND, owner[:3]).fetchone()
        assert found is not None, "it is there by now"
        return LedgerEntry(*found)

    def note(self, owner: EpochOwner, entry: LedgerEntry) -> None:
        self.connected.execute(_NOTE, (*entry, *owner[:3]))

    def delete_marked(self, first: str, last: str) -> None:
        from psycopg import sql  # noqa: PLC0415 - an extra

        self.connected.execute(
            sql.SQL('delete from {} where {} collate "C" between %s and %s').format(
                self._target, sql.Identifier(EPOCH_COLUMN)
            ),
            (first, last),
        )

    def put(self, rows: Sequence[pa.RecordBatch]) -> None:
        if self._table.upsert:
            self._upsert(self.connected, rows)
        else:
            self._copy(self.connected, self._target, rows)

    def _copy(
        self, connection: "Connection[Any]", target: "Identifier", rows: Sequence[pa.RecordBatch]
    ) -> None:
        from psycopg import sql  # noqa: PLC0415 - an extra

        statement = sql.SQL("copy {} ({}) from stdin (format csv)")
        names = columns_called(rows[0].schema.names)
        with connection.cursor().copy(statement.format(target, names)) as copy:
            for each in rows:
                copy.write(copied(each))

    def _upsert(self, connection: "Connection[Any]", rows: Sequence[pa.RecordBatch]) -> None:
        """Write the last row of each key over the row that is there.

        A transaction may make few tables: each takes places in the server's table of locks.
        """
        from psycopg import sql  # noqa: PLC0415 - an extra

        own = rows[0].schema.names
        names, key = columns_called(own), columns_called(self._table.upsert)
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
        return table_called(self._table.name)
