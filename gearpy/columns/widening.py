"""Types of columns that keep the values of several others, so that no first record decides.

Where nobody gave a schema, that of what has come grows with what comes: a column without a value
gets a type, whole numbers become fractions, records get more fields.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.values import array_of, reason_of
from gearpy.messages.table import with_leaves

#: Of decimals without a schema, as in Spark: 20 digits before the point, and 18 behind it.
DECIMAL: Final = pa.decimal128(38, 18)
_DIGITS_MAX: Final = 38
#: Digits of whole numbers, by their bits.
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
_BITS: Final = attrgetter("bit_width")
_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, ArithmeticError, AttributeError)


def type_of_cells(name: str, cells: Any) -> pa.DataType:
    """Return the type of a column of values in Python; a null for what they do not tell."""
    if isinstance(cells, pa.Array):
        return cells.type
    try:
        kind = pa.array(cells).type
    except _ERRORS as error:
        raise ValueError(f"column {name!r}: {reason_of(error, cells)}") from error
    return with_leaves(kind, lambda leaf: DECIMAL if pa.types.is_decimal(leaf) else leaf)


def told_type(name: str, cells: Any, told: pa.DataType | None) -> pa.DataType:
    """Return the type of a column that the program tells, if it keeps these values; else theirs."""
    if told is None or isinstance(cells, pa.Array):
        return type_of_cells(name, cells)
    try:
        array_of(pa.field(name, told), cells)
    except _ERRORS:
        return type_of_cells(name, cells)
    return told


def settled_type(kind: pa.DataType) -> pa.DataType:
    return with_leaves(kind, lambda leaf: pa.string() if pa.types.is_null(leaf) else leaf)


def is_open(kind: pa.DataType) -> bool:
    if pa.types.is_null(kind) or (pa.types.is_struct(kind) and not kind.num_fields):
        return True
    return any(is_open(kind.field(at).type) for at in range(kind.num_fields))


def wider_schema(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return a schema with the columns of both; those that one lacks may be null."""
    return pa.schema(_wider_fields(list(one), list(other)))


def wider_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that keeps the values of two.

    Whether a large whole number can be a fraction is seen when it becomes one.
    """
    at = pa.types
    if one == other or at.is_null(other):
        return one
    if at.is_null(one):
        return other
    if at.is_dictionary(one) or at.is_dictionary(other):
        return wider_type(*(k.value_type if at.is_dictionary(k) else k for k in (one, other)))
    for test, make in _FAMILIES:
        if test(one) and test(other):
            return make(one, other)
    raise ValueError(f"values are {one} and {other}")


def _wider_fields(ones: Sequence[pa.Field], others: Sequence[pa.Field]) -> list[pa.Field]:
    there = {field.name: field for field in others}
    here = {field.name for field in ones}
    fields = []
    for field in ones:
        other = there.get(field.name)
        try:
            kind = field.type if other is None else wider_type(field.type, other.type)
        except ValueError as error:
            raise ValueError(f"column {field.name!r}: {error}") from None
        fields.append(pa.field(field.name, kind, field.nullable or other is None or other.nullable))
    return fields + [field.with_nullable(True) for field in others if field.name not in here]


def _one_of(*names: str) -> Callable[[pa.DataType], bool]:
    tests = [getattr(pa.types, f"is_{name}") for name in names]
    return lambda kind: any(test(kind) for test in tests)


def _number(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    at = pa.types
    kinds = [one, other]
    if any(map(at.is_decimal, kinds)):
        if any(map(at.is_floating, kinds)):
            raise ValueError(f"values are {one} and {other}")
        digits = (
            (_DIGITS[kind.bit_width], 0)
            if at.is_integer(kind)
            else (kind.precision - kind.scale, kind.scale)
            for kind in kinds
        )
        before, behind = map(max, zip(*digits, strict=True))
        if before + behind > _DIGITS_MAX and not all(map(at.is_decimal, kinds)):
            before = _DIGITS_MAX - behind  # Whether a number has fewer digits is seen later.
        if before + behind > _DIGITS_MAX:
            raise ValueError(f"values of {one} and {other} have more than {_DIGITS_MAX} digits")
        return pa.decimal128(_DIGITS_MAX, behind)
    if any(map(at.is_floating, kinds)):
        return pa.float64() if any(map(at.is_integer, kinds)) else max(kinds, key=_BITS)
    if at.is_signed_integer(one) == at.is_signed_integer(other):
        return max(kinds, key=_BITS)
    unsigned = next(kind for kind in kinds if at.is_unsigned_integer(kind))
    return pa.uint64() if unsigned.bit_width == pa.uint64().bit_width else pa.int64()


def _moment(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if (one.tz is None) != (other.tz is None):
        raise ValueError("some times have a time zone, and others have none")
    return pa.timestamp("us", one.tz if one.tz == other.tz else "UTC")


def _list(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    item = one.value_field
    may_be_null = item.nullable or other.value_field.nullable
    kind = wider_type(one.value_type, other.value_type)
    return pa.list_(pa.field(item.name, kind, may_be_null))


def _map(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    may_be_null = one.item_field.nullable or other.item_field.nullable
    item = pa.field("value", wider_type(one.item_type, other.item_type), may_be_null)
    return pa.map_(wider_type(one.key_type, other.key_type), item)


_FAMILIES: Final = (
    (_one_of("integer", "floating", "decimal"), _number),
    (_one_of("string", "large_string", "string_view"), lambda *_: pa.string()),
    (
        _one_of("binary", "large_binary", "fixed_size_binary", "binary_view"),
        lambda *_: pa.binary(),
    ),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_date, lambda *_: pa.date32()),
    (pa.types.is_time, lambda *_: pa.time64("us")),
    (pa.types.is_duration, lambda *_: pa.duration("us")),
    (pa.types.is_struct, lambda one, other: pa.struct(_wider_fields(list(one), list(other)))),
    (pa.types.is_map, _map),
    (lambda kind: hasattr(kind, "value_field"), _list),
)
