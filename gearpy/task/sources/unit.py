"""Finds event times that were read in the wrong unit."""

import logging
from typing import Final

_log = logging.getLogger(__name__)

_YEAR_MS: Final = 31_556_952_000
#: Times from 1985 to 2286 are such numbers of seconds.
_LEAST_S: Final = 500_000_000
_MOST_S: Final = 10_000_000_000
_PER_S: Final = {"s": 1, "us": 1_000_000, "ns": 1_000_000_000}


def unit_mistake(time_ms: int) -> str:
    """Return the likely mistake in the unit of an event time; empty if it may be right.

    Seconds in the place of milliseconds are in early 1970, microseconds and nanoseconds in years
    that nobody has.
    """
    for unit, per_s in _PER_S.items():
        if _LEAST_S * per_s <= time_ms < _MOST_S * per_s:
            by = "multiply by 1,000" if unit == "s" else f"divide by {per_s // 1000:,}"
            year = "1970" if unit == "s" else f"{1970 + time_ms // _YEAR_MS:,}"
            return (
                f"its first event time, {time_ms}, is of the year {year} "
                f"if it is in ms, and looks like {unit}: give time_unit={unit!r}, or {by}"
            )
    return ""


class UnitCheck:
    """Looks at the first event times of a source, and warns once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._has_told = False

    def look(self, time_ms: int) -> None:
        if not self._has_told and (mistake := unit_mistake(time_ms)):
            self._has_told = True
            _log.warning("%s: %s", self._source, mistake)
