"""Event times out of a column, all at once.

Numbers count from 1970 in a unit; texts are ISO 8601. Timestamps, dates and texts without a zone
are of the zone that is told, UTC by default.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias, get_args

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.core.base.zones import Zone, ZoneName, zone_of
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import in_microseconds

#: The unit of numbers in a column.
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]

_UNITS: Final = get_args(TimeUnit)
_MS_PER: Final = {"s": 1000, "ms": 1}
_PER_MS: Final = {"us": 1000, "ns": 1_000_000}
_MS_PER_DAY: Final = 86_400_000
_ERRORS: Final = (pa.ArrowException, ValueError, ArithmeticError)
#: So many changes of clocks are compared with all times of a batch.
_SPANS_MAX: Final = 32
_ZONE: Final = r"(?:[Zz]|[+-]\d\d:?\d\d|[+-]\d\d)$"


@dataclass(frozen=True, slots=True)
class TimeForm:
    """How event times are written: the unit of numbers, and the zone of what tells none."""

    unit: TimeUnit = "ms"
    zone: str = "UTC"

    def note(self, name: str | Expr | None, schema: pa.Schema | None) -> str:
        """Return for people which zone was taken; nothing where all times tell it themselves."""
        if name is None:
            return ""
        kind = None if schema is None else type_at(schema, name)
        is_plain = kind is not None and (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or (pa.types.is_timestamp(kind) and kind.tz is not None)
        )
        return "" if is_plain else f"times in {name} that tell no zone are of {self.zone}"


PLAIN_TIMES: Final = TimeForm()


def time_form(operator: str, unit: TimeUnit, zone: ZoneName | None) -> TimeForm:
    """Return how event times are written.

    Raises:
        ConfigError: there is no such unit or zone.
    """
    if unit not in _UNITS:
        raise ConfigError(f"{operator}: time_unit is {unit!r}, must be one of {', '.join(_UNITS)}")
    try:
        return TimeForm(unit, "UTC" if zone is None else zone_of(zone).name)
    except ConfigError as error:
        raise ConfigError(f"{operator}: {error}") from None


def type_at(schema: pa.Schema, name: str | Expr) -> Any:
    """Return the type of a column, or of a field in a record in it; None if it is not there.

    Raises:
        ConfigError: an expression does not fit the schema.
    """
    if isinstance(name, Expr):
        return name.bind(schema).type
    if name in schema.names:
        return schema.field(name).type
    first, *path = name.split(".")
    kind = schema.field(first).type if first in schema.names else None
    for part in path:
        if kind is None or not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind


def column_at(batch: Any, name: str | Expr) -> Any:
    """Return a column of a batch or table, a field of the records in it, or an expression."""
    if isinstance(name, Expr):
        return name.bind(batch.schema).columns(batch)
    if name in batch.schema.names:
        return batch.column(name)
    first, *path = name.split(".")
    return pc.struct_field(batch.column(first), path)


def cell_at(row: Any, name: str) -> Any:
    """Return a field of a row, or one of a record in it.

    Raises:
        LookupError, TypeError: it is not there.
    """
    if name in row or "." not in name:
        return row[name]
    for part in name.split("."):
        row = row[part]
    return row


def times_of(column: pa.Array, form: TimeForm = PLAIN_TIMES) -> pa.Array:
    """Return milliseconds since the epoch as int64; null where there is no time.

    Fractions of a millisecond are cut off towards the past.

    Raises:
        ValueError: a value is no time, or too far away.
    """
    make = _maker(column.type, form)
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


def check_time_column(operator: str, name: str | Expr, schema: pa.Schema) -> None:
    try:
        kind = type_at(schema, name)
    except ConfigError as error:
        raise ConfigError(f"{operator}: time={error}") from None
    if kind is None:
        raise ConfigError(
            f"{operator}: time={name!r} is no column: there are {', '.join(schema.names) or 'none'}"
        )
    if _maker(kind, PLAIN_TIMES) is None:
        raise ConfigError(f"{operator}: time={name!r}: {_advice(kind)}")


def _maker(kind: Any, form: TimeForm) -> Callable[[pa.Array], pa.Array] | None:
    zone = None if form.zone == "UTC" else zone_of(form.zone)
    if pa.types.is_timestamp(kind):
        whole = partial(_whole, unit=kind.unit)
        return whole if kind.tz is not None else lambda column: _in_utc(whole(column), zone)
    if pa.types.is_integer(kind):
        return partial(_whole, unit=form.unit)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return partial(_of_fractions, unit=form.unit)
    if pa.types.is_date(kind):
        return lambda column: _in_utc(
            pc.multiply_checked(
                column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), _MS_PER_DAY
            ),
            zone,
        )
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda column: _of_texts(column, zone)
    if pa.types.is_null(kind):
        return lambda column: column.cast(pa.int64())
    return None


def _advice(kind: Any) -> str:
    return (
        f"{kind} has no event times: they are timestamps, dates, numbers with time_unit=, or "
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


def _of_fractions(column: pa.Array, unit: str) -> pa.Array:
    counts = pc.multiply(column.cast(pa.float64()), _MS_PER.get(unit) or 1 / _PER_MS[unit])
    # A double has no more digits of a ms today; what is cut off must not be its last one.
    return pc.floor(pc.round(counts, 2)).cast(pa.int64())


def _of_texts(column: pa.Array, zone: Zone | None) -> pa.Array:
    times = _whole(times_of_texts(column), "us")
    if zone is None:
        return times
    return pc.if_else(_tell_zone(pc.utf8_trim_whitespace(column)), times, _in_utc(times, zone))


def _in_utc(local: pa.Array, zone: Zone | None) -> pa.Array:
    """Return the times that clocks of a zone show; see `Zone.time_ms`."""
    if zone is None or (ends := pc.min_max(local).as_py())["min"] is None:
        return local
    spans = zone.spans_between(ends["min"], ends["max"])
    if len(spans) > _SPANS_MAX:
        times = [None if each is None else zone.time_ms(each) for each in local.to_pylist()]
        return pa.array(times, pa.int64())
    offsets = pa.scalar(spans[0][1], pa.int64())
    for since_ms, offset in spans[1:]:
        is_since = pc.greater_equal(local, since_ms)
        offsets = pc.if_else(is_since, pa.scalar(offset, pa.int64()), offsets)
    return pc.subtract_checked(local, offsets)


def times_of_texts(column: pa.Array) -> pa.Array:
    """Return texts as times in UTC, those without a zone, too."""
    texts = pc.utf8_trim_whitespace(column)
    has_zone = _tell_zone(texts)
    if pc.all(has_zone).as_py():
        return moments_of(texts, "UTC")
    naive = pc.if_else(has_zone, pa.scalar(None, texts.type), texts)
    zoned = pc.if_else(has_zone, texts, pa.scalar(None, texts.type))
    in_utc = moments_of(naive, None).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(in_utc, moments_of(zoned, "UTC"))


def _tell_zone(texts: pa.Array) -> pa.Array:
    # A date alone ends like a zone: 2026-03-01.
    has_end = pc.match_substring_regex(texts, _ZONE)
    return pc.and_(has_end, pc.greater(pc.utf8_length(texts), 10))


def moments_of(texts: pa.Array, zone: str | None) -> pa.Array:
    """Return texts, with a zone or all without, as times; what is finer than a µs is cut."""
    try:
        return texts.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid as error:
        try:
            return in_microseconds(texts.cast(pa.timestamp("ns", zone)))
        except pa.ArrowInvalid:
            raise error from None
