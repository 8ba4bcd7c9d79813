"""The columns of a table, as a database tells them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.database.table_writer import TableColumn
from gearpy.connectors.sql.columns import arrow_of
from gearpy.connectors.sql.database import Database

if TYPE_CHECKING:
    import sqlalchemy as sa
    from duckdb import DuckDBPyConnection

_COLUMNS: Final = """select column_name, data_type, is_nullable, column_default is not null
from duckdb_columns()
where table_name = ? and schema_name = ? and database_name = current_database()
order by column_index"""

_KEYS: Final = """select constraint_column_names from duckdb_constraints()
where constraint_type in ('PRIMARY KEY', 'UNIQUE')
and table_name = ? and schema_name = ? and database_name = current_database()"""


def columns_of(database: Database, connection: "sa.Connection", table: str) -> list[TableColumn]:
    """Return the columns of a table or view; those of types that there are not here are null."""
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    *schema, name = table.split(".")
    inspector = sa.inspect(connection)
    try:
        rows = inspector.get_columns(name, schema=schema[0] if schema else None)
    except sa.exc.NoSuchTableError:
        return []
    return [_column(row, database.dialect) for row in rows]


def unique_keys(connection: "sa.Connection", table: str) -> list[set[str]]:
    """Return the keys by which a table says that no two rows are alike; none of a view."""
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    *schema, name = table.split(".")
    inspector, of = sa.inspect(connection), schema[0] if schema else None
    if name not in inspector.get_table_names(of):
        return []
    keys: list[set[str | None]] = [{*inspector.get_pk_constraint(name, of)["constrained_columns"]}]
    keys += [{*each["column_names"]} for each in inspector.get_unique_constraints(name, of)]
    keys += [{*each["column_names"]} for each in inspector.get_indexes(name, of) if each["unique"]]
    # Of an index of expressions these have no names.
    return [{each for each in key if each} for key in keys if key and None not in key]


def _column(row: Mapping[str, Any], dialect: str) -> TableColumn:
    kind = row["type"]
    arrow, form = arrow_of(kind, dialect, row.get("comment") or "")
    is_filled = bool(
        row.get("default") is not None
        or row.get("computed")
        or row.get("identity")
        or row.get("autoincrement") is True
    )
    # SQLite takes texts of any length.
    longest = 0 if dialect == "sqlite" else getattr(kind, "length", None) or 0
    field = pa.field(row["name"], arrow or pa.null(), nullable=row["nullable"])
    return TableColumn(row["name"], form if arrow else str(kind), field, is_filled, longest)


def duckdb_columns(connection: "DuckDBPyConnection", table: str) -> list[TableColumn]:
    *above, name = table.split(".")
    found = connection.execute(_COLUMNS, [name, above[0] if above else "main"]).fetchall()
    if not found:
        return []
    target = ".".join(map(quoted, table.split(".")))
    empty = connection.sql(f"select * from {target} limit 0")  # noqa: S608 - quoted
    arrow = empty.to_arrow_table().schema
    columns = []
    for name, text, can_be_null, is_filled in found:
        form = text.lower() if text in {"JSON", "UUID"} else ""
        field = pa.field(name, plain_type(arrow.field(name).type), nullable=can_be_null)
        columns.append(TableColumn(name, form, field, is_filled))
    return columns


def duckdb_unique_keys(connection: "DuckDBPyConnection", table: str) -> list[set[str]]:
    *above, name = table.split(".")
    found = connection.execute(_KEYS, [name, above[0] if above else "main"]).fetchall()
    return [set(names) for (names,) in found]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type for a column that DuckDB gives: its times have the zone of the machine."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC" if kind.tz else None)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
