"""Windows of local clocks: they lie side by side, and are where `zoneinfo` has them."""

import pickle
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.times import duration_ms
from gearpy.core.window.windows import (
    CalendarUnit,
    LocalSlidingWindows,
    LocalWindows,
    calendar,
    sliding,
    tumbling,
)
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
#: Changes by an hour, by half of one, at midnight, by a day, and in short years.
ZONES: Final = [
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "America/Santiago",
    "America/St_Johns",
    "Africa/Casablanca",
    "UTC",
]
SIZES: Final = ["1m", "7m", "15m", "1h", "90m", "4h", "5h", "1d", "36h", "1w", "10d"]
TIMES: Final = st.one_of(
    st.integers(0, 1_900_000_000_000), st.integers(-5_000_000_000_000, 5_000_000_000_000_000)
)


def ms_of(*fields: int, zone: str) -> int:
    return (datetime(*fields, tzinfo=ZoneInfo(zone)) - EPOCH) // MILLISECOND  # type: ignore[arg-type, misc]


def changes(zone: str) -> list[int]:
    """Return the hours of twenty years behind which clocks have changed."""
    info = ZoneInfo(zone)
    hours = [EPOCH + timedelta(days=12_000 + day) for day in range(7_300)]
    offsets = [hour.astimezone(info).utcoffset() for hour in hours]
    days = [(a - EPOCH) // MILLISECOND for a, x, y in zip(hours, offsets, offsets[1:]) if x != y]  # noqa: B905
    return days or [0]


CHANGES: Final = {zone: changes(zone) for zone in ZONES}


@st.composite
def local_windows(draw: st.DrawFn) -> LocalWindows:
    zone = draw(st.sampled_from(ZONES))
    unit = draw(st.sampled_from(["size", "day", "week", "month", "quarter", "year"]))
    if unit != "size":
        return calendar(cast("CalendarUnit", unit), zone=zone)
    made = tumbling(
        draw(st.sampled_from(SIZES)), draw(st.sampled_from(["0s", "6h", "20m"])), zone=zone
    )
    assert isinstance(made, LocalWindows)
    return made


@st.composite
def times_near_changes(draw: st.DrawFn, zone: str) -> int:
    near = draw(st.sampled_from(CHANGES[zone])) + draw(st.integers(-DAY_MS, 2 * DAY_MS))
    return draw(st.sampled_from([near, near // HOUR_MS * HOUR_MS, draw(TIMES)]))


@given(data=st.data(), windows=local_windows())
def test_windows_of_any_zone_tile_the_time_line(data: st.DataObject, windows: LocalWindows) -> None:
    time_ms = data.draw(times_near_changes(windows.zone))

    start = windows.start_of(time_ms)
    end = windows.end_of(start)

    assert start <= time_ms < end
    assert windows.start_of(start) == windows.start_of(end - 1) == start
    assert windows.start_of(end) == end
    assert windows.end_of(windows.start_of(start - 1)) == start


@given(data=st.data(), zone=st.sampled_from(ZONES))
def test_sliding_windows_are_all_that_begin_with_a_step_and_hold_the_time(
    data: st.DataObject, zone: str
) -> None:
    size, every = data.draw(
        st.sampled_from([("1d", "1h"), ("1d", "15m"), ("2h", "1h"), ("30m", "15m"), ("3d", "1d")])
    )
    windows = sliding(size, every, zone=zone)
    assert isinstance(windows, LocalSlidingWindows)
    time_ms = data.draw(times_near_changes(zone))

    starts = list(windows.starts_of(time_ms))

    at, step = windows.piece_of(time_ms), windows.steps
    expected = []
    while at > time_ms - windows.size_ms - 26 * HOUR_MS:
        if windows.end_of(at) > time_ms:
            expected.append(at)
        at = step.start_of(at - 1)
    assert starts == expected[::-1]
    assert starts == list(windows.starts_of(windows.piece_of(time_ms)))
    ends = [windows.end_of(start) for start in starts]
    assert all(one <= two for one, two in pairwise(ends))  # Several where clocks go on.
    assert all(windows.piece_of(end) == end for end in ends)


@given(data=st.data(), zone=st.sampled_from(ZONES), size=st.sampled_from(["1h", "15m", "1d"]))
def test_sliding_windows_without_overlap_are_tumbling_ones(
    data: st.DataObject, zone: str, size: str
) -> None:
    time_ms = data.draw(times_near_changes(zone))
    one, other = tumbling(size, zone=zone), sliding(size, size, zone=zone)

    assert list(other.starts_of(time_ms)) == list(one.starts_of(time_ms))
    start = one.start_of(time_ms)
    assert other.end_of(start) == one.end_of(start)


@given(data=st.data(), zone=st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia"]))
def test_times_of_a_window_are_of_one_day_and_month(data: st.DataObject, zone: str) -> None:
    time_ms = data.draw(times_near_changes(zone).filter(lambda ms: abs(ms) < 10**14))
    local = (EPOCH + time_ms * MILLISECOND).astimezone(ZoneInfo(zone))

    def begun(unit: CalendarUnit) -> datetime:
        start = calendar(unit, zone=zone).start_of(time_ms)
        return (EPOCH + start * MILLISECOND).astimezone(ZoneInfo(zone))

    assert begun("day").date() == local.date()
    assert (begun("month").year, begun("month").month) == (local.year, local.month)
    assert begun("quarter").month == (local.month - 1) // 3 * 3 + 1
    assert begun("year").year == local.year
    monday = local.date() - timedelta(days=local.weekday())
    assert begun("week").date() in {monday, monday + timedelta(days=1)}  # Apia had no Friday once.
    assert begun("week").isocalendar()[:2] == local.isocalendar()[:2]


@pytest.mark.parametrize(
    ("windows", "at", "hours"),
    [
        (tumbling("1d", zone="Europe/Berlin"), (2026, 3, 29, 12), 23),
        (tumbling("1d", zone="Europe/Berlin"), (2026, 10, 25, 12), 25),
        (tumbling("1d", zone="Australia/Lord_Howe"), (2026, 4, 5, 12), 24.5),
        (tumbling("1d", zone="America/Sao_Paulo"), (2018, 11, 4, 12), 23),
        (tumbling("1d", zone="America/Sao_Paulo"), (2019, 2, 16, 12), 25),
        (tumbling("1d", zone="Pacific/Apia"), (2011, 12, 29, 12), 24),
        (tumbling("1d", offset="6h", zone="Europe/Berlin"), (2026, 3, 28, 12), 23),
        (tumbling("4h", zone="Europe/Berlin"), (2026, 10, 25, 1), 5),
        (tumbling("4h", zone="Europe/Berlin"), (2026, 3, 29, 1), 3),
        (tumbling("1h", zone="Europe/Berlin"), (2026, 10, 25, 2), 1),
        (tumbling("1h", zone="Australia/Lord_Howe"), (2026, 4, 5, 1), 1.5),
        (calendar("month", zone="Europe/Berlin"), (2024, 2, 29), 29 * 24),
        (calendar("month", zone="Europe/Berlin"), (2023, 2, 28), 28 * 24),
        (calendar("month", zone="Europe/Berlin"), (2026, 10, 1), 31 * 24 + 1),
        (calendar("week", zone="Europe/Berlin"), (2026, 3, 29), 167),
        (calendar("quarter", zone="Europe/Berlin"), (2024, 2, 1), 91 * 24 - 1),
        (calendar("year", zone="Europe/Berlin"), (2024, 2, 1), 366 * 24),
        (sliding("1d", "1h", zone="Europe/Berlin"), (2026, 3, 28, 12), 23),
        (sliding("2h", "1h", zone="Europe/Berlin"), (2026, 10, 25, 2), 2),
    ],
    ids=str,
)
def test_windows_have_the_hours_that_clocks_show(
    windows: LocalWindows | LocalSlidingWindows, at: tuple[int, ...], hours: float
) -> None:
    start = windows.starts_of(ms_of(*at, zone=windows.zone))[-1]

    assert (windows.end_of(start) - start) / HOUR_MS == hours


def test_windows_travel_with_what_they_have_found() -> None:
    windows = calendar("month", zone="Europe/Berlin")
    copied = pickle.loads(pickle.dumps(windows))  # noqa: S301 - made here

    assert copied == windows
    assert copied.steps is windows.steps


def test_windows_reach_the_ends_of_time() -> None:
    month = calendar("month", zone="Europe/Berlin")

    assert month.end_of(month.start_of(MAX_MS - 1)) == MAX_MS
    assert month.start_of(-(1 << 62)) <= -(1 << 62)


def test_zone_of_utc_is_as_none() -> None:
    plain, local = tumbling("7h", "1h"), tumbling("7h", "1h", zone="UTC")

    assert plain.start_of(123_456_789_012) == local.start_of(123_456_789_012)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tumbling("1d", zone="Europe/Berlim"), "did you mean 'Europe/Berlin'"),
        (lambda: tumbling("0s", zone="UTC"), "window size is 0 ms"),
        (lambda: sliding("5h", "2h", zone="UTC"), "a multiple of the time between windows"),
        (lambda: calendar(cast("CalendarUnit", "days")), "choose one of day, week, month"),
    ],
)
def test_windows_that_cannot_be_are_refused(make: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        make()  # type: ignore[operator]


def test_durations_of_weeks_begin_on_thursday_and_weeks_of_the_calendar_on_monday() -> None:
    at = ms_of(2026, 3, 25, 12, zone="UTC")

    assert tumbling("1w", zone="UTC").start_of(at) == ms_of(2026, 3, 19, zone="UTC")
    assert calendar("week").start_of(at) == ms_of(2026, 3, 23, zone="UTC")
    assert duration_ms("1w") == 7 * DAY_MS
