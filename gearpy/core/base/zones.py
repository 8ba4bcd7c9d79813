"""Time zones: what the clocks of a place show, and when they come to show something.

`zoneinfo` is asked once for each process where the clocks of a zone change; times are then looked
up in that table. What is before 1900 and after 2100 is added when somebody asks for it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS

#: The name of a time zone, such as "Europe/Berlin", or a `ZoneInfo`.
ZoneName: TypeAlias = str | ZoneInfo

DAY_MS: Final = 86_400_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EVER_MS: Final = 2 * MIN_MS  # All times are behind it.
_DAY_S: Final = 86_400
_MILLISECOND: Final = timedelta(milliseconds=1)


def _year_s(year: int) -> int:
    return int(datetime(year, 1, 3, tzinfo=UTC).timestamp())


#: Years, and days: no clocks have changed twice in so many days, far from today still less.
_NEAR: Final = ((_year_s(1900), _year_s(2100), 3),)
#: Before 1800 all clocks were those of the sun.
_ALL: Final = ((_year_s(1800), _year_s(1900), 20), *_NEAR, (_year_s(2100), _year_s(2500), 20))
#: The calendar, and with it the rules of zones, come again after 400 years.
_PERIOD_MS: Final = 146_097 * DAY_MS
_PERIODS: Final = 20


class _Changes(NamedTuple):
    """The clocks of a zone: spans of time in which they do not change, in order."""

    starts: list[int]
    offsets: list[int]
    #: The furthest that clocks showed before each span.
    reached: list[int]
    #: The local time from which on the offset of each span is taken; before it, the one before.
    folds: list[int]


class Zone:
    """What the clocks of a zone show.

    Local times are in ms: those at which a clock in UTC shows the same.
    """

    def __init__(self, info: ZoneInfo) -> None:
        self.name = info.key
        self._info = info
        self._origin = datetime(1970, 1, 1, tzinfo=info)
        self._is_whole = False
        self._table = self._asked(_NEAR)  # One tuple, since threads share it.

    def changes(self, first_ms: int, last_ms: int) -> _Changes:
        """Return the table, with all changes between two times."""
        if not self._is_whole and not (
            _NEAR[0][0] * 1000 + DAY_MS < first_ms and last_ms < _NEAR[0][1] * 1000 - DAY_MS
        ):
            self._table = self._asked(_ALL)
            self._is_whole = True
        return self._table

    def is_even(self, first_ms: int, last_ms: int) -> bool:
        """Tell whether clocks do not change between two times."""
        starts = self.changes(first_ms, last_ms).starts
        return bisect_right(starts, first_ms) == bisect_right(starts, last_ms)

    def offset_ms(self, time_ms: int) -> int:
        starts, offsets, _, _ = self.changes(time_ms, time_ms)
        return offsets[bisect_right(starts, time_ms) - 1]

    def span_of(self, time_ms: int) -> tuple[int, int, int, int]:
        """Return start and end of the span that holds a time, its offset, and the one before."""
        starts, offsets, _, _ = self.changes(time_ms, time_ms)
        behind = bisect_right(starts, time_ms)
        end = starts[behind] if behind < len(starts) else -_EVER_MS
        return starts[behind - 1], end, offsets[behind - 1], offsets[max(behind - 2, 0)]

    def shown_ms(self, time_ms: int) -> int:
        """Return the local time that clocks show, or, if more, what they have shown before."""
        starts, offsets, reached, _ = self.changes(time_ms, time_ms)
        at = bisect_right(starts, time_ms) - 1
        return max(time_ms + offsets[at], reached[at] - 1)

    def first_ms(self, local_ms: int) -> int:
        """Return the first time at which clocks show a local time, or have gone past it."""
        starts, offsets, reached, _ = self.changes(local_ms - DAY_MS, local_ms + DAY_MS)
        at = bisect_right(reached, local_ms) - 1
        return max(local_ms - offsets[at], starts[at])

    def time_ms(self, local_ms: int) -> int:
        """Return the time that a local time means, as `zoneinfo` does with ``fold=0``.

        Of two, it is the first one. One that no clock shows is what it would be if the clocks had
        not been changed yet.
        """
        _, offsets, _, folds = self.changes(local_ms - DAY_MS, local_ms + DAY_MS)
        return local_ms - offsets[bisect_right(folds, local_ms) - 1]

    def spans_between(self, first_ms: int, last_ms: int) -> list[tuple[int, int]]:
        """Return the local times from which on an offset is taken, and it; the first one holds."""
        _, offsets, _, folds = self.changes(first_ms - DAY_MS, last_ms + DAY_MS)
        first, end = bisect_right(folds, first_ms) - 1, bisect_right(folds, last_ms)
        return list(zip(folds[first:end], offsets[first:end], strict=True))

    def text(self, time_ms: int) -> str:
        """Return a time as clocks show it, in ISO form with the offset from UTC."""
        try:
            moment = (_EPOCH + timedelta(milliseconds=time_ms)).astimezone(self._info)
        except OverflowError:  # No year from 1 to 9999.
            return f"{time_ms} ms"
        return moment.isoformat(timespec="milliseconds" if time_ms % 1000 else "seconds")

    def _asked(self, years: tuple[tuple[int, int, int], ...]) -> _Changes:
        starts, offsets = [_EVER_MS], [self._offset_at(years[0][0])]
        for first_s, last_s, days in years:
            for at_s, offset in self._found(first_s, last_s, days):
                starts.append(at_s * 1000)
                offsets.append(offset)
        if years is _ALL:
            first = bisect_right(starts, _year_s(2100) * 1000)
            again = starts[first:]
            for period in range(1, _PERIODS):
                starts += [start + period * _PERIOD_MS for start in again]
            offsets += offsets[first:] * (_PERIODS - 1)
        reached, folds = [_EVER_MS], [_EVER_MS]
        for start, before, after in zip(starts[1:], offsets, offsets[1:], strict=False):
            reached.append(max(reached[-1], start + before))
            folds.append(start + max(before, after))
        return _Changes(starts, offsets, reached, folds)

    def _found(self, first_s: int, last_s: int, days: int) -> Iterator[tuple[int, int]]:
        """Yield the changes, and the offsets behind them: a change is between days that differ."""
        offset_at, before_s, before = self._offset_at, first_s, self._offset_at(first_s)
        for at_s in [*range(first_s, last_s, days * _DAY_S), last_s]:
            if (offset := offset_at(at_s)) != before:
                low, high = before_s, at_s
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if offset_at(middle) == before else (low, middle)
                yield high, offset
            before_s, before = at_s, offset

    def _offset_at(self, at_s: int) -> int:
        # The fields are those of UTC, as `fromutc` takes them.
        local = self._info.fromutc(self._origin + timedelta(seconds=at_s))
        return int((local - self._origin) / _MILLISECOND) - at_s * 1000


def zone_of(zone: ZoneName) -> Zone:
    given: Any = zone
    name = given.key if isinstance(given, ZoneInfo) else given
    if not isinstance(name, str):
        raise ConfigError(f"zone is {zone!r}, must be the name of one, such as 'Europe/Berlin'")
    return _zone_named(name)


@lru_cache(maxsize=64)
def _zone_named(name: str) -> Zone:
    try:
        return Zone(ZoneInfo(name))
    except (ValueError, OSError, KeyError):  # It looks for a file of that name.
        pass
    known = available_timezones()
    if not known:
        raise ConfigError(
            f"zone {name!r} is not known, and no other: this machine has no time zones; install "
            "tzdata, by pip or of the system"
        )
    by_city = {each.casefold().rpartition("/")[2]: each for each in sorted(known)}
    by_name = {each.casefold(): each for each in known}
    wanted = name.casefold().strip().replace(" ", "_")
    found = by_name.get(wanted) or by_city.get(wanted.rpartition("/")[2])
    if found is None:
        near = get_close_matches(wanted, by_name, n=1) or get_close_matches(wanted, by_city, n=1)
        found = by_name.get(near[0], by_city.get(near[0])) if near else None
    advice = f"did you mean {found!r}?" if found else "names are such as 'Europe/Berlin' or 'UTC'"
    raise ConfigError(f"zone {name!r} is not known: {advice}")
