"""Time in steps of a local clock: hours, days, weeks and months of a zone, side by side."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from gearpy.core.base.zones import DAY_MS, Zone, zone_of
from gearpy.ids import MAX_MS

#: From year 0 of March on, the days before 1970, and those of 400 years.
_DAYS_BEFORE: Final = 719_468
_DAYS_OF_400: Final = 146_097
#: No clocks are set by more than that.
_MARGIN_MS: Final = 2 * DAY_MS
_ENDS_KEPT: Final = 4096


class LocalSteps:
    """Cuts time at each multiple of a step that the clocks of a zone show.

    Multiples of a day, and months, go by the date: each begins when clocks show it for the first
    time, or have gone past it. So a day has 23 to 25 hours, and an hour that comes twice, at
    midnight, is of the day of the first. Shorter steps go by the clock: one begins each time that
    clocks come to a multiple, so an hour that comes twice is two; where they come to none, as in
    steps of 4 hours, a step is longer or shorter.

    Invariant: steps lie side by side, without gaps, and each has some time in it.

    Args:
        step_ms: their length; 0 for months.
        offset_ms: moves them away from local midnight of 1970-01-01.
        months: their length in months.
        size_ms: of the windows that are made of steps: whole days, and months, go by the date.
    """

    def __init__(self, zone: str, step_ms: int, offset_ms: int, months: int, size_ms: int) -> None:
        self.zone: Zone = zone_of(zone)
        self._args = zone, step_ms, offset_ms, months, size_ms
        self._step_ms = step_ms
        self._offset_ms = offset_ms
        self._months = months
        self._by_date = (size_ms or step_ms) % DAY_MS == 0
        self._last = (0, 0)  # The step that was found last.
        self.end_of = lru_cache(_ENDS_KEPT)(self._end_of)

    def __reduce__(self) -> tuple[Any, ...]:
        return steps_of, self._args

    def start_of(self, time_ms: int) -> int:
        start, end = self._last
        if start <= time_ms < end:
            return start
        start = self._start_of(time_ms)
        self._last = start, self.end_of(start)
        return start

    def ends_after(self, start_ms: int, size_ms: int) -> int:
        """Return the end of so much time, some steps, that begins with one of them."""
        if self.zone.is_even(start_ms - _MARGIN_MS, start_ms + size_ms + _MARGIN_MS):
            return min(start_ms + size_ms, MAX_MS)
        if self._by_date:
            label = self._floor(self.zone.shown_ms(start_ms))
            return min(self.zone.first_ms(label + size_ms), MAX_MS)
        for _ in range(size_ms // self._step_ms):
            start_ms = self.end_of(start_ms)
        return start_ms

    def starts_of(self, time_ms: int, size_ms: int) -> Sequence[int]:
        """Return the starts of all that begins with a step, has this size, and holds a time."""
        last, step_ms = self.start_of(time_ms), self._step_ms
        if self.zone.is_even(time_ms - size_ms - _MARGIN_MS, time_ms):
            return range(last - size_ms + step_ms, last + 1, step_ms)
        if self._by_date:
            label = self._floor(self.zone.shown_ms(time_ms))
            labels = range(label - size_ms + step_ms, label + 1, step_ms)
            return sorted(set(map(self.zone.first_ms, labels)))
        starts = [last]
        while len(starts) < size_ms // step_ms:
            starts.append(self.start_of(starts[-1] - 1))
        return starts[::-1]

    def between(self, first_ms: int, last_ms: int, most: int) -> list[int] | None:
        """Return the starts behind one time up to another; None if they are more than that."""
        starts: list[int] = []
        at = self.end_of(self.start_of(first_ms))
        while at <= last_ms:
            if len(starts) == most:
                return None
            starts.append(at)
            at = self.end_of(at)
        return starts

    def _start_of(self, time_ms: int) -> int:
        if self._by_date:
            return self.zone.first_ms(self._floor(self.zone.shown_ms(time_ms)))
        begin, _, offset, before = self.zone.span_of(time_ms)
        label = self._floor(time_ms + offset)
        if label - offset >= begin:
            return label - offset
        # Either clocks went past it, or what has begun before goes on.
        return begin if begin + before <= label else self._start_of(begin - 1)

    def _end_of(self, time_ms: int) -> int:
        if self._by_date:
            label = self._floor(self.zone.shown_ms(time_ms))
            return min(self.zone.first_ms(self._next(label)), MAX_MS)
        while True:
            _, changed, offset, _ = self.zone.span_of(time_ms)
            following = self._next(self._floor(time_ms + offset))
            if following - offset < changed:
                return min(following - offset, MAX_MS)
            time_ms = changed
            after = changed + self.zone.offset_ms(changed)
            if after >= following or self._floor(after) == after:
                return changed

    def _floor(self, local_ms: int) -> int:
        if not self._months:
            return local_ms - (local_ms - self._offset_ms) % self._step_ms
        month = _month_of((local_ms - self._offset_ms) // DAY_MS)
        return _day_of(month - month % self._months) * DAY_MS + self._offset_ms

    def _next(self, label_ms: int) -> int:
        if not self._months:
            return label_ms + self._step_ms
        month = _month_of((label_ms - self._offset_ms) // DAY_MS) + self._months
        return _day_of(month) * DAY_MS + self._offset_ms


@lru_cache(maxsize=256)
def steps_of(zone: str, step_ms: int, offset_ms: int, months: int, size_ms: int) -> LocalSteps:
    """Return `LocalSteps`; windows that are alike share what they have found."""
    return LocalSteps(zone, step_ms, offset_ms, months, size_ms)


def _month_of(day: int) -> int:
    """Return the month of a day since 1970, counted from year 0; also where `date` has no years."""
    era, of_era = divmod(day + _DAYS_BEFORE, _DAYS_OF_400)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    return (year + era * 400) * 12 + (5 * of_year + 2) // 153 + 2


def _day_of(month: int) -> int:
    """Return the first day of a month that is counted from year 0, since 1970."""
    year, of_year = divmod(month - 2, 12)  # Years from March on have their leap day at the end.
    era, of_era = divmod(year, 400)
    days = of_era * 365 + of_era // 4 - of_era // 100 + (153 * of_year + 2) // 5
    return era * _DAYS_OF_400 + days - _DAYS_BEFORE
