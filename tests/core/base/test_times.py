"""Durations and event times as people write them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.times import duration_ms, event_time_ms
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("2m", 120_000),
        ("1.5h", 5_400_000),
        ("1d", 86_400_000),
        ("0s", 0),
        (" 3 s ", 3000),
        ("+1s", 1000),
        ("0.001s", 1),
        ("1h30m", 5_400_000),
        ("1d 12h", 129_600_000),
        ("10 sec", 10_000),
        ("1 min", 60_000),
        ("2 minutes", 120_000),
        ("1w", 604_800_000),
        ("0.5 weeks", 302_400_000),
    ],
)
def test_a_number_with_a_unit_is_a_duration(text: str, expected_ms: int) -> None:
    assert duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "value", ["", "s", "10", "10 secs", "1e3s", "1h30", "1h-30m", "1 month", ".5s", True, None]
)
def test_what_is_no_duration_is_refused_with_the_units(value: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        duration_ms(value)

    assert repr(value) in str(refused.value)
    assert "ms, s, m, h, d, w" in str(refused.value)


@pytest.mark.parametrize("value", [60, -1, 1.5])
def test_a_number_without_a_unit_is_refused_with_what_it_may_mean(value: Any) -> None:
    with pytest.raises(ConfigError, match="has no unit") as refused:
        duration_ms(value)

    assert f"write '{value}ms' for milliseconds, or '{value}s' for seconds" in str(refused.value)


def test_nothing_needs_no_unit() -> None:
    nothing: Any = 0
    assert duration_ms(nothing) == 0


@pytest.mark.parametrize("value", ["-1s", timedelta(seconds=-1)])
def test_a_negative_duration_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="is negative"):
        duration_ms(value)


@pytest.mark.parametrize("value", ["1.5ms", "0.0001s", timedelta(microseconds=1)])
def test_a_fraction_of_a_millisecond_is_refused_and_not_rounded(value: Any) -> None:
    """A window of half a millisecond that became 0 would be a riddle."""
    with pytest.raises(ConfigError, match="not a whole number of milliseconds"):
        duration_ms(value)


def test_a_duration_longer_than_time_is_refused() -> None:
    with pytest.raises(ConfigError, match="is more than"):
        duration_ms(f"{MAX_MS + 1}ms")


@given(ms=st.integers(0, 10**15))
def test_a_duration_is_the_same_in_every_form(ms: int) -> None:
    """Property: text and timedelta agree to the millisecond."""
    assert duration_ms(f"{ms}ms") == ms
    assert duration_ms(f"{ms // 1000}.{ms % 1000:03d}s") == ms
    assert duration_ms(timedelta(milliseconds=ms)) == ms


@given(ms=st.integers(-62_000_000_000_000, 250_000_000_000_000), hours=st.integers(-12, 14))
def test_an_aware_datetime_is_the_same_instant_in_every_zone(ms: int, hours: int) -> None:
    """Property: neither zone nor float rounding moves an event."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    zone = timezone(timedelta(hours=hours))

    time = (epoch + timedelta(milliseconds=ms)).astimezone(zone)

    assert event_time_ms(time) == ms


def test_an_int_is_an_event_time() -> None:
    class Whole:
        def __index__(self) -> int:
            return 12

    assert event_time_ms(-5) == -5
    assert event_time_ms(Whole()) == 12  # type: ignore[arg-type]


def test_a_datetime_without_zone_is_refused_with_the_fix() -> None:
    """To guess the zone would move events by hours, and differently on every machine."""
    with pytest.raises(ConfigError, match=r"time\.replace\(tzinfo=datetime\.UTC\)"):
        event_time_ms(datetime(2024, 1, 1))  # noqa: DTZ001 - the mistake


@pytest.mark.parametrize("value", [True, "2024-01-01", None, 1.5, timedelta(1)])
def test_what_is_no_event_time_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=f"is a {type(value).__name__}: give"):
        event_time_ms(value)


@pytest.mark.parametrize("value", [MIN_MS, MAX_MS, 2**70])
def test_the_ends_of_time_are_no_event_times(value: int) -> None:
    """A record at the end of time would close every window."""
    with pytest.raises(ConfigError, match="does not fit"):
        event_time_ms(value)
