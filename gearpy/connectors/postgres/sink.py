"""A table of PostgreSQL as a sink: an epoch is one transaction."""

from collections.abc import Sequence
from typing import Any

from gearpy.columns.row_schema import SchemaLike
from gearpy.connectors.database.table_writer import TargetTable, target_table
from gearpy.connectors.postgres.connection import PostgresAddress
from gearpy.connectors.postgres.writer import PostgresWriter
from gearpy.task.api.interfaces import Sink


def postgres_sink(
    url: str,
    table: str,
    *,
    upsert: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    key: str | Sequence[str] = (),
    schema: SchemaLike[Any] | None = None,
    create: bool = False,
) -> Sink[Any]:
    """Write records into a table of PostgreSQL, each once; an epoch is one transaction.

    Records are dicts, dataclasses, NamedTuples, results of windows, or columns; their fields go
    into the columns of the same names. One that does not fit is dealt with by
    ``application.on-error``. While the server is away the stream waits. A table ``gearpy_owners``
    notes which epoch of which task was written last.

    Args:
        url: ``postgresql://user:password@host:port/database``; take the password from
            `os.environ` rather than write it into the program.
        table: name of the table, perhaps with that of its schema before a dot.
        upsert: names of the columns of its key: a record takes the place of the row of its key. The
            table needs a primary key, or a unique index, of these. By default records are added.
        columns: names of the columns to write; by default all.
        key: names of the columns for the parts of a window's key.
        schema: of the columns, for ``create``; by default that of the first epoch's.
        create: make the table if it is not there.

    Raises:
        ConfigError: the address or the schema is none, or psycopg is missing.

    Example:
        >>> import gearpy as gp
        >>> sink = gp.postgres_sink("postgresql://ann@localhost/shop", "sales", upsert="id")
        >>> sink.description
        'postgres_sink(sales)'
    """
    where = target_table(
        "postgres_sink",
        table,
        upsert=upsert,
        columns=columns,
        key=key,
        schema=schema,
        create=create,
    )
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
