"""A table of PostgreSQL as a sink: an epoch is one transaction."""

from typing import Any, Unpack

from gearpy.connectors.database.table_writer import TargetOptions, TargetTable, target_table
from gearpy.connectors.postgres.connection import PostgresAddress
from gearpy.connectors.postgres.writer import PostgresWriter
from gearpy.connectors.shared_options import check_options, takes
from gearpy.task.api.interfaces import Sink


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
    return PostgresSink(PostgresAddress(f"postgres_sink({table})", url), where)


class PostgresSink(Sink[Any]):
    """A table; see `postgres_sink`."""

    transactional = True
    columnar = takes_results = True
    paced = True

    def __init__(self, address: PostgresAddress, table: TargetTable) -> None:
        self._address = address
        self._table = table

    @property
    def description(self) -> str:
        return f"postgres_sink({self._table.name})"

    def open(self, task_index: int, parallelism: int) -> PostgresWriter:
        return PostgresWriter(self.description, self._address, self._table, task_index)
