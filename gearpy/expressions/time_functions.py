"""Functions of times for one row. Times are UTC; `zone` says whose calendar and clock is meant."""

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from gearpy.core.base.times import duration_ms
from gearpy.errors import ConfigError

#: Units of a calendar, of which the larger ones are not of one length.
CALENDAR: Final = ("day", "week", "month", "quarter", "year")
UNITS_US: Final[Mapping[str, int]] = {"s": 1_000_000, "ms": 1000, "us": 1}
PARTS: Final = (
    *("year", "quarter", "month", "day", "weekday", "day_of_year", "iso_year", "week"),
    *("hour", "minute", "second", "microsecond"),
)
OF_CLOCK: Final = frozenset(PARTS[8:])
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - only subtracted from other naive times
_US: Final = timedelta(microseconds=1)


@lru_cache(maxsize=64)
def zone_info(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (LookupError, ValueError, OSError, TypeError):
        raise ConfigError(
            f"there is no time zone {zone!r}: give one such as 'Europe/Berlin'"
        ) from None


def step_us(every: str) -> int | None:
    """Return the length of the pieces that times are cut into; None for units of a calendar.

    Raises:
        ConfigError: it is neither such a unit nor a duration of less than a day.
    """
    if every in CALENDAR:
        return None
    found_us = duration_ms(every) * 1000
    if not 0 < found_us < 24 * 3_600_000_000:
        raise ConfigError(
            f"truncate({every!r}): give a duration of less than a day, such as '15m', or one of "
            f"{', '.join(CALENDAR)}"
        )
    return found_us


def _local(name: str, value: Any, zone: str | None) -> Any:
    """Return a time as the clocks of a zone show it, without a zone; a date as it is."""
    if isinstance(value, datetime):
        if zone is None:
            return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return aware.astimezone(zone_info(zone)).replace(tzinfo=None)
    if isinstance(value, date):
        return value
    raise TypeError(f"{name} takes a time, not {value!r:.100}")


def _part(name: str) -> Callable[..., int]:
    def part(value: Any, *, zone: str | None = None) -> int:
        local = _local(name, value, zone)
        match name:
            case "weekday":
                return int(local.isoweekday())
            case "quarter":
                return int((local.month + 2) // 3)
            case "iso_year" | "week":
                return int(local.isocalendar()[name == "week"])
            case "day_of_year":
                return int(local.timetuple().tm_yday)
        if name in OF_CLOCK and not isinstance(local, datetime):
            raise TypeError(f"{name} takes a time, not the date {value}")
        return int(getattr(local, name))

    return part


def _date(value: Any, *, zone: str | None = None) -> date:
    local = _local("date", value, zone)
    return local.date() if isinstance(local, datetime) else local


def _strftime(value: Any, *, format: str, zone: str | None = None) -> str:  # noqa: A002 - as users name it
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(zone_info(zone or "UTC")).strftime(format)
    text: str = _local("strftime", value, zone).strftime(format)
    return text


def _to_zone(value: Any, *, zone: str) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"to_zone takes a time, not {value!r:.100}")
    found: datetime = _local("to_zone", value, zone)
    return found


def in_utc(value: Any) -> Any:
    """Return a time that has a zone as the same time of UTC, and anything else as it is."""
    return value.astimezone(UTC) if getattr(value, "tzinfo", None) is not None else value


def _truncate(value: Any, *, every: str, zone: str | None = None) -> Any:
    local = _local("truncate", value, zone)
    piece_us = step_us(every)
    if piece_us is not None:
        if not isinstance(local, datetime):
            raise TypeError(f"truncate to {every} takes a time, not the date {value}")
        count = (local - _NAIVE_EPOCH) // _US
        cut: Any = _NAIVE_EPOCH + timedelta(microseconds=count - count % piece_us)
    else:
        day = local.date() if isinstance(local, datetime) else local
        match every:
            case "week":
                day -= timedelta(days=day.weekday())
            case "month":
                day = day.replace(day=1)
            case "quarter":
                day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
            case "year":
                day = day.replace(month=1, day=1)
        if not isinstance(local, datetime):
            return day
        cut = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - local
    if zone is not None:
        cut = _instant(cut, value, zone)
    elif value.tzinfo is not None:
        cut = cut.replace(tzinfo=UTC)
    return cut if value.tzinfo is not None else cut.replace(tzinfo=None)


def _add_months(value: Any, *, months: int) -> Any:
    """Return the time so many months later, on the last day of a month that is too short."""
    if not isinstance(value, date):
        raise TypeError(f"add_months takes a time, not {value!r:.100}")
    years, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    return value.replace(
        year=years, month=month + 1, day=min(value.day, monthrange(years, month + 1)[1])
    )


def _instant(local: datetime, of: datetime, zone: str) -> datetime:
    """Return when clocks of a zone show a time; the second time of it, if this is still before."""
    info = zone_info(zone)
    aware = of if of.tzinfo is not None else of.replace(tzinfo=UTC)
    second = local.replace(tzinfo=info, fold=1).astimezone(UTC)
    return second if second <= aware else local.replace(tzinfo=info).astimezone(UTC)


def _epoch(value: Any, *, unit: str) -> int:
    if not isinstance(value, datetime):
        raise TypeError(f"epoch takes a time, not {value!r:.100}")
    start = _NAIVE_EPOCH if value.tzinfo is None else _EPOCH
    return (value - start) // _US // UNITS_US[unit]


def _from_epoch(value: Any, *, unit: str) -> datetime:
    if type(value) is not int:
        raise TypeError(f"from_epoch takes a whole number, not {value!r:.100}")
    return _EPOCH + timedelta(microseconds=value * UNITS_US[unit])


def _parse(value: Any, *, format: str | None, zone: str | None = None) -> datetime:  # noqa: A002 - the same
    if not isinstance(value, str):
        raise TypeError(f"to_datetime takes a text, not {value!r:.100}")
    found = datetime.fromisoformat(value) if format is None else datetime.strptime(value, format)  # noqa: DTZ007 - next line
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC if zone is None else zone_info(zone))
    return found.astimezone(UTC)


TIME_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _part(name) for name in PARTS},
    "date": _date,
    "strftime": _strftime,
    "to_zone": _to_zone,
    "truncate": _truncate,
    "add_months": _add_months,
    "epoch": _epoch,
    "from_epoch": _from_epoch,
    "to_datetime": _parse,
}
