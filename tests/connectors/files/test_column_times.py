"""Event times out of columns of every type."""

from datetime import UTC, date, datetime
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.files.column_times import check_time_column, check_unit, times_of
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
        (pa.array([None, None]), "ms", [None, None]),
        (pa.array([], pa.string()), "ms", []),
    ],
    ids=["s", "ms", "us", "ns", "dates", "texts", "nulls", "none"],
)
def test_types_and_units(column: Any, unit: Any, expected: list[Any]) -> None:
    """Whole numbers count in a unit; texts may be dates."""
    assert times_of(column, unit).to_pylist() == expected


@pytest.mark.parametrize(
    ("cells", "message"),
    [(["soon"], "soon"), ([1.5], "double has no event times"), ([2**62], "overflow")],
)
def test_what_is_no_time_is_refused(cells: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        times_of(pa.array(cells), "s")
    with pytest.raises(ValueError, match="does not fit"):
        times_of(pa.array([2**63 - 1]))


def test_columns_are_checked_before_they_are_read() -> None:
    schema = pa.schema([("t", pa.string()), ("x", pa.float64())])

    check_time_column("csv", "t", schema)
    with pytest.raises(ConfigError, match="csv: time='u' is no column: there are t, x"):
        check_time_column("csv", "u", schema)
    with pytest.raises(ConfigError, match="time='x': double has no event times"):
        check_time_column("csv", "x", schema)
    with pytest.raises(ConfigError, match="time_unit is 'm'"):
        check_unit("csv", "m")
