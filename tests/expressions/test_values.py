"""Functions of texts, numbers, lists and times give the same over columns and over rows."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.expressions.binding import ROW_ERRORS

S: Final = gp.col("s")
_TEXTS: Final = {
    "replace_matches": S.str.replace_matches("([aä])b?", r"<\1>"),
    "replace_first": S.str.replace_matches("a", "", count=1),
    "find": S.str.find("b"),
    "pad_start": S.str.pad_start(4, "xy"),
    "pad_end": S.str.pad_end(3),
    "reverse": S.str.reverse(),
    "repeat": S.str.repeat(2),
    "md5": S.str.digest("md5"),
    "cast": S.cast(int, strict=False),
    "day": S.cast(date, strict=False),
}
_NUMBERS: Final = {
    **{name: getattr(S, name)() for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    "log2": S.log(2),
    "log10": S.log(10),
    **{f"round {digits}": S.round(digits, half="away") for digits in (-1, 0, 2)},
    "small": S.cast("int8", strict=False),
}
_LISTS: Final = {
    **{name: getattr(S.list, name)() for name in ("sum", "mean", "min", "max", "sort", "unique")},
    "reverse": S.list.reverse(),
    "falling": S.list.sort(descending=True),
    "slice": S.list.slice(1, -1),
    "find": S.list.find(2),
    "join": S.list.join("+"),
}
_TIMES: Final = {
    "week": S.dt.week(),
    "iso_year": S.dt.iso_year(zone="Europe/Berlin"),
    "later": S.dt.add_months(13),
    "earlier": S.dt.add_months(-1),
}
_INTS: Final = st.sampled_from([0, 1, -15, 25, 1 << 53, (1 << 63) - 1, -(1 << 63)])


def check(expression: gp.Expr, values: list[Any], kind: Any) -> None:
    """Compare a column with its rows; where one of these is refused, so is the column."""
    batch = pa.record_batch({"s": pa.array(values, kind)})
    bound = expression.bind(batch.schema)
    try:
        expected = [expression({"s": value}) for value in values]
    except ROW_ERRORS:
        with pytest.raises(ROW_ERRORS):
            bound.columns(batch)
        return
    found = bound.columns(batch).to_pylist()
    for one, other in zip(found, pa.array(expected, bound.type).to_pylist(), strict=True):
        assert one == other or math.isclose(one, other, rel_tol=1e-15) or (one != one != other)  # noqa: PLR0124


@given(st.data())
@pytest.mark.parametrize("name", _TEXTS)
def test_texts(name: str, data: st.DataObject) -> None:
    some = st.text("aäb1-", max_size=5) | st.sampled_from(["12", "2026-01-31", "99999"])
    check(_TEXTS[name], data.draw(st.lists(some | st.none(), max_size=4)), pa.string())


@given(st.data())
@pytest.mark.parametrize("name", _NUMBERS)
def test_numbers(name: str, data: st.DataObject) -> None:
    """Also those that have no value, and halves."""
    halves = st.sampled_from([0.5, 1.5, -2.5, 0.125, 1e300, math.inf, math.nan, 0.0, -1.0])
    for some, kind in ((halves | st.floats(), pa.float64()), (_INTS, pa.int64())):
        check(_NUMBERS[name], data.draw(st.lists(some | st.none(), max_size=4)), kind)


@given(st.data())
@pytest.mark.parametrize("name", _LISTS)
def test_lists(name: str, data: st.DataObject) -> None:
    """Also empty ones, and such with missing items."""
    lists = st.lists(st.none() | _INTS | st.integers(0, 3), max_size=4)
    values = data.draw(st.lists(st.none() | lists, max_size=4))
    check(_LISTS[name], values, pa.list_(pa.int64()))


@given(st.data())
@pytest.mark.parametrize("name", _TIMES)
def test_times(name: str, data: st.DataObject) -> None:
    """Also the last days of months, and dates."""
    times = st.datetimes(datetime(2, 1, 31), datetime(9997, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
    days = st.dates(date(2, 1, 31), date(9997, 1, 1))
    for some, kind in ((times, pa.timestamp("us", "UTC")), (days, pa.date32())):
        check(_TIMES[name], data.draw(st.lists(some | st.none(), max_size=4)), kind)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("a", "1"),
        ("$.b.c[1]", "x"),
        ("b.c[-2]", "x"),
        ("b", '{"c":[true,"x",null]}'),
        ("b.c[0]", "true"),
        ("b.c[2]", None),
        ("b.c[9]", None),
        ("a.z", None),
    ],
)
def test_values_in_json(path: str, wanted: str | None) -> None:
    """Texts as they are, others as JSON; with quotes where that is asked for."""
    text = '{"a": 1, "b": {"c": [true, "x", null]}}'
    check(S.str.json(path), [text, None], pa.string())
    assert S.str.json(path)({"s": text}) == wanted
    as_json = S.str.json(path, as_json=True)({"s": text})
    assert as_json == ('"x"' if wanted == "x" else wanted)


def test_what_is_wrong_is_said_before_anything_runs() -> None:
    wrongs: list[tuple[Callable[[], gp.Expr], str]] = [
        (lambda: S.str.json("a b"), "give a path such as"),
        (lambda: S.str.replace_matches("(", ""), "no regular expression"),
        (lambda: S.str.replace_matches("a", r"\2"), "invalid group reference"),
        (lambda: S.str.pad_end(3, ""), "give the text to fill with"),
    ]
    for wrong, words in wrongs:
        with pytest.raises(ConfigError, match=words):
            wrong()
    with pytest.raises(ValueError, match="is no JSON"):
        S.str.json("a")({"s": "{"})
