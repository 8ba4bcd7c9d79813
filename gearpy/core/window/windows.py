"""Windows: which records belong together, and when their panes fire.

A window is ``[start_ms, end_ms)``, in event time or in wall time. It closes once the watermark, or
wall time, has reached its end. Gearpump: `Windows`, `WindowFunction`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Self, TypeAlias

from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import DAY_MS, ZoneName, zone_of
from gearpy.core.window.local import LocalSteps, steps_of
from gearpy.core.window.trigger import AT_CLOSE, Trigger, check_trigger, phases_of
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS

Accumulation: TypeAlias = Literal["discarding", "accumulating", "retracting"]
WindowClock: TypeAlias = Literal["event", "processing"]
CalendarUnit: TypeAlias = Literal["day", "week", "month", "quarter", "year"]

#: So many windows may hold a record: each is kept, closes and gives a result by itself.
WINDOWS_OF_RECORD_MAX: Final = 10_000
#: Size, offset and months of the windows of a calendar; 1970 began on a Thursday.
CALENDAR: Final[dict[str, tuple[int, int, int]]] = {
    "day": (DAY_MS, 0, 0),
    "week": (7 * DAY_MS, 4 * DAY_MS, 0),
    "month": (0, 0, 1),
    "quarter": (0, 0, 3),
    "year": (0, 0, 12),
}
_CLOCKS: Final = ("event", "processing")
_ACCUMULATIONS: Final = ("discarding", "accumulating", "retracting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Base of all windows; each method returns a copy. Gearpump: `Windows`.

    Attributes:
        trigger: when a window fires.
        accumulation: what of a window that fires again is put out then: what has come since
            ("discarding"), all that has come ("accumulating"), or that, and before it each result
            that it replaces, marked so ("retracting").
        allowed_lateness_ms: records are taken until the watermark is so far behind the end.
        clock: whether windows are of event time, or of the wall time at which records come.
    """

    trigger: Trigger = AT_CLOSE
    accumulation: Accumulation = "discarding"
    allowed_lateness_ms: int = 0
    clock: WindowClock = "event"

    def __post_init__(self) -> None:
        check_trigger(self.trigger)
        mistakes = [*self._mistakes(), *self._mistakes_of_all()]
        if mistakes:
            raise ConfigError(*mistakes)

    def triggering(self, trigger: Trigger) -> Self:
        """Set when a window fires. Gearpump: `Windows.triggering`.

        Raises:
            ConfigError: it is no trigger.
        """
        return replace(self, trigger=trigger)

    def discarding(self) -> Self:
        """Let each firing hold only the records since the one before; the default."""
        return replace(self, accumulation="discarding")

    def accumulating(self) -> Self:
        """Let each firing give the result of all records in the window so far.

        Gearpump: `Windows.accumulating`, which goes on from one window to the next.
        """
        return replace(self, accumulation="accumulating")

    def retracting(self) -> Self:
        """Let each firing be about all, behind the results that it replaces, marked so."""
        return replace(self, accumulation="retracting")

    def allowed_lateness(self, lateness: Duration) -> Self:
        """Set how long after the close of a window records for it are still taken.

        Raises:
            ConfigError: it is no duration, or nothing is ever late in such windows.
        """
        return replace(self, allowed_lateness_ms=duration_ms(lateness))

    def allowing(self, lateness: Duration) -> Self:
        """Do as `allowed_lateness` does; this is its earlier name."""
        return self.allowed_lateness(lateness)

    @property
    def is_plain(self) -> bool:
        """Whether each window fires once, when the watermark closes it, and takes nothing late."""
        early, _ = phases_of(self.trigger)
        return self.clock == "event" and early is None and self.allowed_lateness_ms == 0

    def _mistakes(self) -> list[str]:
        return []

    def _mistakes_of_all(self) -> list[str]:
        mistakes = []
        if self.clock not in _CLOCKS:
            mistakes.append(f"clock {self.clock!r} of windows is not known: {_either(_CLOCKS)}")
        if self.accumulation not in _ACCUMULATIONS:
            mistakes.append(
                f"accumulation {self.accumulation!r} of windows is not known: "
                f"{_either(_ACCUMULATIONS)}"
            )
        if not _is_whole(self.allowed_lateness_ms) or self.allowed_lateness_ms < 0:
            mistakes.append(
                f"allowed lateness is {self.allowed_lateness_ms!r} ms, must be a whole number, "
                "0 or more: write allowed_lateness('5s')"
            )
        elif self.clock == "processing" and self.allowed_lateness_ms:
            mistakes.append(
                "nothing is late for windows of wall time: leave out allowed_lateness(...), "
                "or use clock='event'"
            )
        return mistakes


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedWindows(Windows):
    """Windows that are the same for all keys and known before any record."""

    def starts_of(self, timestamp_ms: int) -> Sequence[int]:
        """Return the starts of all windows that hold this time, in order."""
        raise NotImplementedError

    def end_of(self, start_ms: int) -> int:
        """Return the end of the window that starts at ``start_ms``."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class DisjointWindows(AlignedWindows):
    """Windows side by side: each time is in one."""

    def start_of(self, timestamp_ms: int) -> int:
        """Return the start of the window that holds this time."""
        raise NotImplementedError

    def starts_of(self, timestamp_ms: int) -> Sequence[int]:
        """Return the start of the one window that holds this time."""
        return (self.start_of(timestamp_ms),)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlappingWindows(AlignedWindows):
    """Windows of one size, of which several hold each time."""

    def piece_of(self, timestamp_ms: int) -> int:
        """Return the last boundary of a window at or before this time.

        Between two of them all times are in the same windows.
        """
        raise NotImplementedError

    def piece_until(self, piece_ms: int) -> int:
        """Return the next boundary of a window, where a piece ends."""
        raise NotImplementedError

    def may_close(self, before_ms: int, watermark_ms: int) -> bool:
        """Tell whether a window may end in a step of the watermark; asked at each one."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TumblingWindows(DisjointWindows):
    """Windows of one size, side by side. Gearpump: `FixedWindows`.

    ``offset_ms`` moves their boundaries away from the epoch. Right for negative times, too.
    The last window ends with time itself, so that it closes, too.
    """

    size_ms: int
    offset_ms: int = 0

    def start_of(self, timestamp_ms: int) -> int:
        return timestamp_ms - (timestamp_ms - self.offset_ms) % self.size_ms

    def end_of(self, start_ms: int) -> int:
        return min(start_ms + self.size_ms, MAX_MS)

    def _mistakes(self) -> list[str]:
        return [*_of_length("window size", self.size_ms), *_of_offset(self.offset_ms)]


#: Gearpump's name.
FixedWindows = TumblingWindows


@dataclass(frozen=True, slots=True)
class LocalWindows(DisjointWindows):
    """Windows side by side whose boundaries local clocks show: of a size, or so many months."""

    zone: str
    size_ms: int = 0
    offset_ms: int = 0
    months: int = 0
    steps: LocalSteps = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look the zone up."""
        super(LocalWindows, self).__post_init__()
        steps = steps_of(self.zone, self.size_ms, self.offset_ms, self.months, 0)
        object.__setattr__(self, "steps", steps)

    def start_of(self, timestamp_ms: int) -> int:
        return self.steps.start_of(timestamp_ms)

    def end_of(self, start_ms: int) -> int:
        return self.steps.end_of(start_ms)

    def _mistakes(self) -> list[str]:
        of_size = [] if self.months else _of_length("window size", self.size_ms)
        return [*of_size, *_of_offset(self.offset_ms)]


@dataclass(frozen=True, slots=True)
class SlidingWindows(OverlappingWindows):
    """Windows of one size, one beginning every so often; a record is in all that hold its time.

    Gearpump: `SlidingWindows`, whose assigner puts each record into one of them only.
    """

    size_ms: int
    every_ms: int
    offset_ms: int = 0

    def starts_of(self, timestamp_ms: int) -> Sequence[int]:
        """Return the starts of all windows that hold this time, in order."""
        last = timestamp_ms - (timestamp_ms - self.offset_ms) % self.every_ms
        more = (self.size_ms - 1 - (timestamp_ms - last)) // self.every_ms
        return range(last - more * self.every_ms, last + 1, self.every_ms)

    def end_of(self, start_ms: int) -> int:
        return min(start_ms + self.size_ms, MAX_MS)

    def piece_of(self, timestamp_ms: int) -> int:
        """Return the last boundary of a window at or before this time.

        Between two of them all times are in the same windows.
        """
        begun = (timestamp_ms - self.offset_ms) % self.every_ms
        ended = (timestamp_ms - self.offset_ms - self.size_ms) % self.every_ms
        return timestamp_ms - min(begun, ended)

    def piece_until(self, piece_ms: int) -> int:
        """Return the next boundary of a window, where a piece ends."""
        begun = (piece_ms - self.offset_ms) % self.every_ms
        ended = (piece_ms - self.offset_ms - self.size_ms) % self.every_ms
        return piece_ms + self.every_ms - max(begun, ended)

    def may_close(self, before_ms: int, watermark_ms: int) -> bool:
        """Tell whether a window ends in a step of the watermark."""
        since_ms = (watermark_ms - self.offset_ms - self.size_ms) % self.every_ms
        return watermark_ms - since_ms > before_ms

    def _mistakes(self) -> list[str]:
        return _of_sliding(self.size_ms, self.every_ms, self.offset_ms)


@dataclass(frozen=True, slots=True)
class LocalSlidingWindows(OverlappingWindows):
    """Sliding windows, each some steps that local clocks show."""

    zone: str
    size_ms: int
    every_ms: int
    offset_ms: int = 0
    steps: LocalSteps = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look the zone up."""
        super(LocalSlidingWindows, self).__post_init__()
        steps = steps_of(self.zone, self.every_ms, self.offset_ms, 0, self.size_ms)
        object.__setattr__(self, "steps", steps)

    def starts_of(self, timestamp_ms: int) -> Sequence[int]:
        """Return the starts of all windows that hold this time, in order."""
        return self.steps.starts_of(timestamp_ms, self.size_ms)

    def end_of(self, start_ms: int) -> int:
        return self.steps.ends_after(start_ms, self.size_ms)

    def piece_of(self, timestamp_ms: int) -> int:
        """Return the start of the step that holds this time."""
        return self.steps.start_of(timestamp_ms)

    def piece_until(self, piece_ms: int) -> int:
        """Return the end of the step that begins then."""
        return self.steps.end_of(piece_ms)

    def may_close(self, before_ms: int, watermark_ms: int) -> bool:
        """Tell whether a step begins in a step of the watermark."""
        return self.steps.start_of(watermark_ms) > before_ms

    def _mistakes(self) -> list[str]:
        mistakes = _of_sliding(self.size_ms, self.every_ms, self.offset_ms)
        if not mistakes and self.size_ms % self.every_ms:
            mistakes.append(
                f"windows of {self.size_ms} ms that begin every {self.every_ms} ms: with a zone "
                "the size is a multiple of the time between windows, as in "
                'sliding("1d", every="6h", zone=...)'
            )
        return mistakes


@dataclass(frozen=True, slots=True)
class SessionWindows(Windows):
    """Windows of each key that end when nothing has come for ``gap_ms``.

    A record begins with a window ``[time, time + gap)`` of its own, which becomes one with all
    that it overlaps. Gearpump: `SessionWindows`.
    """

    gap_ms: int

    def _mistakes(self) -> list[str]:
        return _of_length("session gap", self.gap_ms)


@dataclass(frozen=True, slots=True)
class CountWindows(Windows):
    """Windows of each key that hold so many records, in the order in which they come.

    The rest fires at the end of the stream.
    """

    records: int

    def _mistakes(self) -> list[str]:
        mistakes = []
        if not _is_whole(self.records) or self.records <= 0:
            mistakes.append(f"count window has {self.records!r} records, must be more than 0")
        if self.trigger != AT_CLOSE or self.accumulation != "discarding":
            mistakes.append("a count window fires once, when it is full: leave out its trigger")
        if self.allowed_lateness_ms:
            mistakes.append("nothing is late for a count window: leave out allowed_lateness(...)")
        if self.clock != "event":
            mistakes.append("a count window has no clock: leave it out")
        return mistakes


@dataclass(frozen=True, slots=True)
class GlobalWindows(DisjointWindows):
    """One window over everything; it closes when the stream ends. Gearpump: `GlobalWindows`."""

    def start_of(self, timestamp_ms: int) -> int:
        return MIN_MS

    def end_of(self, start_ms: int) -> int:
        return MAX_MS

    def _mistakes(self) -> list[str]:
        if self.allowed_lateness_ms:
            return [
                "nothing is late for the window over everything: leave out allowed_lateness(...)"
            ]
        return []


def tumbling(
    size: Duration,
    offset: Duration = "0s",
    clock: WindowClock = "event",
    *,
    zone: ZoneName | None = None,
) -> TumblingWindows | LocalWindows:
    """Return windows of one size, side by side: ``tumbling("10s")``.

    Args:
        size: of each window.
        offset: moves them away from the epoch: ``tumbling("1d", offset="6h")``.
        clock: "event", or "processing" for windows of the wall time at which records come.
        zone: name of a time zone, such as "Europe/Berlin", whose clocks show where windows begin;
            UTC by default. A day then has 23 to 25 hours, and results have `local_start` and
            `local_end`, too.

    Raises:
        ConfigError: not a duration, or no more than 0; or the zone is not known.

    Example:
        >>> import gearpy as gp
        >>> days = gp.tumbling("1d", zone="Europe/Berlin")
        >>> start = days.start_of(1_774_785_600_000)  # 2026-03-29T12:00:00Z
        >>> (days.end_of(start) - start) // 3_600_000
        23
    """
    size_ms, offset_ms = duration_ms(size), duration_ms(offset)
    if zone is None:
        return TumblingWindows(size_ms, offset_ms, clock=clock)
    return LocalWindows(zone_of(zone).name, size_ms, offset_ms, clock=clock)


def sliding(
    size: Duration,
    every: Duration = "",
    offset: Duration = "0s",
    clock: WindowClock = "event",
    *,
    zone: ZoneName | None = None,
) -> SlidingWindows | LocalSlidingWindows:
    """Return windows of one size, one beginning ``every`` so often: ``sliding("1m", "10s")``.

    Args:
        size: of each window.
        every: from one beginning to the next, at most the size; it has no default.
        offset: moves them away from the epoch.
        clock: "event", or "processing" for windows of the wall time at which records come.
        zone: name of a time zone whose clocks show where windows begin; UTC by default. The size
            is a multiple of ``every`` then; days go by the date, so they have 23 to 25 hours.

    Raises:
        ConfigError: not a duration, no more than 0, or the windows leave gaps; ``every`` is
            missing; or the zone is not known.
    """
    if every == "":
        raise ConfigError(
            "sliding windows need to know how often one begins: add it, as in "
            'sliding("1m", every="10s")'
        )
    size_ms, every_ms, offset_ms = duration_ms(size), duration_ms(every), duration_ms(offset)
    if zone is None:
        return SlidingWindows(size_ms, every_ms, offset_ms, clock=clock)
    return LocalSlidingWindows(zone_of(zone).name, size_ms, every_ms, offset_ms, clock=clock)


def calendar(
    unit: CalendarUnit, *, zone: ZoneName = "UTC", clock: WindowClock = "event"
) -> LocalWindows:
    """Return windows of the calendar: days, weeks from Monday on, months, quarters or years.

    Args:
        unit: "day", "week", "month", "quarter" or "year".
        zone: name of the time zone in which they begin at midnight.
        clock: "event", or "processing" for windows of the wall time at which records come.

    Raises:
        ConfigError: there is no such unit, or the zone is not known.

    Example:
        >>> import gearpy as gp
        >>> months = gp.calendar("month", zone="Europe/Berlin")
        >>> start = months.start_of(1_774_785_600_000)  # 2026-03-29T12:00:00Z
        >>> (months.end_of(start) - start) // 3_600_000  # 31 days, of which one has 23 hours.
        743
    """
    if unit not in CALENDAR:
        raise ConfigError(f"calendar unit {unit!r} is not known: {_either(list(CALENDAR))}")
    return LocalWindows(zone_of(zone).name, *CALENDAR[unit], clock=clock)


def session(gap: Duration, clock: WindowClock = "event") -> SessionWindows:
    """Return windows of each key that end when nothing has come for the gap: ``session("30m")``.

    Raises:
        ConfigError: not a duration, or no more than 0.
    """
    return SessionWindows(duration_ms(gap), clock=clock)


def count_window(records: int) -> CountWindows:
    """Return windows of each key that hold so many records, in the order in which they come.

    Raises:
        ConfigError: it is no more than 0.
    """
    return CountWindows(records)


def global_window(clock: WindowClock = "event") -> GlobalWindows:
    """Return the one window over everything; it closes when the stream ends.

    Args:
        clock: by which its trigger goes, if it has one.
    """
    return GlobalWindows(clock=clock)


def too_many_windows(windows: Windows) -> list[str]:
    """Return the mistake of windows that overlap so much that no machine could hold them."""
    if not isinstance(windows, SlidingWindows | LocalSlidingWindows):
        return []
    size_ms, every_ms, most = windows.size_ms, windows.every_ms, WINDOWS_OF_RECORD_MAX
    if (count := -(-size_ms // every_ms)) <= most:
        return []
    return [
        (
            f"each record is in {count} windows of {size_ms} ms that begin every {every_ms} ms, "
            f"and {most} are the most: let one begin every {-(-size_ms // most)} ms or less often, "
            "or use tumbling windows"
        )
    ]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _of_length(name: str, value_ms: object) -> list[str]:
    if not isinstance(value_ms, int) or isinstance(value_ms, bool):
        return [f"{name} is {value_ms!r}, must be whole ms: the functions take '10s', as tumbling"]
    return [] if value_ms > 0 else [f"{name} is {value_ms} ms, must be more than 0"]


def _of_sliding(size_ms: int, every_ms: int, offset_ms: int) -> list[str]:
    mistakes = [
        *_of_length("window size", size_ms),
        *_of_length("time between windows", every_ms),
        *_of_offset(offset_ms),
    ]
    if not mistakes and every_ms > size_ms:
        mistakes.append(
            f"windows of {size_ms} ms that begin every {every_ms} ms leave out what "
            "is between them: make the size at least as long, or filter"
        )
    return mistakes


def _of_offset(offset_ms: object) -> list[str]:
    return [] if _is_whole(offset_ms) else [f"window offset is {offset_ms!r}, must be whole ms"]


def _either(names: Sequence[str]) -> str:
    return f"choose one of {', '.join(names)}"
