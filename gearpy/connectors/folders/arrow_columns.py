"""From records to Arrow columns; a record that does not fit is refused, never made to fit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.files.stamps import each
from gearpy.core.base.column_values import check_column, has_fields, plain_cells

__all__ = ["as_row", "batch_of", "schema_of"]

Row: TypeAlias = dict[str, Any]

#: What pyarrow raises on a value that it cannot convert.
_ARROW_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, ArithmeticError)


def as_row(record: Any) -> Row:
    """Return the fields of a mapping, dataclass or NamedTuple, also of those inside of it.

    Raises:
        TypeError: it is nothing of that kind.
    """
    if not (isinstance(record, Mapping) or has_fields(record)):
        raise TypeError(
            f"{type(record).__name__} has no fields: map it to a dict, dataclass or NamedTuple "
            "before"
        )
    row: Row
    (row,) = plain_cells([record])
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
        check_column(field.type, values)
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
