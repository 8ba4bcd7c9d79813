"""Zones know what `zoneinfo` knows, at each time."""

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.zones import zone_of
from gearpy.errors import ConfigError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
ZONES: Final = st.sampled_from(
    [
        "Europe/Berlin",
        "Australia/Lord_Howe",
        "America/Sao_Paulo",
        "America/Santiago",
        "Africa/Casablanca",
        "Pacific/Apia",
        "America/St_Johns",
        "Asia/Kolkata",
        "UTC",
    ]
)
#: Years from 1801 on: nearly all of today.
TIMES: Final = st.one_of(
    st.integers(0, 2_400_000_000_000), st.integers(-5_333_000_000_000, 250_000_000_000_000)
)


@given(name=ZONES, time_ms=TIMES)
def test_clocks_show_what_they_do_in_zoneinfo(name: str, time_ms: int) -> None:
    moment = EPOCH + time_ms * MILLISECOND
    local = moment.astimezone(ZoneInfo(name))

    assert zone_of(name).offset_ms(time_ms) * MILLISECOND == local.utcoffset()
    assert datetime.fromisoformat(zone_of(name).text(time_ms)) == moment


@given(name=ZONES, local_ms=TIMES)
def test_local_time_means_what_it_does_in_zoneinfo(name: str, local_ms: int) -> None:
    local = datetime(1970, 1, 1, tzinfo=ZoneInfo(name)) + local_ms * MILLISECOND

    assert EPOCH + zone_of(name).time_ms(local_ms) * MILLISECOND == local.astimezone(UTC)


def test_local_time_that_no_clock_shows_or_that_comes_twice_has_a_rule() -> None:
    berlin = zone_of("Europe/Berlin")
    gap, twice = (datetime(2026, *at, tzinfo=UTC) for at in ((3, 29, 2, 30), (10, 25, 2, 30)))

    found = [berlin.text(berlin.time_ms((at - EPOCH) // MILLISECOND)) for at in (gap, twice)]

    assert found == ["2026-03-29T03:30:00+02:00", "2026-10-25T02:30:00+02:00"]


@pytest.mark.long
def test_no_change_of_any_zone_is_missed() -> None:
    """Changes are looked for between days that differ, so none may take another one back."""
    for name in sorted(available_timezones()):
        zone, info = zone_of(name), ZoneInfo(name)
        for day in range(31_000):
            moment = EPOCH + timedelta(days=day)
            offset = moment.astimezone(info).utcoffset()
            assert zone.offset_ms(day * 86_400_000) * MILLISECOND == offset, (name, moment)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("America/New York", "did you mean 'America/New_York'?"),
        ("", "names are such as 'Europe/Berlin' or 'UTC'"),
        ("../zoneinfo/UTC", "did you mean"),
        (2, "must be the name of one"),
    ],
)
def test_zone_that_there_is_not_is_refused_with_the_one_meant(name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match="zone") as refused:
        zone_of(name)

    assert advice in str(refused.value)
