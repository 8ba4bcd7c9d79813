"""Texts that are all of one form become values by Arrow, as those of rows do one by one."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.expressions.binding import ROW_ERRORS

_DAYS = st.dates().map(str) | st.sampled_from(
    ["0000-01-01", "2026-02-30", "0001-01-01", "9999-12-31", "2026-1-5", "20260105", "2026-W01-1"]
)
_CLOCKS = st.times().map(str) | st.sampled_from(
    ["10:00", "24:00:00", "23:59:60", "10:00:00.5", "10:00:00.1234567", "10:00:00,5", "1:2:3"]
)
_ZONES = st.sampled_from(["", "", "Z", "z", "+00:00", "+02:00", " Z"])
_MOMENTS = st.builds(
    lambda day, between, clock, zone: f"{day}{between}{clock}{zone}",
    _DAYS,
    st.sampled_from(["T", " ", "t", "  "]),
    _CLOCKS,
    _ZONES,
)
_NUMBERS = (
    st.integers().map(str)
    | st.floats().map(str)
    | st.decimals(allow_nan=False).map(str)
    | st.from_regex(r"[+-]?[0-9]{1,22}(\.[0-9]{0,22})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
    | st.sampled_from(["", " 1", "1_0", "0x1", "007", "-0", "+5", "1e5", ".5", "5.", "inf", "\n1"])
)
_TARGETS = st.sampled_from(
    [
        *(int, float, str, datetime, date, pa.int8(), pa.uint64(), pa.float32()),
        *(pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.timestamp("ns")),
    ]
)


def check(expression: Any, values: list[Any], kind: Any) -> None:
    """Compare a column with its rows; where one of these is refused, so is the column."""
    batch = pa.record_batch({"s": pa.array(values, kind)})
    try:
        expected = [expression({"s": value}) for value in values]
    except ROW_ERRORS:
        with pytest.raises(ROW_ERRORS):
            expression.bind(batch.schema).columns(batch)
        return
    found = expression.bind(batch.schema).columns(batch)

    assert found.type == expression.bind(batch.schema).type
    assert found.to_pylist() == pa.array(expected, found.type).to_pylist()


@given(
    texts=st.lists(_NUMBERS | st.none(), max_size=4)
    | st.lists(_MOMENTS | _DAYS | st.none(), max_size=4),
    to=_TARGETS,
)
@example(texts=["9" * 18, "-" + "9" * 18], to=int)
@example(texts=["2026-02-30"], to=date)
def test_casts_of_texts_are_those_of_rows(texts: list[str | None], to: Any) -> None:
    check(gp.col("s").cast(to), texts, pa.string())


@given(
    times=st.lists(st.datetimes() | st.none(), max_size=4),
    kind=st.sampled_from([pa.timestamp("us"), pa.timestamp("us", "UTC")]),
    cuts=st.booleans(),
)
def test_texts_of_times_are_those_of_rows(
    *, times: list[datetime | None], kind: Any, cuts: bool
) -> None:
    if cuts:
        times = [None if each is None else each.replace(microsecond=0) for each in times]
    zoned = times if kind.tz is None else [each and each.replace(tzinfo=UTC) for each in times]
    check(gp.col("s").cast(str), zoned, kind)


@given(
    texts=st.lists(_MOMENTS | _DAYS | st.none(), min_size=1, max_size=4),
    form=st.none()
    | st.sampled_from(
        [
            *("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%fZ", "%d.%m.%Y", "%Y%m%d"),
            *("%d %b %Y", "%Y-%m-%d %H:%M:%S%z", "[%Y]%m%d", "%H:%M", "%m/%d/%Y%%"),
        ]
    ),
    writes=st.booleans(),
)
def test_times_that_texts_say_are_those_of_rows(
    *, texts: list[str | None], form: str | None, writes: bool
) -> None:
    """Also of texts that are written in that form, of the years that it writes with four digits."""
    if writes and form is not None:
        moment = datetime(1969, 12, 31, 23, 59, 58, 60, tzinfo=UTC)
        texts = [moment.strftime(form), None, moment.replace(year=2026).strftime(form)]
    check(gp.col("s").str.to_datetime(form), texts, pa.string())


@given(
    lists=st.lists(
        st.none() | st.lists(st.none() | st.sampled_from(["a", "b", ""]), max_size=3), max_size=5
    ),
    start=st.integers(0, 2),
)
def test_lists_are_searched_and_joined_as_rows_are(
    lists: list[list[str | None] | None], start: int
) -> None:
    """Also as a part of a column."""
    batch = pa.record_batch({"s": pa.array(lists, pa.list_(pa.string()))}).slice(start)
    for expression in (gp.col("s").list.contains("a"), gp.col("s").list.join("-")):
        found = expression.bind(batch.schema).columns(batch)

        assert found.to_pylist() == [expression({"s": each}) for each in lists[start:]]
