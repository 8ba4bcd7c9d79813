"""Types of columns: as SQLAlchemy finds them in a table, and as it makes them for Arrow's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.connectors.database.table_writer import TableColumn, check_texts
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

_DECIMAL: Final = pa.decimal128(38, 9)  # Of a column that does not say how many digits it has.
UTC: Final = "UTC"  #: The comment of a column of MySQL, which has no times with a zone.
_KEY_CHARS: Final = 255  # MySQL wants to know how long the text of a key can be.
_WHOLE: Final = {
    "TINYINT": (pa.int8(), pa.uint8()),
    "SMALLINT": (pa.int16(), pa.uint16()),
    "BIGINT": (pa.int64(), pa.uint64()),
}


def arrow_of(
    kind: "TypeEngine[Any]", dialect: str, comment: str = ""
) -> tuple[pa.DataType | None, str]:
    """Return the Arrow type that keeps the values of a column, and what their text must be.

    A time without a zone is one without it here, too; TIMESTAMP of SQLite and MySQL is in UTC, and
    so is a DATETIME with that comment.
    """
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    name, form = type(kind).__name__.upper(), ""
    found: pa.DataType | None = None
    if isinstance(kind, sa.Boolean) or (name == "TINYINT" and vars(kind)["display_width"] == 1):
        found = pa.bool_()
    elif isinstance(kind, sa.Integer):
        signed, unsigned = _WHOLE.get(name, (pa.int32(), pa.uint32()))
        found = unsigned if getattr(kind, "unsigned", False) else signed
        if dialect == "sqlite":
            found = pa.int64()
    elif isinstance(kind, sa.Float):
        is_short = name == ("FLOAT" if dialect == "mysql" else "REAL")
        found = pa.float32() if is_short and dialect != "sqlite" else pa.float64()
    elif isinstance(kind, sa.Numeric):
        digits = kind.precision
        found = _DECIMAL if digits is None else pa.decimal128(digits, kind.scale or 0)
    elif isinstance(kind, sa.Uuid):
        found, form = pa.string(), "uuid"
    elif isinstance(kind, sa.JSON):
        found, form = pa.string(), "json"
    elif isinstance(kind, sa.String):
        found = pa.string()
    elif isinstance(kind, sa.types._Binary):  # noqa: SLF001 - the base of BLOB, BYTEA, VARBINARY
        found = pa.binary()
    elif isinstance(kind, sa.DateTime):
        is_aware = kind.timezone if dialect == "postgresql" else isinstance(kind, sa.TIMESTAMP)
        is_aware |= comment == UTC
        found = pa.timestamp("us", "UTC" if is_aware else None)
    elif isinstance(kind, sa.Date):
        found = pa.date32()
    return found, form


def sql_type(field: pa.Field, dialect: str, *, is_key: bool) -> "TypeEngine[Any]":  # noqa: PLR0911 - a table
    import sqlalchemy as sa  # noqa: PLC0415 - an extra
    from sqlalchemy.dialects import mysql  # noqa: PLC0415

    at, kind, is_mysql = pa.types, field.type, dialect == "mysql"
    if at.is_boolean(kind):
        return sa.Boolean()
    if at.is_integer(kind) and kind != pa.uint64():
        return sa.BigInteger() if kind.bit_width > 32 or kind == pa.uint32() else sa.Integer()  # noqa: PLR2004
    if at.is_floating(kind):
        return sa.Double()
    if at.is_decimal(kind):
        return sa.Numeric(kind.precision, kind.scale)
    if at.is_string(kind) or at.is_large_string(kind):
        if is_mysql:
            return (
                mysql.VARCHAR(_KEY_CHARS, collation="utf8mb4_bin") if is_key else mysql.LONGTEXT()
            )
        return sa.Text()
    if at.is_binary(kind):
        return mysql.LONGBLOB() if is_mysql else sa.LargeBinary()
    if at.is_date32(kind):
        return sa.Date()
    if at.is_timestamp(kind):
        if is_mysql:
            return mysql.DATETIME(fsp=6)  # Its TIMESTAMP ends in 2038, and has no second 0.
        return sa.TIMESTAMP(timezone=True) if kind.tz else sa.DateTime()
    raise ConfigError(
        f"column {field.name!r} is {kind}, for which databases have no type here: make the table "
        "yourself, or map the field to a text"
    )


def check_values(dialect: str, columns: Sequence[TableColumn], rows: pa.RecordBatch) -> None:
    """Refuse what a database would change without a word, or refuse when it is too late."""
    check_texts(columns, rows)
    if dialect == "postgresql":
        return
    for column in columns:
        cells = rows.column(column.name)
        if pa.types.is_floating(cells.type):
            odd = pc.is_nan(cells) if dialect == "sqlite" else pc.invert(pc.is_finite(cells))
            if pc.any(odd).as_py():
                raise ValueError(
                    f"column {column.name!r}: {dialect} has no such number: "
                    f"{pc.filter(cells, odd)[0].as_py()}"
                )
