"""What sinks write, sources read as it was: odd values of every type, by every pair of both.

A value that a pair cannot keep is refused, with the name of its column.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.task.api.interfaces import Sink
from tests.connectors.folders.test_tables import opened, write
from tests.connectors.reading import rows_of

TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "007",
            "NULL",
            "nan",
            '"',
            '""',
            "a\rb",
            "a\r\nb",
            "\n",
            "\u2028",
            ",",
            "a\0b",
            "\ufeff",
            "true",
            "é",
            "\U0001f600",
            "1e5",
            "#",
            "\\N",
            "'",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
WHOLE = st.one_of(
    st.sampled_from([0, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
FRACTIONS = st.one_of(
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 0.1, 1e16, float(2**53)]),
    st.floats(allow_nan=False, allow_infinity=False),
)
ODD = st.sampled_from([math.inf, -math.inf, math.nan])
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999))  # noqa: DTZ001
MONEY = st.decimals(-(10**19), 10**19, places=18, allow_nan=False, allow_infinity=False)


@dataclass(frozen=True)
class Column:
    kind: Any
    values: st.SearchStrategy[Any]
    refused: frozenset[str] = frozenset()  #: Sinks that have no form for it.


CSV, JSON = "csv", "jsonl"
COLUMNS = {
    "whole": Column(pa.int64(), WHOLE),
    "unsigned": Column(
        pa.uint64(), st.one_of(st.sampled_from([2**64 - 1, 2**63]), st.integers(0, 2**64 - 1))
    ),
    "small": Column(pa.int8(), st.integers(-128, 127)),
    "fraction": Column(pa.float64(), FRACTIONS),
    "odd": Column(pa.float64(), ODD, frozenset({JSON})),
    "short": Column(pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "text": Column(pa.string(), TEXTS),
    "flag": Column(pa.bool_(), st.booleans()),
    "day": Column(pa.date32(), st.dates()),
    "clock": Column(pa.time64("us"), st.times()),
    "moment": Column(pa.timestamp("us", "UTC"), MOMENTS.map(lambda at: at.replace(tzinfo=UTC))),
    "local": Column(pa.timestamp("us"), MOMENTS),
    "span": Column(
        pa.duration("us"), st.timedeltas(timedelta(-100_000), timedelta(100_000)), frozenset({JSON})
    ),
    "money": Column(pa.decimal128(38, 18), MONEY, frozenset({JSON})),
    "bytes": Column(pa.binary(), st.binary(max_size=8), frozenset({CSV, JSON})),
    "list": Column(pa.list_(pa.int64()), st.lists(st.none() | WHOLE, max_size=3), frozenset({CSV})),
    "record": Column(
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        st.fixed_dictionaries({"x": st.none() | WHOLE, "y": st.none() | TEXTS}),
        frozenset({CSV}),
    ),
    "dict": Column(
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(TEXTS, WHOLE, max_size=3),
        frozenset({CSV}),
    ),
    "days": Column(pa.list_(pa.date32()), st.lists(st.dates(), max_size=2), frozenset({CSV})),
}

UNTOLD = {"unsigned", "dict"}
PAIRS: dict[str, tuple[Callable[..., Sink], Callable[..., Any], dict[str, Any]]] = {
    "parquet": (gp.parquet_folder, gp.parquet, {}),
    "arrow": (gp.arrow_folder, gp.arrow, {}),
    CSV: (gp.csv_folder, gp.csv, {"multiline": True}),
    JSON: (gp.jsonl_folder, gp.jsonl, {}),
}


@st.composite
def tables(
    draw: st.DrawFn, sink: str, *, is_given: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw the types of some columns, and rows of them; some values are missing."""
    known = [name for name, column in COLUMNS.items() if sink not in column.refused]
    if not is_given and sink != JSON:  # Only a schema tells these.
        known = [name for name in known if name not in UNTOLD]
    names = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    row = st.fixed_dictionaries({name: st.none() | COLUMNS[name].values for name in names})
    return {name: COLUMNS[name].kind for name in names}, draw(st.lists(row, min_size=1, max_size=6))


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same, with the sign of zero and NaN."""
    if isinstance(one, float) and isinstance(other, float):
        is_nan = math.isnan(one) and math.isnan(other)
        return is_nan or (one == other and math.copysign(1, one) == math.copysign(1, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def check(sink: str, kinds: dict[str, Any], rows: list[dict[str, Any]], *, is_given: bool) -> None:
    make, read_from, options = PAIRS[sink]
    schema = pa.schema(kinds)
    with TemporaryDirectory() as folder:
        place = Path(folder) / "out"
        options_of_sink = {"schema": schema} if is_given and sink != JSON else {}
        writer = opened(make(place, **options_of_sink))
        try:
            write(writer, 1, rows[:2])
            write(writer, 2, *([rows[2:]] if rows[2:] else []))
        finally:
            writer.close(completed=True)

        found = rows_of(read_from(place, schema=schema, **options))

    assert len(found) == len(rows)
    for was, now in zip(rows, found, strict=True):
        assert same(was, now), (was, now)


@pytest.mark.parametrize("schema", ["given", "found"])
@pytest.mark.parametrize("sink", PAIRS)
def test_rows_come_back_as_they_were(sink: str, schema: str) -> None:
    @given(tables(sink, is_given=schema == "given"))
    @settings(max_examples=15, deadline=None)
    def run(drawn: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
        check(sink, *drawn, is_given=schema == "given")

    run()


@pytest.mark.long
@pytest.mark.parametrize("schema", ["given", "found"])
@pytest.mark.parametrize("sink", PAIRS)
def test_very_many_rows_come_back(sink: str, schema: str) -> None:
    @given(tables(sink, is_given=schema == "given"))
    @settings(max_examples=500, deadline=None)
    def run(drawn: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
        check(sink, *drawn, is_given=schema == "given")

    run()


@pytest.mark.parametrize("sink", [CSV, JSON])
@pytest.mark.parametrize("name", [name for name, column in COLUMNS.items() if column.refused])
def test_what_a_file_has_no_form_for_is_refused(tmp_path: Path, sink: str, name: str) -> None:
    """Before anything runs, or with the record; never changed."""
    column = COLUMNS[name]
    if sink not in column.refused:
        return
    value = {
        "odd": math.nan,
        "span": timedelta(1),
        "money": Decimal(1),
        "bytes": b"a",
        "list": [1],
        "record": {"x": 1, "y": ""},
        "dict": {"a": 1},
        "days": [date(2024, 1, 1)],
    }[name]
    writer = opened(PAIRS[sink][0](tmp_path / "out"))
    with pytest.raises(gp.GearpyError):
        write(writer, 1, [{name: value}])
    writer.close(completed=False)
