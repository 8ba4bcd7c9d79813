"""Columns of every type: they give what rows of their values give, or both are refused."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.expressions.binding import ROW_ERRORS
from gearpy.messages.table import cells_of

_TIMES: Final = [
    datetime(2021, 10, 31, 0, 30, tzinfo=UTC),
    datetime(2021, 10, 31, 1, 30, tzinfo=UTC),
    datetime(9999, 12, 29, 23, 59, 59, 999999, tzinfo=UTC),
]
COLUMNS: Final = {
    "bool": pa.array([None, True, False]),
    "int8": pa.array([None, -7, 127], pa.int8()),
    "uint64": pa.array([None, 7, 1 << 63, (1 << 64) - 1], pa.uint64()),
    "float": pa.array([None, -0.0, math.nan, 2.5]),
    "decimal": pa.array([None, Decimal("0.00"), Decimal("-2.50")], pa.decimal128(10, 2)),
    "text": pa.array([None, "", "a.b", "12"]),
    "large": pa.array([None, "", "a.b", "12"], pa.large_string()),
    "view": pa.array([None, "", "a.b", "12"], pa.string_view()),
    "codes": pa.array([None, "", "a.b", "a.b"]).dictionary_encode(),
    "bytes": pa.array([None, b"", b"ab"], pa.binary_view()),
    "date": pa.array([None, date(2024, 2, 29), date(1, 1, 1)]),
    "time": pa.array([None, 0, 86_399_999_999], pa.time64("us")),
    "utc": pa.array([None, *_TIMES], pa.timestamp("us", "UTC")),
    "berlin": pa.array([None, *_TIMES], pa.timestamp("us", "Europe/Berlin")),
    "naive": pa.array([None, 1, 1_000_000], pa.timestamp("us")),
    "duration": pa.array([None, timedelta(0), timedelta(days=-1, microseconds=5)]),
    "list": pa.array([None, [], ["a", None], ["b", "c"]], pa.large_list(pa.string())),
    "null": pa.nulls(2),
}
#: Over rows there is no type that could be refused: all values are other ones.
_OF_ROWS: Final = {"bool", "list"}
_NUMBERS: Final = ("bool", "int8", "uint64", "float", "decimal")
_TEXTS: Final = ("text", "large", "view", "codes")
_ZONED: Final = ("utc", "berlin")
_DAY: Final = timedelta(days=1)
Made = Callable[[gp.Expr], gp.Expr]
EXPRESSIONS: Final[dict[str, tuple[Made, tuple[str, ...]]]] = {
    "//": (lambda e: e // 2, _NUMBERS),
    "//0": (lambda e: e // 0, _NUMBERS),
    "%": (lambda e: e % True, _NUMBERS),
    "% of": (lambda e: -7 % e, _NUMBERS),
    "/0": (lambda e: e / 0, _NUMBERS),
    "-": (lambda e: 1 - e, _NUMBERS),
    "+": (lambda e: e + 0.5, _NUMBERS),
    "<": (lambda e: e < 8, _NUMBERS),
    "==": (lambda e: e == 0.5, _NUMBERS),
    "negate": (lambda e: -e, _NUMBERS),
    "abs": (abs, _NUMBERS),
    "floor": (lambda e: e.floor(), _NUMBERS),
    "round": (lambda e: e.round(1), _NUMBERS),
    "filled": (lambda e: e.fill_null(0.5), _NUMBERS[1:]),
    "chosen": (lambda e: gp.when(e > 5).then(e).otherwise(0.5), _NUMBERS[1:]),
    "is_in": (lambda e: e.is_in([7, 0.0]), _NUMBERS),
    "from_epoch": (lambda e: e.dt.from_epoch("s"), ("int8", "uint64")),
    "upper": (lambda e: e.str.upper(), _TEXTS),
    "like": (lambda e: e.str.like("%.%"), _TEXTS),
    "texts": (lambda e: gp.concat(e, "-"), _TEXTS),
    "in texts": (lambda e: e.is_in(["a.b"]), _TEXTS),
    "later": (lambda e: e + _DAY, ("utc", "berlin", "naive", "duration")),
    "too late": (lambda e: e + 9999 * 365 * _DAY, ("utc", "berlin", "naive", "duration")),
    "earlier": (lambda e: e - _DAY, ("utc", "berlin", "naive", "duration")),
    "since": (lambda e: e - _TIMES[0], _ZONED),
    "last": (lambda e: gp.greatest(e, _TIMES[0]), _ZONED),
    "days": (lambda e: e - date(2024, 1, 1), ("date",)),
    "half": (lambda e: e * 0.5, ("duration", "float")),
    "least": (lambda e: gp.least(e, None), ("utc", "duration", "date", "null", "text")),
    "to_zone": (lambda e: e.dt.to_zone("Asia/Tokyo"), ("date", "utc", "berlin")),
    "joined": (lambda e: e.list.join("+"), ("list",)),
    "cast date": (lambda e: e.cast(date), (*_NUMBERS, "bytes", "time", "utc", "date")),
    "cast str": (lambda e: e.cast(str), tuple(COLUMNS.keys() - {"bytes"})),
    "cast large": (lambda e: e.cast(pa.large_string()), (*_NUMBERS, "utc", "date", "codes")),
    "cast ms": (lambda e: e.cast(pa.timestamp("ms")), ("utc", "naive", "date")),
    "cast duration": (lambda e: e.cast(pa.duration("us")), ("duration",)),
}


@pytest.mark.parametrize(
    ("made", "column"),
    [
        pytest.param(made, column, id=f"{name}-{column}")
        for name, (made, columns) in EXPRESSIONS.items()
        for column in columns
    ],
)
def test_columns_give_what_rows_give(made: Made, column: str) -> None:
    expression, values = made(gp.col("c")), COLUMNS[column]
    function = expression.row()
    try:
        bound = expression.bind(pa.schema([("c", values.type)]))
    except gp.ConfigError:
        bound = None
    for place, value in enumerate(cells_of(values)):
        batch = pa.record_batch([values.slice(place, 1)], ["c"])
        of_row: Any
        try:
            of_row = function({"c": value})
        except ROW_ERRORS:
            if bound is not None:
                with pytest.raises(ROW_ERRORS):
                    bound.columns(batch)
            continue
        if bound is None:
            assert of_row is None or column in _OF_ROWS
            continue
        found = bound.columns(batch)
        assert found.type == bound.type
        assert _comparable(found.to_pylist()[0]) == _comparable(of_row)


_PARTS: Final = ("year", "weekday", "day_of_year", "hour", "minute", "microsecond", "date")
_ZONES: Final = (None, "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu")


@pytest.mark.parametrize("zone", _ZONES)
@pytest.mark.parametrize(
    "start",
    [
        datetime(2024, 3, 31, 0, 30, tzinfo=UTC),
        datetime(2050, 10, 30, 0, 30, tzinfo=UTC),
        datetime(
            1893, 3, 31, 22, 45, tzinfo=UTC
        ),  # Berlin left its own time then, at no round time of UTC.
        datetime(2021, 4, 3, 14, 30, tzinfo=UTC),  # Lord Howe sets its clocks by half an hour.
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 22, 30, tzinfo=UTC),
    ],
)
def test_many_times_near_changes_of_clocks(start: datetime, zone: str | None) -> None:
    at = gp.col("at")
    times = [None, *(start + timedelta(seconds=77 * each, microseconds=each) for each in range(60))]
    made = [getattr(at.dt, part)(zone=zone) for part in _PARTS]
    made += [at.dt.to_zone(zone or "UTC")]
    made += [at.dt.truncate(unit) for unit in ("day", "week", "month", "quarter", "year")]
    batch = pa.record_batch([pa.array(times, pa.timestamp("us", "UTC"))], ["at"])
    for expression in made:
        function, bound = expression.row(), expression.bind(batch.schema)
        try:
            of_rows = [function({"at": time}) for time in times]
        except OverflowError:
            with pytest.raises(OverflowError):
                bound.columns(batch)
        else:
            assert bound.columns(batch).to_pylist() == of_rows


@pytest.mark.parametrize(
    "make",
    [
        lambda: gp.lit("\ud800"),
        lambda: gp.col("\ud800"),
        lambda: gp.col("a") == "\ud800",
        lambda: gp.col("a").is_in(["b", "\ud800"]),
        lambda: gp.col("a").str.contains("\ud800"),
        lambda: gp.col("a").str.replace("a", "\ud800"),
    ],
    ids=["lit", "col", "compared", "options", "part", "replaced"],
)
def test_half_a_character_is_no_text(make: Callable[[], gp.Expr]) -> None:
    with pytest.raises(gp.ConfigError, match="has half of a character"):
        make()


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return str(value)
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value
