"""A table of any database as a sink: an epoch is one transaction."""

from typing import Any, Unpack

from gearpy.connectors.database.table_writer import (
    TableWriter,
    TargetOptions,
    TargetTable,
    target_table,
)
from gearpy.connectors.shared_options import check_options, takes
from gearpy.connectors.sql.database import Database
from gearpy.connectors.sql.duckdb_writer import DuckdbWriter
from gearpy.connectors.sql.writer import SqlWriter
from gearpy.task.api.interfaces import Sink


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
    return SqlSink(Database(f"sql_sink({table})", url), where)


class SqlSink(Sink[Any]):
    """A table; see `sql_sink`."""

    transactional = True
    columnar = takes_results = True
    paced = True

    def __init__(self, database: Database, table: TargetTable) -> None:
        self._database = database
        self._table = table
        self.one_task = database.is_file  # One writer has the file at a time.

    @property
    def description(self) -> str:
        return f"sql_sink({self._table.name})"

    def open(self, task_index: int, parallelism: int) -> TableWriter:
        if self._database.dialect == "duckdb":
            return DuckdbWriter(self.description, self._database, self._table, task_index)
        return SqlWriter(self.description, self._database, self._table, task_index)
