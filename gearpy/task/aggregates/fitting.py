"""Which columns of a table can be keys, and which aggregates can take which."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.core.window.accumulators import Aggregate, Kind

UNIT_US: Final = {"s": 1_000_000, "ms": 1000, "us": 1}
DIGITS_MAX: Final = 76
#: A sum of decimals has so many digits more than they have: a table has fewer rows than ten to it.
MORE_DIGITS: Final = 10
BITS_128: Final = 128


def plain(column: pa.Array) -> pa.Array:
    """Return a column in a form with which Arrow can compute; its values stay the same."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.dictionary_decode())
    for is_kind, make in _PLAINER:
        if is_kind(kind):
            return column.cast(make(kind))
    return column


def _is_short_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind)) and kind.bit_width < BITS_128


_PLAINER: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...]] = (
    (pa.types.is_float16, lambda _: pa.float32()),
    (_is_short_decimal, lambda kind: pa.decimal128(kind.precision, kind.scale)),
)


# -- which columns fit -------------------------------------------------------------------------


def key_mistake(kind: pa.DataType) -> str | None:
    kind = _plain_type(kind)
    return None if any(is_kind(kind) for is_kind in _HASHABLE) else "is no key"


def roles_of(aggregate: Aggregate) -> Iterator[tuple[Any, Kind]]:
    """Yield the columns of an aggregate, each with the one that must be able to take it."""
    if aggregate.kind != "count":
        yield aggregate.of, aggregate.kind
    if aggregate.is_by:
        yield aggregate.by, "max"
    if aggregate.where is not None:
        yield aggregate.where, "any"


def values_of(aggregate: Aggregate, columns: Mapping[Any, pa.Array]) -> pa.Array:
    """Return the value of each row that an aggregate takes; see `Aggregate.value`."""
    column = columns[aggregate.of]
    if aggregate.where is not None:
        counts = truth(columns[aggregate.where]).fill_null(False)
        if not aggregate.is_by:
            return pc.if_else(counts, column, pa.scalar(None, column.type))
    if not aggregate.is_by:
        return column
    by = columns[aggregate.by]
    if aggregate.where is not None:
        by = pc.if_else(counts, by, pa.scalar(None, by.type))
    return pa.StructArray.from_arrays([by, column], ["by", "of"])


def unfit(aggregate: Kind, kind: pa.DataType) -> str | None:
    """Say why an aggregate does not fit a column of this type; None if it fits."""
    kind = _plain_type(kind)
    what, fitting = _FITTING[aggregate]
    if fitting is None or pa.types.is_null(kind) or any(is_kind(kind) for is_kind in fitting):
        if aggregate in {"sum", "mean"} and pa.types.is_decimal(kind):
            most = DIGITS_MAX - MORE_DIGITS
            if kind.precision > most:
                return f"has more than {most} digits and cannot be added up"
        return None
    return what


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    for is_kind, make in _PLAINER:
        if is_kind(kind):
            return make(kind)
    return kind


def is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def _is_length_of_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_duration(kind)) and kind.unit in UNIT_US


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind))


_IsKind = Callable[[Any], bool]
_HASHABLE: Final[tuple[_IsKind, ...]] = (
    is_number, is_text, _is_time, _is_length_of_time, pa.types.is_null
)  # fmt: skip
_ORDERED: Final[tuple[_IsKind, ...]] = (is_number, is_text, _is_time, _is_length_of_time)
_FITTING: Final[dict[str, tuple[str, tuple[_IsKind, ...] | None]]] = {
    "count": ("", None),
    "sum": ("cannot be added up", (is_number, _is_length_of_time)),
    "mean": ("cannot be added up", (is_number, _is_length_of_time)),
    "min": ("has no order here", _ORDERED),
    "max": ("has no order here", _ORDERED),
    "top": ("has no order here", _ORDERED),
    "first": ("", None),
    "last": ("", None),
    "collect": ("", None),
    "distinct": ("has values that cannot be told apart here", _ORDERED),
    "variance": ("has no variance", (is_number,)),
    "stddev": ("has no variance", (is_number,)),
    **dict.fromkeys(
        ("any", "all", "count_if"),
        ("is neither true nor false", (is_number, is_text, _is_length_of_time)),
    ),
    "quantile": ("has no quantiles", (is_number,)),
    "ewma": ("has no mean", (is_number,)),
    "approx_distinct": ("has values that cannot be told apart here", _ORDERED),
    "mode": ("has values that cannot be told apart here", _ORDERED),
    "arg_min": ("", None),
    "arg_max": ("", None),
}


def truth(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return column.cast(pa.bool_())
    if is_text(kind):
        return pc.not_equal(pc.binary_length(column), 0)
    if pa.types.is_duration(kind):
        column = column.cast(pa.int64())
    zero = Decimal(0) if pa.types.is_decimal(column.type) else 0
    return pc.not_equal(column, pa.scalar(zero, column.type))
