"""Durations and event times as people write them, turned into whole milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, SupportsIndex, TypeAlias

from gearpy.core.base.zones import Zone
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS

#: "10s", "1h30m", "2 minutes", or a timedelta.
Duration: TypeAlias = str | timedelta
#: Whole milliseconds since the epoch, or a datetime that knows its time zone.
EventTime: TypeAlias = int | datetime

_NAMES: Final[dict[int, str]] = {
    1: "ms millisecond milliseconds",
    1000: "s sec second seconds",
    60_000: "m min minute minutes",
    3_600_000: "h hour hours",
    86_400_000: "d day days",
    604_800_000: "w week weeks",
}
_UNIT_MS: Final = {name: ms for ms, names in _NAMES.items() for name in names.split()}
_UNITS: Final = ", ".join(names.split()[0] for names in _NAMES.values())
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
_TEXT: Final = re.compile(rf"\s*[+-]?(?:{_PART.pattern})+")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def duration_ms(value: Duration, what: str = "duration") -> int:
    """Return a duration in milliseconds.

    Args:
        value: numbers with one of the units ms, s, m, h, d, w or their names, such as "10s",
            "1h30m" or "2 minutes"; or a timedelta. A number alone does not tell its unit.
        what: names it in errors, such as "sql_source(orders): every".

    Raises:
        ConfigError: it is none of these, negative, or not a whole number of milliseconds.

    Example:
        >>> duration_ms("1.5h")
        5400000
        >>> duration_ms(timedelta(seconds=2))
        2000
    """
    given: Any = value
    parts = _PART.findall(given) if isinstance(given, str) and _TEXT.fullmatch(given) else []
    if parts and all(unit in _UNIT_MS for _, unit in parts):
        exact = sum((Fraction(number) * _UNIT_MS[unit] for number, unit in parts), Fraction(0))
        exact = -exact if given.lstrip().startswith("-") else exact
    elif isinstance(given, timedelta):
        exact = Fraction(given // timedelta.resolution, 1000)
    elif given == 0 and type(given) is int:
        exact = Fraction(0)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        raise ConfigError(
            f"{what} {given!r} has no unit: write '{given}ms' for milliseconds, or '{given}s' "
            "for seconds"
        )
    else:
        raise ConfigError(
            f"{what} {value!r} is not understood: write numbers and units ({_UNITS}) "
            "as in '10s' or '1h30m', or a timedelta"
        )
    if exact < 0:
        raise ConfigError(f"{what} {value!r} is negative")
    if exact.denominator != 1:
        raise ConfigError(f"{what} {value!r} is not a whole number of milliseconds")
    if exact > MAX_MS:
        raise ConfigError(f"{what} {value!r} is more than {MAX_MS} ms")
    return int(exact)


def event_time_ms(value: EventTime, zone: Zone | None = None) -> int:
    """Return an event time in milliseconds since the epoch.

    Args:
        value: whole milliseconds, or a datetime.
        zone: of a datetime that knows none.

    Raises:
        ConfigError: it is a datetime without a time zone, no time at all, or outside of int64.

    Example:
        >>> event_time_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
        1000
    """
    given: Any = value
    if isinstance(given, datetime):
        if given.utcoffset() is None and zone is not None:
            return zone.time_ms((given.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND)
        if given.utcoffset() is None:
            raise ConfigError(
                f"event time {value!r} has no time zone: "
                "say which, for example time.replace(tzinfo=datetime.UTC), or zone= of the source"
            )
        time_ms = (given - _EPOCH) // _MILLISECOND
    elif isinstance(given, SupportsIndex) and not isinstance(given, bool):
        time_ms = given.__index__()
    else:
        fix = "give int ms since the epoch or a datetime with a time zone"
        if isinstance(given, float):
            fix = "give an int, for seconds int(seconds * 1000)"
        raise ConfigError(f"event time {value!r} is a {type(value).__name__}: {fix}")
    if not MIN_MS < time_ms < MAX_MS:
        raise ConfigError(f"event time {value!r} does not fit 64-bit milliseconds")
    return time_ms


def event_time_in(text: str) -> int:
    """Return the event time that a text says: in ISO form with a time zone, or as milliseconds.

    Raises:
        ConfigError: it says none.

    Example:
        >>> event_time_in("1970-01-01T00:00:01Z")
        1000
        >>> event_time_in("1500")
        1500
    """
    if _WHOLE.fullmatch(text):
        return event_time_ms(int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise ConfigError(
            f"event time {text!r} is not understood: write it with its time zone, as in "
            "2026-01-01T12:00:00Z, or as milliseconds since 1970"
        )
    return event_time_ms(moment)
