"""Names of types in SQL."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.sql.parse.tokens import SqlText, did_you_mean

_TYPES: Final = {
    pa.bool_(): ("boolean", "bool"),
    pa.int8(): ("tinyint",),
    pa.int16(): ("smallint",),
    pa.int64(): ("bigint", "int", "integer", "long", "int8"),
    pa.float32(): ("real",),
    pa.float64(): ("double", "double precision", "float", "float8"),
    pa.string(): ("text", "varchar", "string", "char", "character varying"),
    pa.binary(): ("blob", "bytea", "binary"),
    pa.date32(): ("date",),
    pa.timestamp("us", "UTC"): ("timestamp", "timestamptz", "datetime"),
    pa.time64("us"): ("time",),
    pa.duration("us"): ("interval",),
}
_BY_NAME: Final = {name: kind for kind, names in _TYPES.items() for name in names}
_DIGITS_MAX: Final = 38
_DECIMAL: Final = re.compile(r"(?:decimal|numeric)(?:\((\d+)(?:, (\d+))?\))?")


def arrow_type(name: str, at: int, text: SqlText) -> pa.DataType:
    """Return the type that a name of SQL means.

    Raises:
        ConfigError: there is none of that name.
    """
    if name.endswith("[]"):
        return pa.list_(arrow_type(name[:-2], at, text))
    if match := _DECIMAL.fullmatch(name):
        precision, scale = match[1] or "18", match[2] or ("0" if match[1] else "3")
        if not int(scale) <= int(precision) <= _DIGITS_MAX or not int(precision):
            raise text.error(
                at, f"a decimal has 1 to {_DIGITS_MAX} digits, and so many behind the point at most"
            )
        return pa.decimal128(int(precision), int(scale))
    plain = re.sub(r"\(.*\)", "", name)
    if plain not in _BY_NAME:
        raise text.error(at, f"there is no type {name!r}{did_you_mean(plain, _BY_NAME)}")
    return _BY_NAME[plain]
