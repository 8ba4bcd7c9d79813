"""From records to Arrow columns; a record that does not fit is refused, never made to fit."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Final, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.stamps import each

__all__ = ["as_row", "batch_of", "schema_of"]

Row: TypeAlias = dict[str, Any]

_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None), datetime, date, Decimal})
#: Types of which pyarrow cuts no fraction off, so that values need not be looked at.
_WHOLE: Final = frozenset({int, type(None), datetime, date, time, timedelta})
#: What pyarrow raises on a value that it cannot convert.
_ARROW_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, ArithmeticError)


def as_row(record: Any) -> Row:
    """Return the fields of a mapping, dataclass or NamedTuple, also of those inside of it.

    Raises:
        TypeError: it is nothing of that kind.
    """
    if not (isinstance(record, Mapping) or _has_fields(record)):
        raise TypeError(
            f"{type(record).__name__} has no fields: map it to a dict, dataclass or NamedTuple "
            "before"
        )
    row: Row = _cell(record)
    return row


def schema_of(operator: str, rows: Sequence[Row], *, records: Sequence[Any]) -> pa.Schema:
    """Return a schema in which the rows fit.

    Raises:
        OperatorError: there is none; names the first record that does not fit to the very first.
    """
    try:
        return _inferred(rows)
    except _ARROW_ERRORS:
        (schema,) = each(operator, _schema_of_one, rows[:1], records=records)
        batch_of(operator, rows, schema, records=records)
        return schema


def batch_of(
    operator: str, rows: Sequence[Row], schema: pa.Schema, *, records: Sequence[Any]
) -> pa.RecordBatch:
    """Return the rows as columns. A field that a row lacks is null.

    Args:
        operator: name to blame.
        rows: the fields of the records.
        schema: which columns there are.
        records: what to name when one does not fit.

    Raises:
        OperatorError: a record does not fit.
    """
    try:
        return _batch(rows, schema)
    except _ARROW_ERRORS:
        each(operator, lambda row: _batch([row], schema), rows, records=records)
        raise


def _batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    names = frozenset(schema.names)
    for row in rows:
        if not row.keys() <= names:
            _refuse_unknown(row, names)
    columns = [_column(field, [row.get(field.name) for row in rows]) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _refuse_unknown(row: Row, names: Iterable[str]) -> None:
    unknown = next(name for name in row if name not in names)
    raise ValueError(
        f"field {unknown!r} is not in the schema, which has {', '.join(sorted(names))}: leave it "
        "out, or give a schema with it"
    )


def _column(field: Any, values: list[Any]) -> pa.Array:
    try:
        _check(field.type, values)
        array = pa.array(values, type=field.type)
    except _ARROW_ERRORS as error:
        raise ValueError(f"field {field.name!r} is {field.type}: {error}") from error
    if array.null_count and not field.nullable:
        raise ValueError(f"field {field.name!r} is missing or None, the schema needs a value")
    return array


def _inferred(rows: Sequence[Row]) -> pa.Schema:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise ValueError("there are no fields in it")
    columns = [pa.array([row.get(name) for row in rows]) for name in names]
    return pa.schema(
        [pa.field(name, array.type) for name, array in zip(names, columns, strict=True)]
    )


def _schema_of_one(row: Row) -> pa.Schema:
    return _inferred([row])


# -- what pyarrow would cut without a word ---------------------------------------------------


def _check(kind: Any, values: Iterable[Any]) -> None:
    """Refuse values of which a column would keep a part only."""
    if pa.types.is_nested(kind):
        _check_nested(kind, values)
        return
    found = set(map(type, values))
    if _is_whole(kind) and not found <= _WHOLE:
        for value in values:
            if isinstance(value, Real | Decimal) and value % 1 != 0:
                raise ValueError(f"{value!r} is no whole number")
    if pa.types.is_date(kind) and datetime in found:
        raise ValueError("a datetime has more than the date: take .date()")


def _check_nested(kind: Any, values: Iterable[Any]) -> None:
    present = [value for value in values if value is not None]
    if pa.types.is_struct(kind):
        names = frozenset(kind.field(place).name for place in range(kind.num_fields))
        for value in present:
            if not value.keys() <= names:
                _refuse_unknown(value, names)
        for name in names:
            _check(kind.field(name).type, [value.get(name) for value in present])
    elif pa.types.is_map(kind):
        pairs = [pair for value in present for pair in _pairs(value)]
        _check(kind.key_type, [key for key, _ in pairs])
        _check(kind.item_type, [item for _, item in pairs])
    elif hasattr(kind, "value_type"):  # A list of any kind.
        _check(kind.value_type, [item for value in present for item in value])


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else value


def _is_whole(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


# -- records ---------------------------------------------------------------------------------


def _has_fields(value: Any) -> bool:
    return (isinstance(value, tuple) and hasattr(value, "_fields")) or (
        dataclasses.is_dataclass(value) and not isinstance(value, type)
    )


def _cell(value: Any) -> Any:  # noqa: PLR0911 - one line for each kind
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {key: _cell(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _cell(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, tuple):  # It stays one: a pair of a map must be.
        return tuple(_cell(item) for item in value)
    if isinstance(value, list | set | frozenset):
        return [_cell(item) for item in value]
    if _has_fields(value):
        return {each.name: _cell(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return value
