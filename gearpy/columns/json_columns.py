"""The JSON of the rows of a table, made a column at a time: the same text as of each row alone."""

from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.columns.json_text import json_of
from gearpy.columns.results import (
    WINDOW_END,
    WINDOW_START,
    ResultColumns,
    pair_keys,
    result_columns,
    running_columns,
)
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import cells_of

_ESCAPED: Final = r'["\\\x00-\x1f]'
#: Powers of ten, and small numbers.
_OTHER_FORM: Final = r"e|^-?0\.0000"
_MOMENTS: Final = (pa.timestamp("us"), pa.timestamp("us", "UTC"))
_US_PER_MS: Final = 1000
#: The years 1 to 9999, which Python has.
_FIRST_US: Final = -62_135_596_800_000_000
_LAST_US: Final = 253_402_300_799_999_999


def json_of_rows(batch: pa.RecordBatch) -> bytes:
    """Return a line for each row, with the text that `json_of` gives it.

    Raises:
        TypeError, ValueError: JSON has no form for a value, or the lines are too long for one
            column: each row alone tells which.
    """
    columns = result_columns(batch.schema)
    cells = dict(zip(batch.schema.names, map(_texts, batch.columns), strict=True))
    if (running := running_columns(batch.schema)) is not None:
        made = _joined("[", _key(running, cells), ",", _value(running, cells), "]\n")
        return b"" if not len(made) else made.buffers()[2].to_pybytes()
    if (names := pair_keys(batch.schema)) is not None and len(names) > 1:
        cells = {"key": _list([cells.pop(name) for name in names]), **cells}
    if columns is not None:
        cells = {
            "key": _key(columns, cells),
            "value": _value(columns, cells),
            "start": _time(batch.column(WINDOW_START), MIN_MS),
            "end": _time(batch.column(WINDOW_END), MAX_MS),
            **{each.name: cells[each.name] for each in columns.behind},
        }
    made = _object(cells, "}\n") if cells else pa.array(["{}\n"] * batch.num_rows)
    return b"" if not len(made) else made.buffers()[2].to_pybytes()


def _key(columns: ResultColumns, cells: dict[str, Any]) -> Any:
    keys = [cells[name] for name in columns.key]
    return keys[0] if len(keys) == 1 else _list(keys) if keys else "null"


def _value(columns: ResultColumns, cells: dict[str, Any]) -> Any:
    values = {name: cells[name] for name in columns.value}
    return values[columns.value[0]] if columns.is_single else _object(values, "}")


def _object(fields: dict[str, Any], end: str) -> pa.Array:
    parts, before = list[Any](), "{"
    for name, texts in fields.items():
        parts += [f"{before}{json_of(name)}:", texts]
        before = ","
    return _joined(*parts, end)


def _list(items: list[pa.Array]) -> pa.Array:
    parts = [part for each in items for part in (",", each)]
    return _joined("[", *parts[1:], "]")


def _joined(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _time(column: pa.Array, edge_ms: int) -> pa.Array:
    return _texts(pc.divide(column.cast(pa.int64()), _US_PER_MS).fill_null(edge_ms))


def _texts(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        texts = column.cast(pa.string())
    elif pa.types.is_string(kind):
        other = pc.match_substring_regex(column, _ESCAPED)
        texts = _written(_joined('"', column, '"'), column, other)
    elif pa.types.is_floating(kind) and pc.all(pc.is_finite(column)).as_py():
        # Arrow gives the same digits, but not always in the form that Python gives them.
        texts = column.cast(pa.float64()).cast(pa.string())
        other = pc.match_substring_regex(texts, _OTHER_FORM)
        texts = pc.if_else(pc.match_substring(texts, "."), texts, _joined(texts, ".0"))
        texts = _written(texts, column, other)
    elif kind in _MOMENTS and _are_in_years(column.view(pa.int64())):
        texts = column.view(pa.timestamp("us")).cast(pa.string()).cast(pa.binary())
        clock = pc.binary_slice(texts, 11, 26)
        clock = pc.if_else(pc.ends_with(clock, ".000000"), pc.binary_slice(clock, 0, 8), clock)
        zone = b'"' if kind.tz is None else b'+00:00"'
        texts = pc.binary_join_element_wise(
            b'"', pc.binary_slice(texts, 0, 10), b"T", clock, zone, b""
        ).cast(pa.string())
    else:
        texts = pa.array(map(json_of, cells_of(column)), pa.string())
    return texts.fill_null("null")


def _are_in_years(counts: pa.Array) -> bool:
    low, high = pc.min_max(counts).as_py().values()
    return low is None or (low >= _FIRST_US and high <= _LAST_US)


def _written(texts: pa.Array, column: pa.Array, other: pa.Array) -> pa.Array:
    """Return the texts, the others as Python writes them."""
    written = map(json_of, column.filter(other).to_pylist())
    return pc.replace_with_mask(texts, other, pa.array(written, pa.string()))
