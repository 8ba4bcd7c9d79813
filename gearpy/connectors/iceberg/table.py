"""An Iceberg table in which readers see each record once."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from gearpy.columns.row_schema import SchemaLike
from gearpy.connectors.database.table_writer import TableSink, TableWriter, target_table
from gearpy.distribution import require
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import Sink


def iceberg_table(
    table: str,
    *,
    catalog: str | Mapping[str, str],
    columns: Sequence[str] | None = None,
    key: str | Sequence[str] = (),
    schema: SchemaLike[Any] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Sink[Any]:
    """Write records into an Iceberg table: exactly once. Needs the extra ``iceberg``.

    An epoch of a task is one snapshot, which also notes in a property of the table that it was
    written. Records are dicts, dataclasses, NamedTuples, results of windows, or columns; their
    fields go into the columns of the same names. One that does not fit is dealt with by
    ``application.on-error``. While the catalog or the store is away the stream waits.

    A snapshot takes some 50 ms, and the table keeps each until it is expired: set
    ``checkpoint.interval-ms = 60000`` for a table that many read. The sink has one task, unless the
    program says how many: those of several wait for each other.

    Args:
        table: its name, with that of its namespace before the last dot, as in "shop.totals". It is
            made if it is not there, with a column ``gearpy_epoch``, by which rows are taken back if
            the application goes on from an older checkpoint, as the newest was damaged.
        catalog: the name of one in the configuration of PyIceberg, or its properties, such as
            ``{"type": "sql", "uri": "sqlite:///catalog.db", "warehouse": "file:///data"}``; "name"
            among them is its name.
        columns: names of the columns to write; by default all.
        key: names of the columns for the parts of a window's key.
        schema: of the columns, if the table is made; by default that of the first epoch's.
        properties: of the table, if it is made.

    Raises:
        ConfigError: the name or the schema is none, or PyIceberg is missing.

    Example:
        >>> import gearpy as gp
        >>> catalog = {"type": "sql", "uri": "sqlite:///catalog.db", "warehouse": "file:///data"}
        >>> gp.iceberg_table("shop.totals", catalog=catalog).description
        'iceberg_table(shop.totals)'
    """
    operator = f"iceberg_table({table})"
    require(operator, "pyiceberg")
    if "." not in str(table).strip("."):
        raise ConfigError(f"{operator}: write 'namespace.table', as in 'shop.totals'")
    if not isinstance(catalog, str | Mapping):
        raise ConfigError(
            f"{operator}: catalog is a {type(catalog).__name__}, must be the name of one, or a "
            "dict of its properties"
        )
    target = target_table(
        operator, table.rpartition(".")[2], upsert=(), columns=columns, key=key, schema=schema,
        create=True,
    )  # fmt: skip
    given = {"name": catalog} if isinstance(catalog, str) else dict(catalog)

    def make(task_index: int) -> TableWriter[Any]:
        home: Any = import_module("gearpy.connectors.iceberg.writer")  # Loads PyIceberg, 300 ms.
        made: TableWriter[Any] = home.IcebergWriter(
            operator,
            table,
            given,
            target,
            properties=dict(properties or {}),
            task_index=task_index,
        )
        return made

    return TableSink(operator, make, one_task=True)
