"""Durations and event times as people write them, turned into whole milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, SupportsIndex, TypeAlias

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS

#: "10s", "1.5h", a timedelta, or whole milliseconds.
Duration: TypeAlias = str | timedelta | int
#: Whole milliseconds since the epoch, or a datetime that knows its time zone.
EventTime: TypeAlias = int | datetime

_UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS: Final = ", ".join(_UNIT_MS)
_TEXT: Final = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)\s*")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def duration_ms(value: Duration) -> int:
    """Return a duration in milliseconds.

    Args:
        value: a number with one of the units ms, s, m, h, d; a timedelta; or milliseconds.

    Raises:
        ConfigError: it is none of these, negative, or not a whole number of milliseconds.

    Example:
        >>> duration_ms("1.5h")
        5400000
        >>> duration_ms(timedelta(seconds=2))
        2000
    """
    given: Any = value
    if isinstance(given, str) and (match := _TEXT.fullmatch(given)):
        exact = Fraction(match[1]) * _UNIT_MS[match[2]]
    elif isinstance(given, timedelta):
        exact = Fraction(given // timedelta.resolution, 1000)
    elif isinstance(given, int) and not isinstance(given, bool):
        exact = Fraction(given)
    else:
        raise ConfigError(
            f"duration {value!r} is not understood: "
            f"write a number and a unit ({_UNITS}) such as '10s', a timedelta, or an int of ms"
        )
    if exact < 0:
        raise ConfigError(f"duration {value!r} is negative")
    if exact.denominator != 1:
        raise ConfigError(f"duration {value!r} is not a whole number of milliseconds")
    if exact > MAX_MS:
        raise ConfigError(f"duration {value!r} is more than {MAX_MS} ms")
    return int(exact)


def event_time_ms(value: EventTime) -> int:
    """Return an event time in milliseconds since the epoch.

    Raises:
        ConfigError: it is a datetime without a time zone, no time at all, or outside of int64.

    Example:
        >>> event_time_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
        1000
    """
    given: Any = value
    if isinstance(given, datetime):
        if given.utcoffset() is None:
            raise ConfigError(
                f"event time {value!r} has no time zone: "
                "say which, for example time.replace(tzinfo=datetime.UTC)"
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
