"""Types of columns in expressions, and kernels that call the function for rows."""

from collections.abc import Callable, Sequence
from itertools import repeat
from math import inf
from typing import Any, Final, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.types as at  # type: ignore[import-untyped]

from gearpy.messages.table import cells_of

#: A column, or one value for all rows.
Datum: TypeAlias = Any
Kernel: TypeAlias = Callable[..., Datum]
Ruled: TypeAlias = tuple[pa.DataType, Kernel]
Rule: TypeAlias = Callable[..., Ruled]

BOOL, INT, FLOAT, TEXT = pa.bool_(), pa.int64(), pa.float64(), pa.string()
UTC: Final = pa.timestamp("us", "UTC")
DURATION: Final = pa.duration("us")
#: The types that columns are taken as, where they are computed with.
_PLAIN: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...]] = (
    (at.is_uint64, lambda _: pa.uint64()),  # It may have more than int64 can hold.
    (at.is_integer, lambda _: INT),
    (at.is_floating, lambda _: FLOAT),
    (at.is_large_string, lambda _: TEXT),
    (at.is_string_view, lambda _: TEXT),
    (at.is_large_binary, lambda _: pa.binary()),
    (at.is_binary_view, lambda _: pa.binary()),
    (at.is_fixed_size_binary, lambda _: pa.binary()),
    (at.is_decimal, lambda kind: pa.decimal256(kind.precision, kind.scale)),
    (at.is_timestamp, lambda kind: pa.timestamp("us", None if kind.tz is None else "UTC")),
    (at.is_date64, lambda _: pa.date32()),
    (at.is_time, lambda _: pa.time64("us")),
    (at.is_duration, lambda _: DURATION),
)

#: Types whose equal values are alike to every function.
_ALIKE: Final = (at.is_string, at.is_integer, at.is_timestamp, at.is_date)
_LOOKED_AT: Final = 4096


def plain_type(kind: pa.DataType) -> pa.DataType:
    if at.is_dictionary(kind):
        return plain_type(kind.value_type)
    return next((make(kind) for holds, make in _PLAIN if holds(kind)), kind)


def plain(column: pa.Array) -> pa.Array:
    if at.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = plain_type(column.type)
    return column if kind == column.type else column.cast(kind)


def mapped(function: Callable[..., Any], kind: pa.DataType, *, takes_null: bool = False) -> Kernel:
    """Return a kernel that calls a function for rows with the cells of each row.

    Where one column has few different values, the function is called once for each of them.
    """

    def kernel(*datums: Datum) -> Datum:
        arrays = [each for each in datums if not isinstance(each, pa.Scalar)]
        if len(arrays) == 1 and not takes_null and _has_few(arrays[0]):
            encoded = arrays[0].dictionary_encode()
            different = encoded.dictionary
            taken = [each if isinstance(each, pa.Scalar) else different for each in datums]
            return kernel(*taken).take(encoded.indices)
        columns = [
            repeat(each.as_py()) if isinstance(each, pa.Scalar) else cells_of(each)
            for each in datums
        ]
        rows = zip(*columns, strict=False) if arrays else [tuple(each.as_py() for each in datums)]
        values = [
            None if not takes_null and any(cell is None for cell in row) else function(*row)
            for row in rows
        ]
        return pa.array(values, kind) if arrays else pa.scalar(values[0], kind)

    return kernel


def _has_few(column: pa.Array) -> bool:
    """Tell whether the first values of a column, which are quickly looked at, are often alike."""
    if not any(is_of(column.type) for is_of in _ALIKE):
        return False
    first = column.slice(0, _LOOKED_AT)
    return 0 < len(first.dictionary_encode().dictionary) * 2 <= len(first)


def where(holds: Callable[[pa.Array], bool], kernel: Kernel, by_cell: Kernel) -> Kernel:
    """Return a kernel for columns of which something holds, and another one for all others."""

    def apply(datum: Datum) -> Datum:
        is_other = isinstance(datum, pa.Scalar) or not holds(datum)
        return by_cell(datum) if is_other else kernel(datum)

    return apply


def are_ascii(texts: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(texts)).as_py())


def refuse(name: str, kinds: Sequence[pa.DataType], takes: str) -> TypeError:
    return TypeError(f"{name} takes {takes}, not {' and '.join(map(str, kinds))}")


def are_within(numbers: Datum, low: float, high: float = inf) -> bool:
    """Tell whether all numbers, but those that are missing, lie between two bounds."""
    if isinstance(numbers, pa.Scalar):
        least = most = numbers.as_py()
    else:
        found = pc.min_max(numbers)
        least, most = found["min"].as_py(), found["max"].as_py()
    return least is None or (least >= low and most <= high)


def floored(left: Datum, right: Datum) -> tuple[Datum, Datum]:
    """Return quotient and remainder, rounded down, where Arrow rounds towards 0."""
    quotient = pc.divide_checked(left, right)
    rest = pc.subtract(left, pc.multiply(quotient, right))
    if are_within(left, 0) and are_within(right, 0):
        return quotient, rest
    is_above = pc.and_(pc.not_equal(rest, 0), pc.xor(pc.less(rest, 0), pc.less(right, 0)))
    one_less = pc.cast(is_above, INT)
    return pc.subtract(quotient, one_less), pc.add(rest, pc.multiply(one_less, right))
