"""Event times out of a column, all at once.

Timestamps and dates without a zone are taken as UTC. Numbers count from 1970 in a unit; texts are
ISO 8601, with a zone or without.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, TypeAlias, get_args

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import in_microseconds

#: The unit of numbers in a column.
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]

_UNITS: Final = get_args(TimeUnit)
_MS_PER: Final = {"s": 1000, "ms": 1}
_PER_MS: Final = {"us": 1000, "ns": 1_000_000}
_MS_PER_DAY: Final = 86_400_000
_ERRORS: Final = (pa.ArrowException, ValueError, ArithmeticError)
_ZONE: Final = r"(?:[Zz]|[+-]\d\d:?\d\d|[+-]\d\d)$"


def times_of(column: pa.Array, unit: TimeUnit = "ms") -> pa.Array:
    """Return milliseconds since the epoch as int64; null where there is no time.

    Fractions of a millisecond are cut off towards the past.

    Raises:
        ValueError: a value is no time, or too far away.
    """
    make = _maker(column.type, unit)
    if make is None:
        raise ValueError(_advice(column.type))
    try:
        times = make(column)
        found = pc.min_max(times)
    except _ERRORS as error:
        raise ValueError(str(error)) from error
    least, most = found["min"].as_py(), found["max"].as_py()
    if least is not None and (least <= MIN_MS or most >= MAX_MS):
        raise ValueError("an event time does not fit 64-bit milliseconds")
    return times


def check_time_column(operator: str, name: str, schema: pa.Schema) -> None:
    if name not in schema.names:
        raise ConfigError(
            f"{operator}: time={name!r} is no column: there are {', '.join(schema.names) or 'none'}"
        )
    kind = schema.field(name).type
    if _maker(kind, "ms") is None:
        raise ConfigError(f"{operator}: time={name!r}: {_advice(kind)}")


def check_unit(operator: str, unit: str) -> None:
    if unit not in _UNITS:
        raise ConfigError(f"{operator}: time_unit is {unit!r}, must be one of {', '.join(_UNITS)}")


def _maker(kind: Any, unit: TimeUnit) -> Callable[[pa.Array], pa.Array] | None:
    if pa.types.is_timestamp(kind):
        return partial(_whole, unit=kind.unit)
    if pa.types.is_integer(kind):
        return partial(_whole, unit=unit)
    if pa.types.is_date(kind):
        return lambda column: pc.multiply_checked(
            column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), _MS_PER_DAY
        )
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda column: _whole(times_of_texts(column), "us")
    if pa.types.is_null(kind):
        return lambda column: column.cast(pa.int64())
    return None


def _advice(kind: Any) -> str:
    return (
        f"{kind} has no event times: they are timestamps, dates, whole numbers with time_unit=, or "
        "ISO 8601 texts; or give a function of the row"
    )


def _whole(column: pa.Array, unit: str) -> pa.Array:
    counts = column.cast(pa.int64())
    if unit in _MS_PER:
        factor = _MS_PER[unit]
        return counts if factor == 1 else pc.multiply_checked(counts, factor)
    per_ms = _PER_MS[unit]
    # Arrow divides towards zero, which before 1970 is towards the future.
    quotient = pc.divide(counts, per_ms)
    is_above = pc.greater(pc.multiply(quotient, per_ms), counts)
    return pc.subtract(quotient, is_above.cast(pa.int64()))


def times_of_texts(column: pa.Array) -> pa.Array:
    """Return texts as times in UTC, those without a zone, too."""
    texts = pc.utf8_trim_whitespace(column)
    has_zone = pc.match_substring_regex(texts, _ZONE)
    # A date alone ends like a zone: 2026-03-01.
    has_zone = pc.and_(has_zone, pc.greater(pc.utf8_length(texts), 10))
    if pc.all(has_zone).as_py():
        return moments_of(texts, "UTC")
    naive = pc.if_else(has_zone, pa.scalar(None, texts.type), texts)
    zoned = pc.if_else(has_zone, texts, pa.scalar(None, texts.type))
    in_utc = moments_of(naive, None).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(in_utc, moments_of(zoned, "UTC"))


def moments_of(texts: pa.Array, zone: str | None) -> pa.Array:
    """Return texts, with a zone or all without, as times; what is finer than a µs is cut."""
    try:
        return texts.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid as error:
        try:
            return in_microseconds(texts.cast(pa.timestamp("ns", zone)))
        except pa.ArrowInvalid:
            raise error from None
