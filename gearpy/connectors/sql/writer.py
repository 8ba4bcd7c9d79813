"""Writes records into a table by SQLAlchemy, those of an epoch in one transaction."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Final, Unpack

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.database.table_writer import (
    EPOCH_COLUMN,
    OWNERS,
    TableColumn,
    TableSink,
    TableWriter,
    TargetOptions,
    TargetTable,
    last_of_each,
    table_mistake,
    target_table,
    wanted_columns,
)
from gearpy.connectors.epoch_writer import EpochOwner
from gearpy.connectors.shared_options import check_options, takes
from gearpy.connectors.sql.columns import UTC, check_values, sql_type
from gearpy.connectors.sql.database import Database
from gearpy.connectors.sql.duckdb_writer import DuckdbWriter
from gearpy.connectors.sql.found_columns import columns_of
from gearpy.core.handover.ledger import LedgerEntry
from gearpy.errors import GearpyError
from gearpy.task.api.interfaces import Sink

if TYPE_CHECKING:
    import sqlalchemy as sa


@takes(TargetOptions, target_table)
def sql_sink(url: str, table: str, **options: Unpack[TargetOptions]) -> Sink[Any]:
    """Write records into a table of SQLite, DuckDB, PostgreSQL, MySQL or MariaDB, each once.

    An epoch is one transaction, in which a table ``gearpy_owners`` notes that it was written.
    Records are dicts, dataclasses, NamedTuples, results of windows, or columns; their fields go
    into the columns of the same names. One that does not fit is dealt with by
    ``application.on-error``. While the database is away or locked the stream waits. Into many rows
    a second of PostgreSQL `postgres_sink` writes faster.

    Args:
        url: ``sqlite:///FILE``, ``duckdb:///FILE``, ``postgresql://user:password@host/database``,
            ``mysql://...`` or ``mariadb://...``, as SQLAlchemy has them. A relative file is in the
            folder of the process that makes the sink.
        table: name of the table, perhaps with that of its schema before a dot.
        options: those that all sinks of tables share, see `TargetOptions`.

    Raises:
        ConfigError: the address or the schema is none, or a library is missing.

    Example:
        >>> import gearpy as gp
        >>> sink = gp.sql_sink("sqlite:///shop.db", "sales", upsert="id", create=True)
        >>> sink.description
        'sql_sink(sales)'
    """
    check_options("sql_sink", options, TargetOptions)
    where = target_table("sql_sink", table, **options)
    database = Database(name := f"sql_sink({table})", url)
    writer = DuckdbWriter if database.dialect == "duckdb" else SqlWriter
    # One writer has a file at a time.
    return TableSink(name, partial(writer, name, database, where), one_task=database.is_file)


#: Two tasks that make one table at a time would fail on PostgreSQL: the one waits for the other.
_MAKING: Final = "select pg_advisory_xact_lock(hashtext('gearpy'))"


class SqlWriter(TableWriter["sa.Connection"]):
    """Writes the records of one task; see `TableWriter`."""

    def __init__(
        self, operator: str, database: Database, table: TargetTable, task_index: int
    ) -> None:
        super().__init__(operator, database, table, task_index)
        self._database = database

    def new_connection(self) -> "sa.Connection":
        return self._database.connect()

    def make_ledger(self) -> None:
        self._make(self._owners)

    # -- the table ---------------------------------------------------------------------------

    def columns_there(self) -> list[TableColumn]:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        *schema, name = self._table.name.split(".")
        with self.transaction():
            found = columns_of(self._database, self.connected, self._table.name)
            if not found:
                return []
            options = sa.inspect(self.connected).get_table_options(name, *schema)
        engine = next((text for key, text in options.items() if key.endswith("_engine")), "InnoDB")
        if engine != "InnoDB":
            raise self._mistake(f"is kept by {engine}, which has no transactions: take InnoDB")
        return wanted_columns(self._name, self._database.shown, self._table, found)

    def _mistake(self, text: str) -> GearpyError:
        return table_mistake(self._name, self._table.name, self._database.shown, text)

    def column_for(self, field: pa.Field) -> TableColumn:
        sql_type(field, self._database.dialect, is_key=False)
        return super().column_for(field)

    def create(self, fields: Sequence[pa.Field]) -> None:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        dialect, keys = self._database.dialect, self._table.upsert
        columns = [
            sa.Column(
                field.name,
                sql_type(field, dialect, is_key=field.name in keys),
                nullable=field.nullable and field.name not in keys,
                primary_key=field.name in keys,
                autoincrement=False,
                comment=UTC if dialect == "mysql" and getattr(field.type, "tz", None) else None,
            )
            for field in fields
        ]
        if not keys:
            mark = sql_type(pa.field("", pa.string()), dialect, is_key=True)
            columns.append(sa.Column(EPOCH_COLUMN, mark))
        *schema, name = self._table.name.split(".")
        self._make(
            sa.Table(
                name,
                sa.MetaData(),
                *columns,
                schema=schema[0] if schema else None,
                mysql_charset="utf8mb4",
                mariadb_charset="utf8mb4",
            )
        )

    def _make(self, table: "sa.Table") -> None:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        with self.transaction():
            if self._database.dialect == "postgresql":
                self.connected.exec_driver_sql(_MAKING)
            self.connected.execute(sa.schema.CreateTable(table, if_not_exists=True))

    def check(self, columns: Sequence[TableColumn], rows: pa.RecordBatch) -> None:
        check_values(self._database.dialect, columns, rows)

    # -- transactions ------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[Any]:
        begun: AbstractContextManager[Any] = self.connected.begin()
        return begun

    @cached_property
    def _owners(self) -> "sa.Table":
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        text = sql_type(pa.field("", pa.string()), self._database.dialect, is_key=True)
        return sa.Table(
            OWNERS,
            sa.MetaData(),
            sa.Column("run", text, primary_key=True),
            sa.Column("sink", text, primary_key=True),
            sa.Column("task", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("incarnation", sa.BigInteger, nullable=False),
            sa.Column("epoch", sa.BigInteger, nullable=False),
        )

    def _of(self, owner: EpochOwner) -> "sa.ColumnElement[bool]":
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        named = self._owners.c
        return sa.and_(named.run == owner.run, named.sink == owner.sink, named.task == owner.task)

    def entry(self, owner: EpochOwner) -> LedgerEntry:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        named = self._owners.c
        ask = sa.select(named.incarnation, named.epoch).where(self._of(owner)).with_for_update()
        if (found := self.connected.execute(ask).one_or_none()) is None:
            # Without a row two starts that look at a time would both find nothing.
            first = owner._asdict() | {"incarnation": 0, "epoch": 0}
            self.connected.execute(self._insert(self._owners, owner._fields[:3]), [first])
            found = self.connected.execute(ask).one()
        return LedgerEntry(*found)

    def note(self, owner: EpochOwner, entry: LedgerEntry) -> None:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        change = sa.update(self._owners).where(self._of(owner))
        self.connected.execute(change.values(incarnation=entry.owner, epoch=entry.committed))

    def delete_marked(self, first: str, last: str) -> None:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        target = self._target([EPOCH_COLUMN])
        mark: Any = target.c[EPOCH_COLUMN]
        ends: tuple[Any, Any] = (first, last)
        if self._database.dialect == "postgresql":
            mark = sa.collate(mark, "C")
        elif self._database.dialect == "mysql":
            mark, ends = sa.cast(mark, sa.LargeBinary), (first.encode(), last.encode())
        self.connected.execute(sa.delete(target).where(mark.between(*ends)))

    def put(self, rows: Sequence[pa.RecordBatch]) -> None:
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        keys = self._table.upsert
        table = last_of_each(pa.Table.from_batches(rows), keys)
        names, is_sqlite = table.schema.names, self._database.dialect == "sqlite"
        cells = map(_cells_for_sqlite if is_sqlite else pa.ChunkedArray.to_pylist, table.columns)
        records = list(zip(*cells, strict=True))
        statement = self._insert(self._target(names), keys)

        def insert(some: list[tuple[Any, ...]]) -> None:
            with self.connected.begin_nested():
                if is_sqlite:  # SQLAlchemy takes five times as long as SQLite itself.
                    text = str(statement.compile(dialect=self.connected.dialect))
                    self.connected.exec_driver_sql(text, some)
                else:
                    rows = [dict(zip(names, each, strict=True)) for each in some]
                    self.connected.execute(statement, rows)

        try:
            insert(records)
        except sa.exc.DBAPIError as error:
            if self._database.trouble(error):
                raise
            for record in records:
                try:
                    insert([record])
                except sa.exc.DBAPIError as refused:
                    raise self._mistake(
                        f"refuses {short_repr(dict(zip(names, record, strict=True)))}: "
                        f"{refused.orig}"
                    ) from refused
            raise

    def _target(self, names: Sequence[str]) -> "sa.TableClause":
        """Return the table with columns whose values go to the driver as they are."""
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        columns = [sa.column(name, sa.types.NullType()) for name in names]
        *above, table = self._table.name.split(".")
        return sa.table(table, *columns, schema=above[0] if above else None)

    def _insert(self, target: "sa.TableClause | sa.Table", keys: Sequence[str]) -> Any:
        """Return the statement that adds a row, or writes it over the one of its key."""
        from sqlalchemy.dialects import mysql, postgresql, sqlite  # noqa: PLC0415 - an extra

        dialect = self._database.dialect
        others = [each.name for each in target.c if each.name not in keys]
        if dialect == "mysql":
            added = mysql.insert(target)
            if not keys:
                return added
            shown = others or list(keys)
            return added.on_duplicate_key_update({each: added.inserted[each] for each in shown})
        insert: Any = (sqlite if dialect == "sqlite" else postgresql).insert(target)
        if not keys:
            return insert
        if not others:
            return insert.on_conflict_do_nothing(index_elements=keys)
        changes = {each: insert.excluded[each] for each in others}
        return insert.on_conflict_do_update(index_elements=keys, set_=changes)


def _cells_for_sqlite(column: pa.ChunkedArray) -> list[Any]:
    """Return the cells of a column; SQLite has no times, and no exact numbers but whole ones."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.string())
    cells: list[Any] = column.to_pylist()
    if pa.types.is_decimal(column.type):  # It keeps the first 15 digits.
        cells = [None if cell is None else float(cell) for cell in cells]
    return cells
