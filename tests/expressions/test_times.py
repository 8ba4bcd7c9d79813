"""Times in zones, at the ends of summer time, and before 1970: the same over columns and rows."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp

T: Final = gp.col("t")
BERLIN: Final = "Europe/Berlin"
TIMES: Final = [
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC),  # Clocks go on to 3:00 at 1:00 UTC.
    datetime(2026, 3, 29, 1, 30, 15, 123_456, tzinfo=UTC),
    datetime(2026, 10, 25, 0, 30, tzinfo=UTC),  # They show 2:30 twice.
    datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    None,
]
PARTS: Final = [
    *("year", "quarter", "month", "day", "weekday", "day_of_year"),
    *("hour", "minute", "second", "microsecond", "date"),
]


@pytest.mark.parametrize("zone", [None, BERLIN])
@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ms", BERLIN)]
)
@pytest.mark.parametrize("often", [1, 3])
def test_columns_and_rows_give_the_same(zone: str | None, kind: pa.DataType, often: int) -> None:
    """Also of times that come often, which columns ask for once."""
    batch = pa.record_batch(
        {"t": pa.array(TIMES * often, pa.timestamp("us", "UTC")).cast(kind, safe=False)}
    )
    made = [getattr(T.dt, part)(zone=zone) for part in PARTS]
    made += [
        T.dt.truncate(every, zone=zone)
        for every in ("15m", "1h", "day", "week", "month", "quarter", "year")
    ]
    made += [
        T.dt.strftime(text, zone=zone)
        for text in ("%Y-%j %H:%M", "%d.%m.", "%%f %X", "%a", "%H:%M:%S.%f", "%s")
    ]
    made += [T.dt.to_zone(BERLIN), T.dt.epoch("ms")]

    for each in made:
        assert each.bind(batch.schema).columns(batch).to_pylist() == [
            each(row) for row in batch.to_pylist()
        ], str(each)


def test_an_hour_that_clocks_show_twice_is_two() -> None:
    hours = T.dt.truncate("1h", zone=BERLIN)

    first, second = (hours({"t": time}) for time in TIMES[3:5])

    assert second - first == timedelta(hours=1)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: T.dt.hour(zone="Europe/Berlim"), "there is no time zone 'Europe/Berlim'"),
        (lambda: T.dt.truncate("2d"), "a duration of less than a day"),
        (lambda: T.dt.epoch("ns"), 'give "s", "ms" or "us"'),
    ],
)
def test_mistakes_are_told_where_they_are_made(wrong: object, text: str) -> None:
    with pytest.raises(gp.ConfigError, match=text):
        wrong()  # type: ignore[operator]


def test_parts_of_a_clock_are_of_no_date() -> None:
    with pytest.raises(gp.ConfigError, match="hour takes a time, not date32"):
        T.dt.hour().bind({"t": "date32[day]"})
