"""Methods of expressions by theme: of texts, lists and times."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from gearpy.core.base.fields import Computed
from gearpy.errors import ConfigError

#: An expression, which the methods make more of.
E = TypeVar("E", bound=Computed)
#: What is compared with the items of a list.
_Plain: TypeAlias = str | bytes | int | float | Decimal | date | time | timedelta | None

_JSON_STEP: Final = re.compile(r"([\w-]+)|\[(-?\d+)\]")
_JSON_PATH: Final = re.compile(r"\$?\.?(?:(?:[\w-]+|\[-?\d+\])\.?)+")


class TextMethods(Generic[E]):
    """Functions of an expression that is a text: ``gp.col("name").str.lower()``."""

    def __init__(self, expr: E, call: Callable[..., E]) -> None:
        self._expr = expr
        self._call = call

    def lower(self) -> E:
        """Return the text in lower case."""
        return self._call("lower", self._expr)

    def upper(self) -> E:
        """Return the text in upper case."""
        return self._call("upper", self._expr)

    def strip(self, chars: str | None = None) -> E:
        """Return the text without white space, or some characters, at its ends."""
        return self._call("strip", self._expr, chars=chars)

    def strip_start(self, chars: str | None = None) -> E:
        """Return the text without white space, or some characters, at its start."""
        return self._call("strip_start", self._expr, chars=chars)

    def strip_end(self, chars: str | None = None) -> E:
        """Return the text without white space, or some characters, at its end."""
        return self._call("strip_end", self._expr, chars=chars)

    def contains(self, part: E | str) -> E:
        """Tell whether another text is in it."""
        return self._call("contains", self._expr, part)

    def starts_with(self, part: E | str) -> E:
        """Tell whether it begins with another text."""
        return self._call("starts_with", self._expr, part)

    def ends_with(self, part: E | str) -> E:
        """Tell whether it ends with another text."""
        return self._call("ends_with", self._expr, part)

    def like(self, pattern: str) -> E:
        """Tell whether it is as a pattern of SQL: ``%`` is any text, ``_`` any character."""
        return self._call("like", self._expr, pattern=pattern)

    def matches(self, pattern: str) -> E:
        """Tell whether a regular expression of Python is found in it.

        Raises:
            ConfigError: the pattern is none.
        """
        _check_pattern("matches", pattern)
        return self._call("matches", self._expr, pattern=pattern)

    def extract(self, pattern: str, group: int = 1) -> E:
        """Return a group of a regular expression of Python where it is found; else None.

        Raises:
            ConfigError: the pattern is none, or has no such group.
        """
        groups = _check_pattern("extract", pattern)
        if type(group) is not int or not 0 <= group <= groups:
            raise ConfigError(f"extract({pattern!r}): there is no group {group!r}, but {groups}")
        return self._call("extract", self._expr, pattern=pattern, group=group)

    def split(self, by: str) -> E:
        """Return the parts of the text between each two places of another one, as a list."""
        if not by:
            raise ConfigError("split(''): give the text between the parts, such as ','")
        return self._call("split", self._expr, by=by)

    def replace_matches(self, pattern: str, by: str, *, count: int = 0) -> E:
        r"""Replace what a regular expression of Python finds.

        Args:
            pattern: the regular expression.
            by: what takes its place; "\\1" is the first group.
            count: how many at most, from the start; 0 for all.

        Raises:
            ConfigError: the pattern is none, or has no such group.
        """
        _check_pattern("replace_matches", pattern)
        try:
            re.sub(f"{pattern}|", by, "")
        except (re.error, IndexError) as error:
            raise ConfigError(f"replace_matches({pattern!r}, {by!r}): {error}") from None
        return self._call("replace_matches", self._expr, pattern=pattern, by=by, count=count)

    def find(self, part: E | str) -> E:
        """Return the place of the first character of another text in it, from 0; else -1."""
        return self._call("find", self._expr, part)

    def pad_start(self, width: int, fill: str = " ") -> E:
        """Return the text with others before it, so that it has so many characters at least."""
        return self._padded(width, fill, at_start=True)

    def pad_end(self, width: int, fill: str = " ") -> E:
        """Return the text with others behind it, so that it has so many characters at least."""
        return self._padded(width, fill, at_start=False)

    def _padded(self, width: int, fill: str, *, at_start: bool) -> E:
        if not fill:
            raise ConfigError("pad: give the text to fill with, such as '0'")
        return self._call("pad", self._expr, width=width, fill=fill, at_start=at_start)

    def reverse(self) -> E:
        """Return its characters from the last one to the first."""
        return self._call("reverse", self._expr)

    def repeat(self, times: int) -> E:
        """Return the text so many times, one behind the other."""
        return self._call("repeat", self._expr, times=times)

    def digest(self, algorithm: Literal["md5", "sha1", "sha256"]) -> E:
        """Return the digest of its bytes in UTF-8, as hexadecimal digits."""
        return self._call("digest", self._expr, algorithm=algorithm)

    def json(self, path: str, *, as_json: bool = False) -> E:
        """Return a value in JSON as text; None where there is none, or it is null.

        Args:
            path: to the value, such as "user.name" or "$.items[0].id".
            as_json: a text has its quotes.

        Raises:
            ConfigError: the path is none.
        """
        if not _JSON_PATH.fullmatch(path):
            raise ConfigError(f"json({path!r}): give a path such as '$.items[0].id'")
        keys = [int(at) if at else name for name, at in _JSON_STEP.findall(path)]
        return self._call("json", self._expr, path=tuple(keys), as_json=as_json)

    def to_datetime(self, format: str | None = None, *, zone: str | None = None) -> E:  # noqa: A002 - as in Polars
        """Return the time that it says.

        Args:
            format: as of `datetime.strptime`; None for the ISO form.
            zone: of times that do not say theirs; None for UTC.
        """
        return self._call("to_datetime", self._expr, format=format, zone=_zone(zone))

    def replace(self, old: str, new: str) -> E:
        """Replace each place where a text is found by another."""
        return self._call("replace", self._expr, old=old, new=new)

    def length(self) -> E:
        """Count the characters."""
        return self._call("length", self._expr)

    def slice(self, start: int, length: int | None = None) -> E:
        """Return a part of the text; a negative start counts from its end."""
        return self._call("slice", self._expr, start=start, length=length)


class ListMethods(Generic[E]):
    """Functions of an expression that is a list: ``gp.col("tags").list.length()``."""

    def __init__(self, expr: E, call: Callable[..., E]) -> None:
        self._expr = expr
        self._call = call

    def length(self) -> E:
        """Count the items."""
        return self._call("length", self._expr)

    def get(self, place: int) -> E:
        """Return an item, from the end if negative; None where the list is shorter."""
        return self._call("field", self._expr, key=place)

    def contains(self, value: E | _Plain) -> E:
        """Tell whether a value is one of its items."""
        return self._call("list_contains", self._expr, value)

    def join(self, by: str) -> E:
        """Return its texts or numbers as one text, with another one between them."""
        return self._call("list_join", self._expr, by=by)

    def sum(self) -> E:
        """Add up its numbers, but for those that are missing; None without any."""
        return self._call("list_sum", self._expr)

    def mean(self) -> E:
        """Return the mean of its numbers, but for those that are missing; None without any."""
        return self._call("list_mean", self._expr)

    def min(self) -> E:
        """Return the least item that is not missing; None without any."""
        return self._call("list_min", self._expr)

    def max(self) -> E:
        """Return the greatest item that is not missing; None without any."""
        return self._call("list_max", self._expr)

    def sort(self, *, descending: bool = False) -> E:
        """Return its items in order, those that are missing behind the others."""
        return self._call("list_sort", self._expr, descending=descending)

    def unique(self) -> E:
        """Return its different items that are not missing, each where it comes first."""
        return self._call("list_unique", self._expr)

    def reverse(self) -> E:
        """Return its items from the last one to the first."""
        return self._call("list_reverse", self._expr)

    def slice(self, start: int, stop: int | None = None) -> E:
        """Return the items from a place up to another one, counted as Python does."""
        return self._call("list_slice", self._expr, start=start, stop=stop)

    def find(self, value: E | _Plain) -> E:
        """Return the place of the first item that is equal to a value, from 0; else -1."""
        return self._call("list_find", self._expr, value)


class TimeMethods(Generic[E]):
    """Functions of an expression that is a time or a date: ``gp.col("at").dt.hour()``.

    Times are of UTC. With ``zone``, such as "Europe/Berlin", its calendar and clock are meant.
    """

    def __init__(self, expr: E, call: Callable[..., E]) -> None:
        self._expr = expr
        self._call = call

    def year(self, *, zone: str | None = None) -> E:
        """Return the year."""
        return self._part("year", zone)

    def quarter(self, *, zone: str | None = None) -> E:
        """Return the quarter of the year, from 1 to 4."""
        return self._part("quarter", zone)

    def month(self, *, zone: str | None = None) -> E:
        """Return the month, from 1 to 12."""
        return self._part("month", zone)

    def day(self, *, zone: str | None = None) -> E:
        """Return the day of the month, from 1 to 31."""
        return self._part("day", zone)

    def week(self, *, zone: str | None = None) -> E:
        """Return the week of the year, from 1 to 53, as ISO 8601 counts them."""
        return self._part("week", zone)

    def iso_year(self, *, zone: str | None = None) -> E:
        """Return the year that the week belongs to, as ISO 8601 counts them."""
        return self._part("iso_year", zone)

    def weekday(self, *, zone: str | None = None) -> E:
        """Return the day of the week, from 1 for Monday to 7."""
        return self._part("weekday", zone)

    def day_of_year(self, *, zone: str | None = None) -> E:
        """Return the day of the year, from 1 to 366."""
        return self._part("day_of_year", zone)

    def hour(self, *, zone: str | None = None) -> E:
        """Return the hour, from 0 to 23."""
        return self._part("hour", zone)

    def minute(self, *, zone: str | None = None) -> E:
        """Return the minute, from 0 to 59."""
        return self._part("minute", zone)

    def second(self, *, zone: str | None = None) -> E:
        """Return the second, from 0 to 59."""
        return self._part("second", zone)

    def microsecond(self, *, zone: str | None = None) -> E:
        """Return the microseconds of the second, from 0 to 999,999."""
        return self._part("microsecond", zone)

    def date(self, *, zone: str | None = None) -> E:
        """Return the date."""
        return self._part("date", zone)

    def truncate(self, every: str, *, zone: str | None = None) -> E:
        """Return the start of the piece of time that it is in.

        Args:
            every: "day", "week" (from Monday), "month", "quarter", "year", or a duration of less
                than a day, such as "15m"; pieces of one begin at midnight of 1970-01-01.
            zone: whose days, or midnight.

        Raises:
            ConfigError: it is none of these.
        """
        from gearpy.expressions.time_functions import step_us  # noqa: PLC0415 - to check it

        step_us(every)
        return self._call("truncate", self._expr, every=every, zone=_zone(zone))

    def add_months(self, months: int) -> E:
        """Return the time so many months later, on the last day of a month that is too short."""
        return self._call("add_months", self._expr, months=months)

    def strftime(self, format: str, *, zone: str | None = None) -> E:  # noqa: A002 - as in Python
        """Return the text that `datetime.strftime` makes of it."""
        return self._call("strftime", self._expr, format=format, zone=_zone(zone))

    def to_zone(self, zone: str) -> E:
        """Return the local time in a zone, as a time without a zone."""
        return self._call("to_zone", self._expr, zone=_zone(zone))

    def epoch(self, unit: str = "ms") -> E:
        """Return the time since 1970 as a whole number of "s", "ms" or "us", rounded down."""
        return self._call("epoch", self._expr, unit=_unit("epoch", unit))

    def from_epoch(self, unit: str = "ms") -> E:
        """Return the time that a whole number of "s", "ms" or "us" since 1970 is."""
        return self._call("from_epoch", self._expr, unit=_unit("from_epoch", unit))

    def _part(self, name: str, zone: str | None) -> E:
        return self._call(name, self._expr, zone=_zone(zone))


def _check_pattern(kind: str, pattern: str) -> int:
    """Return the number of groups of a regular expression."""
    try:
        return re.compile(pattern).groups
    except (re.error, TypeError) as error:
        raise ConfigError(f"{kind}({pattern!r}) is no regular expression: {error}") from None


def _zone(zone: str | None) -> str | None:
    from gearpy.expressions.time_functions import zone_info  # noqa: PLC0415 - to check it

    return zone if zone is None else zone_info(zone).key


def _unit(kind: str, unit: str) -> str:
    if unit not in {"s", "ms", "us"}:
        raise ConfigError(f'{kind}({unit!r}): give "s", "ms" or "us"')
    return unit
