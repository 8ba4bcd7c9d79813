"""The columns of a table as Arrow has them, and rows as PostgreSQL copies them."""

import json
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.connectors.database.table_writer import TableColumn
from gearpy.errors import ConfigError, OperatorError

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
_PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "json": json.loads,
    "jsonb": json.loads,
    "uuid": UUID,
}
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


def columns_of(
    operator: str, connection: "Connection[Any]", table: str, wanted: Sequence[str] | None
) -> list[TableColumn]:
    """Return the columns of a table, or those wanted; none if there is no such table."""
    rows = connection.execute(_COLUMNS, (table,)).fetchall()
    there = {row[0]: row for row in rows}
    for name in wanted or ():
        if rows and name not in there:
            raise OperatorError(
                operator=operator,
                cause=f"table {table} has no column {name!r}: it has {', '.join(there)}",
                is_final=True,
            )
    names = list(there) if wanted is None or not rows else list(wanted)
    return [_column(operator, table, there[name]) for name in names]


def _column(operator: str, table: str, row: Sequence[Any]) -> TableColumn:
    name, kind, modifier, is_needed, is_filled = row
    size = modifier - _HEADER_BYTES
    arrow = _ARROW.get(kind)
    if kind == "numeric":
        arrow = _DECIMAL if size < 0 else pa.decimal128(size >> 16, size & 0xFFFF)
    if arrow is None:
        raise OperatorError(
            operator=operator,
            cause=f"column {name!r} of table {table} is of type {kind}: leave it out by columns=, "
            "or read a view that casts it to text",
            is_final=True,
        )
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
        if (parse := _PARSERS.get(column.kind)) is not None:
            _check_parsed(column, parse, cells)


def _check_parsed(column: TableColumn, parse: Callable[[str], object], cells: pa.Array) -> None:
    for text in cells.drop_null().to_pylist():
        try:
            parse(text)
        except ValueError as error:
            raise ValueError(
                f"column {column.name!r} is {column.kind}, and {text!r:.100} is none: {error}"
            ) from error


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
