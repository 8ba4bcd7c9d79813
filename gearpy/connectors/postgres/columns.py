"""The columns of a table as Arrow has them, and rows as PostgreSQL copies them."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.connectors.database.table_writer import TableColumn
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import Connection

#: Types of PostgreSQL by name, and the Arrow types that keep their values.
_ARROW: Final[dict[str, Any]] = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "uuid": pa.string(),
    "json": pa.string(),
    "jsonb": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_LIMITED: Final = frozenset({"varchar", "bpchar"})
#: A numeric column that does not say how many digits it has is read so.
_DECIMAL: Final = pa.decimal128(38, 9)
_HEADER_BYTES: Final = 4  # PostgreSQL adds them to the modifier of a type.
_COLUMNS: Final = """
select a.attname, t.typname, a.atttypmod, a.attnotnull,
       a.attgenerated <> '' or a.attidentity <> '' or a.atthasdef
from pg_attribute a join pg_type t on t.oid = a.atttypid
where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""


def columns_of(connection: "Connection[Any]", table: str) -> list[TableColumn]:
    """Return the columns of a table; those of types that there are not here are null."""
    return list(map(_column, connection.execute(_COLUMNS, (table,)).fetchall()))


def _column(row: Sequence[Any]) -> TableColumn:
    name, kind, modifier, is_needed, is_filled = row
    size = modifier - _HEADER_BYTES
    arrow = _ARROW.get(kind, pa.null())
    if kind == "numeric":
        arrow = _DECIMAL if size < 0 else pa.decimal128(size >> 16, size & 0xFFFF)
    limit = size if kind in _LIMITED and size >= 0 else 0
    return TableColumn(name, kind, pa.field(name, arrow, nullable=not is_needed), is_filled, limit)


def type_of(field: pa.Field) -> str:
    """Return the type of PostgreSQL for an Arrow field, as ``create table`` takes it."""
    for name, arrow in _ARROW.items():
        if field.type == arrow:
            return name
    if pa.types.is_decimal(field.type):
        return f"numeric({field.type.precision},{field.type.scale})"
    if pa.types.is_timestamp(field.type):
        return "timestamptz" if field.type.tz else "timestamp"
    if pa.types.is_large_string(field.type):
        return "text"
    raise ConfigError(
        f"column {field.name!r} is {field.type}, for which PostgreSQL has no type here: make the "
        "table yourself, or map the field to a text"
    )


def copied(rows: pa.RecordBatch) -> bytes:
    """Return rows as ``copy from stdin (format csv)`` takes them."""
    import pyarrow.csv as arrow_csv  # type: ignore[import-untyped] # noqa: PLC0415 - for writers

    columns = []
    for column in rows.columns:
        if pa.types.is_binary(column.type):
            cells = [None if cell is None else f"\\x{cell.hex()}" for cell in column.to_pylist()]
            columns.append(pa.array(cells, pa.string()))
        else:
            is_time = pa.types.is_timestamp(column.type)
            columns.append(pc.cast(column, pa.string()) if is_time else column)
    out = BytesIO()
    options = arrow_csv.WriteOptions(include_header=False)
    batch = pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
    arrow_csv.write_csv(batch, out, options)
    return out.getvalue()
