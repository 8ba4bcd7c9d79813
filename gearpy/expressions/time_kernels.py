"""Functions of times over columns."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.types as at  # type: ignore[import-untyped]

from gearpy.expressions.arrow_types import (
    INT,
    TEXT,
    UTC,
    Datum,
    Rule,
    Ruled,
    are_within,
    floored,
    mapped,
    refuse,
)
from gearpy.expressions.patterns import MOMENT, iso_of, moments, where_alike
from gearpy.expressions.time_functions import (
    OF_CLOCK,
    PARTS,
    TIME_FUNCTIONS,
    UNITS_US,
    step_us,
    zone_info,
)

_NAIVE: Final = pa.timestamp("us")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
_US: Final = timedelta(microseconds=1)
_KERNELS: Final[Mapping[str, Callable[[Datum], Datum]]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "weekday": lambda local: pc.day_of_week(local, count_from_zero=False, week_start=1),
    "day_of_year": pc.day_of_year,
    "iso_year": pc.iso_year,
    "week": pc.iso_week,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "microsecond": lambda local: pc.add(
        pc.multiply(pc.millisecond(local), pa.scalar(1000, INT)), pc.microsecond(local)
    ),
    "date": lambda local: pc.floor_temporal(local, unit="day"),
    "to_zone": lambda local: local,
}
#: Formats that show nothing of the time of day.
_OF_DAYS: Final = re.compile(r"([^%]|%[-_0^#]?[aAbBCdeDFgGhjmuUVwWxyY%])*", re.DOTALL)
_DAY_US: Final = timedelta(days=1) // timedelta(microseconds=1)
#: Clocks of a zone change at the end of such a piece of time, but for a few long ago.
_PIECE: Final = timedelta(minutes=15)


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


def _part(name: str, gives: pa.DataType = INT) -> Rule:
    kernel = _KERNELS[name]

    def rule(kind: pa.DataType, *, zone: str | None = None) -> Ruled:
        _check_time(name, kind, dates=name not in {*OF_CLOCK, "to_zone"})
        by_rows = _by_rows(name, gives, {"zone": zone})[1]

        def apply(datum: Datum) -> Datum:
            local = datum if at.is_date(kind) else _in_zone(_bare(datum), zone)
            return by_rows(datum) if local is None else pc.cast(kernel(local), gives)

        return gives, apply

    return rule


def _in_zone(datum: Datum, zone: str | None) -> Datum | None:
    """Return local times in a zone; None if asking for each time costs less.

    Python says how far they are from UTC, for the few pieces of time that the times are in.
    """
    if zone is None:
        return datum
    if isinstance(datum, pa.Scalar):
        return None
    counts, info = datum.cast(INT), zone_info(zone)
    pieces = floored(counts, pa.scalar(_PIECE // _US, INT))[0].dictionary_encode()
    if len(pieces.dictionary) * 4 > len(datum):
        return None
    offsets = []
    for piece in pieces.dictionary.to_pylist():
        try:
            first = _EPOCH + piece * _PIECE
            ends = [each.astimezone(info).utcoffset() for each in (first, first + _PIECE - _US)]
        except OverflowError:
            return None  # Rows say which time it is.
        if ends[0] is None or ends[0] != ends[1]:
            return None
        offsets.append(ends[0] // _US)
    return pc.add(counts, pa.array(offsets, INT).take(pieces.indices)).cast(_NAIVE)


def _strftime(kind: pa.DataType, **options: Any) -> Ruled:
    _check_time("strftime", kind)
    by_rows = _by_rows("strftime", TEXT, options)[1]
    if at.is_date(kind) or "%f" in options["format"]:
        return TEXT, by_rows
    # So that few values are different, times are cut to what the text shows of them.
    is_of_days = options.get("zone") is None and _OF_DAYS.fullmatch(options["format"])
    piece = pa.scalar(_DAY_US if is_of_days else UNITS_US["s"], INT)

    def shown(datum: Datum) -> Datum:
        counts = pc.cast(_bare(datum), INT)
        return by_rows(pc.cast(pc.subtract_checked(counts, floored(counts, piece)[1]), kind))

    return TEXT, shown


def _truncate(kind: pa.DataType, *, every: str, zone: str | None = None) -> Ruled:
    _check_time("truncate", kind)
    piece_us = step_us(every)
    if piece_us is not None and at.is_date(kind):
        raise refuse(f"truncate to {every}", [kind], "a time")
    if zone is None and piece_us is None:
        return kind, lambda datum: pc.cast(
            pc.floor_temporal(datum if at.is_date(kind) else _bare(datum), unit=every), kind
        )
    if zone is not None or at.is_date(kind) or piece_us is None:
        return _by_rows("truncate", kind, {"every": every, "zone": zone})
    piece = pa.scalar(piece_us, INT)

    def cut(datum: Datum) -> Datum:
        counts = pc.cast(_bare(datum), INT)
        return pc.cast(pc.subtract_checked(counts, floored(counts, piece)[1]), kind)

    return kind, cut


def _add_months(kind: pa.DataType, **options: Any) -> Ruled:
    _check_time("add_months", kind)
    return _by_rows("add_months", kind, options)


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
    return are_within(counts, _FIRST_US, _LAST_US)


#: The years 1 and 9999, the first and the last that rows have.
_FIRST_US: Final = -62_135_596_800_000_000
_LAST_US: Final = 253_402_300_799_999_999


def _to_datetime(kind: pa.DataType, **options: Any) -> Ruled:
    if not at.is_string(kind):
        raise refuse("to_datetime", [kind], "a text")
    by_cell, form = _by_rows("to_datetime", UTC, options)[1], options["format"]
    if options.get("zone") is not None:
        return UTC, by_cell
    if form is None:
        return UTC, where_alike(MOMENT, moments, by_cell)
    if (found := iso_of(form)) is None:
        return UTC, by_cell
    pattern, iso = found
    return UTC, where_alike(
        pattern,
        lambda text: moments(pc.replace_substring_regex(text, pattern=pattern, replacement=iso)),
        by_cell,
    )


TIME_RULES: Final[Mapping[str, Rule]] = {
    **{name: _part(name) for name in PARTS},
    "date": _part("date", pa.date32()),
    "strftime": _strftime,
    "to_zone": _part("to_zone", _NAIVE),
    "truncate": _truncate,
    "add_months": _add_months,
    "epoch": _epoch,
    "from_epoch": _from_epoch,
    "to_datetime": _to_datetime,
}
