"""Event times out of columns of every type."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast
from zoneinfo import ZoneInfo

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.files.column_times import (
    TimeForm,
    TimeUnit,
    cell_at,
    check_time_column,
    column_at,
    time_form,
    times_of,
)
from gearpy.core.base.times import event_time_ms
from gearpy.errors import ConfigError


@given(st.lists(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1))))  # noqa: DTZ001
def test_timestamps_are_as_event_times_of_rows(times: list[datetime]) -> None:
    """Property: cut towards the past, with a zone or as UTC; also as text."""
    aware = [time.replace(tzinfo=UTC) for time in times]
    expected = [event_time_ms(time) for time in aware]

    for column in (
        pa.array(times, pa.timestamp("us")),
        pa.array(aware, pa.timestamp("us", tz="UTC")),
        pa.array([time.isoformat() for time in times], pa.string()),
        pa.array([time.isoformat() for time in aware], pa.string()),
    ):
        assert times_of(column).to_pylist() == expected


@pytest.mark.parametrize(
    ("column", "unit", "expected"),
    [
        (pa.array([1, None, -1]), "s", [1000, None, -1000]),
        (pa.array([1, -1], pa.int32()), "ms", [1, -1]),
        (pa.array([1999, -1]), "us", [1, -1]),
        (pa.array([1_999_999, -1]), "ns", [1, -1]),
        (pa.array([date(1970, 1, 2)]), "ms", [86_400_000]),
        (
            pa.array(["2026-03-01", " 2026-03-01T00:00:01+01:00 "]),
            "ms",
            [1772323200000, 1772319601000],
        ),
        (pa.array([1695.25, -0.0005, 1_772_355_600.123]), "s", [1_695_250, -1, 1_772_355_600_123]),
        (pa.array([1.9, -0.5]), "ms", [1, -1]),
        (pa.array([Decimal("1695.25"), None]), "s", [1_695_250, None]),
        (pa.array([None, None]), "ms", [None, None]),
        (pa.array([], pa.string()), "ms", []),
    ],
    ids=[
        "s",
        "ms",
        "us",
        "ns",
        "dates",
        "texts",
        "fractions",
        "ms-fractions",
        "decimals",
        "nulls",
        "none",
    ],
)
def test_types_and_units(column: Any, unit: Any, expected: list[Any]) -> None:
    """Whole numbers count in a unit; texts may be dates."""
    assert times_of(column, TimeForm(unit)).to_pylist() == expected


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["soon"], "soon"),
        ([True], "bool has no event times"),
        ([2**62], "overflow"),
        ([float("nan")], "nan"),
        ([1e300], "truncated"),
    ],
)
def test_what_is_no_time_is_refused(cells: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        times_of(pa.array(cells), TimeForm("s"))
    with pytest.raises(ValueError, match="does not fit"):
        times_of(pa.array([2**63 - 1]))


def test_columns_are_checked_before_they_are_read() -> None:
    schema = pa.schema([("t", pa.string()), ("x", pa.bool_())])

    check_time_column("csv", "t", schema)
    with pytest.raises(ConfigError, match="csv: time='u' is no column: there are t, x"):
        check_time_column("csv", "u", schema)
    with pytest.raises(ConfigError, match="time='x': bool has no event times"):
        check_time_column("csv", "x", schema)
    with pytest.raises(ConfigError, match="time_unit is 'm'"):
        time_form("csv", cast("TimeUnit", "m"), None)
    with pytest.raises(ConfigError, match="csv: zone 'Europe/Berlim' is not known: did you mean"):
        time_form("csv", "ms", "Europe/Berlim")


@given(
    times=st.lists(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2040, 1, 1))),  # noqa: DTZ001
    zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC"]),
)
def test_times_without_a_zone_are_of_the_one_that_is_told(times: list[datetime], zone: str) -> None:
    """As `zoneinfo` reads them with fold 0, also those that no clock shows, and those of twice."""
    expected = [event_time_ms(time.replace(tzinfo=ZoneInfo(zone))) for time in times]
    form = TimeForm(zone=zone)

    assert times_of(pa.array(times, pa.timestamp("us")), form).to_pylist() == expected
    texts = [time.isoformat(" ") for time in times]
    assert times_of(pa.array(texts, pa.string()), form).to_pylist() == expected


def test_texts_that_tell_their_zone_keep_it_and_dates_are_local_midnights() -> None:
    texts = pa.array(["2026-07-01T00:00:00Z", "2026-07-01T00:00:00", "2026-07-01", None])
    form = TimeForm(zone="Europe/Berlin")

    midnight = event_time_ms(datetime(2026, 7, 1, tzinfo=UTC))
    local = midnight - 7_200_000
    assert times_of(texts, form).to_pylist() == [midnight, local, local, None]
    assert times_of(pa.array([date(2026, 7, 1)]), form).to_pylist() == [local]


def test_time_may_be_in_a_record_of_a_row() -> None:
    rows = [{"meta": {"ts": 5, "more": {"at": 7}}, "a.b": 1}, {"meta": None, "a.b": 2}]
    table = pa.RecordBatch.from_pylist(rows)

    assert column_at(table, "meta.ts").to_pylist() == [5, None]
    assert column_at(table, "meta.more.at").to_pylist() == [7, None]
    assert column_at(table, "a.b").to_pylist() == [1, 2]
    assert [cell_at(rows[0], each) for each in ("meta.more.at", "a.b")] == [7, 1]
    check_time_column("csv", "meta.ts", table.schema)
    with pytest.raises(ConfigError, match=r"time='meta\.no' is no column: there are meta, a\.b"):
        check_time_column("csv", "meta.no", table.schema)
