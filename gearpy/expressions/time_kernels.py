"""Functions of times over columns."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.types as at  # type: ignore[import-untyped]

from gearpy.expressions.arrow_types import (
    DURATION,
    INT,
    TEXT,
    UTC,
    Datum,
    Kernel,
    Rule,
    Ruled,
    floored,
    mapped,
    refuse,
)
from gearpy.expressions.time_functions import (
    OF_CLOCK,
    PARTS,
    TIME_FUNCTIONS,
    UNITS_US,
    step_us,
    zone_info,
)

_NAIVE: Final = pa.timestamp("us")
_KERNELS: Final[Mapping[str, Callable[[Datum], Datum]]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "weekday": lambda local: pc.day_of_week(local, count_from_zero=False, week_start=1),
    "day_of_year": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}


def _bare(datum: Datum) -> Datum:
    """Return times of UTC as times without a zone, for which Arrow needs no table of zones."""
    if datum.type == _NAIVE:
        return datum
    return datum.cast(INT).cast(_NAIVE) if isinstance(datum, pa.Scalar) else datum.view(_NAIVE)


def _check_time(name: str, kind: pa.DataType, *, dates: bool = True) -> None:
    if not (at.is_timestamp(kind) or (dates and at.is_date(kind))):
        raise refuse(name, [kind], "a time")


def _by_rows(name: str, gives: pa.DataType, options: Mapping[str, Any]) -> Ruled:
    function = TIME_FUNCTIONS[name]
    return gives, mapped(lambda value: function(value, **options), gives)


def _part(name: str) -> Rule:
    kernel = _KERNELS.get(name)

    def rule(kind: pa.DataType, *, zone: str | None = None) -> Ruled:
        _check_time(name, kind, dates=name not in OF_CLOCK)
        if zone is not None:
            zone_info(zone)
        if kernel is None or (zone is not None and at.is_timestamp(kind)):
            return _by_rows(name, INT, {"zone": zone})
        if at.is_date(kind):
            return INT, lambda datum: pc.cast(kernel(datum), INT)
        return INT, lambda datum: pc.cast(kernel(_bare(datum)), INT)

    return rule


def _of_time(name: str, gives: pa.DataType, *, dates: bool = True) -> Rule:
    def rule(kind: pa.DataType, **options: Any) -> Ruled:
        _check_time(name, kind, dates=dates)
        return _by_rows(name, gives, options)

    return rule


def _truncate(kind: pa.DataType, *, every: str, zone: str | None = None) -> Ruled:
    _check_time("truncate", kind)
    piece_us = step_us(every)
    if piece_us is not None and at.is_date(kind):
        raise refuse(f"truncate to {every}", [kind], "a time")
    if zone is not None or at.is_date(kind) or piece_us is None:
        return _by_rows("truncate", kind, {"every": every, "zone": zone})
    piece = pa.scalar(piece_us, INT)

    def cut(datum: Datum) -> Datum:
        counts = pc.cast(_bare(datum), INT)
        return pc.cast(pc.subtract_checked(counts, floored(counts, piece)[1]), kind)

    return kind, cut


def _epoch(kind: pa.DataType, *, unit: str) -> Ruled:
    _check_time("epoch", kind, dates=False)
    by = pa.scalar(UNITS_US[unit], INT)
    return INT, lambda datum: floored(pc.cast(_bare(datum), INT), by)[0]


def _from_epoch(kind: pa.DataType, *, unit: str) -> Ruled:
    if not at.is_integer(kind):
        raise refuse("from_epoch", [kind], "a whole number")
    by, check = pa.scalar(UNITS_US[unit], INT), _by_rows("from_epoch", UTC, {"unit": unit})[1]

    def times(datum: Datum) -> Datum:
        counts = pc.multiply_checked(pc.cast(datum, INT), by)
        return pc.cast(counts, UTC) if are_in_years(counts) else check(datum)  # Says which it is.

    return UTC, times


def are_in_years(counts: Datum) -> bool:
    """Tell whether rows have all of these times, which are microseconds since 1970."""
    if isinstance(counts, pa.Scalar):
        counts = pa.array([counts.as_py()], INT)
    found = pc.min_max(counts)
    low, high = found["min"].as_py(), found["max"].as_py()
    return low is None or (low >= _FIRST_US and high <= _LAST_US)


#: The years 1 and 9999, the first and the last that rows have.
_FIRST_US: Final = -62_135_596_800_000_000
_LAST_US: Final = 253_402_300_799_999_999


def _to_datetime(kind: pa.DataType, **options: Any) -> Ruled:
    if not at.is_string(kind):
        raise refuse("to_datetime", [kind], "a text")
    return _by_rows("to_datetime", UTC, options)


TIME_RULES: Final[Mapping[str, Rule]] = {
    **{name: _part(name) for name in PARTS},
    "date": _of_time("date", pa.date32()),
    "strftime": _of_time("strftime", TEXT),
    "to_zone": _of_time("to_zone", _NAIVE, dates=False),
    "truncate": _truncate,
    "epoch": _epoch,
    "from_epoch": _from_epoch,
    "to_datetime": _to_datetime,
}
_ = DURATION, Kernel
