"""Columns as the records of a batch, see `gearpy.messages.table`."""

import subprocess
import sys
from datetime import UTC, datetime, time, timedelta
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, EncodedBatch
from gearpy.messages.table import (
    ROWS_PER_CREDIT,
    Table,
    Times,
    cells_of,
    credit_of,
    newest_of,
    oldest_of,
    rows_of,
)

TIMES = st.lists(st.integers(MIN_MS, MAX_MS))


def numbered(count: int) -> Table:
    return Table(pa.record_batch({"n": pa.array(range(count), pa.int64())}))


def test_rows_are_dicts() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    table = Table(pa.record_batch({"n": pa.array([1, None]), "m": pa.array([{"a": 1}, {}], kind)}))

    assert list(table) == [{"n": 1, "m": {"a": 1}}, {"n": None, "m": {}}]
    assert rows_of(table.batch) == list(table)
    assert table[1] == table[-1] == {"n": None, "m": {}}


AT = datetime(2026, 3, 1, 9, 0, 0, 5_000, tzinfo=UTC)
NANOS = pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (NANOS, AT),
        (pa.duration("ns"), timedelta(milliseconds=5)),
        (pa.list_(NANOS), [AT, None]),
        (pa.struct([("at", NANOS)]), {"at": AT}),
        (pa.map_(pa.string(), NANOS), {"at": AT}),
        (pa.list_(NANOS, 2), [AT, AT]),
        (pa.large_list(NANOS), [AT]),
    ],
)
def test_nanoseconds_are_plain_times_in_rows(kind: pa.DataType, value: object) -> None:
    """With or without pandas, of which Arrow would make them; at any depth."""
    cells = [value, None]
    if pa.types.is_map(kind):
        cells = [list({"at": AT}.items()), None]
    batch = pa.record_batch({"n": pa.array([1, 2]), "x": pa.array(cells, kind)})

    row, missing = rows_of(batch)
    assert missing == {"n": 2, "x": None}
    assert repr(row["x"]).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") == repr(
        value
    )
    assert cells_of(batch.column("x")) == [row["x"], None]


CELLS = [-9_223_372_036_854_775_807, -1001, -1000, -1, 0, 999, 1001, None, 1714564800123456789]


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (pa.timestamp("ns"), datetime(1970, 1, 1)),  # noqa: DTZ001 - without a zone
        (NANOS, datetime(1970, 1, 1, tzinfo=UTC)),
        (pa.duration("ns"), timedelta()),
    ],
)
def test_nanoseconds_are_cut_towards_the_past(kind: pa.DataType, first: Any) -> None:
    wanted = [None if ns is None else first + timedelta(microseconds=ns // 1000) for ns in CELLS]
    column = pa.array(CELLS, pa.int64()).cast(kind)
    count = len(CELLS)
    gap = pa.array([False, True, False])
    nested: list[tuple[pa.Array, list[Any]]] = [
        (column, wanted),
        (column[2:], wanted[2:]),
        (column.dictionary_encode(), wanted),
        (pa.StructArray.from_arrays([column], ["x"]), [{"x": each} for each in wanted]),
        (
            pa.ListArray.from_arrays(pa.array([0, 2, 2, count]), column, mask=gap),
            [wanted[:2], None, wanted[2:]],
        ),
        (pa.FixedSizeListArray.from_arrays(column, 3), [wanted[:3], wanted[3:6], wanted[6:]]),
        (
            pa.MapArray.from_arrays([0, 1, 1, 2], pa.array(["a", "b"]), column[:2], mask=gap),
            [{"a": wanted[0]}, None, {"b": wanted[1]}],
        ),
    ]
    for array, right in nested:
        for start in range(len(right)):
            assert cells_of(array[start:]) == right[start:]
        plain = str(cells_of(array))
        assert "Timestamp" not in plain
        assert "Timedelta" not in plain


def test_times_of_day_are_cut() -> None:
    column = pa.array([999, 1500, None], pa.time64("ns"))

    assert cells_of(column) == [time(0), time(0, 0, 0, 1), None]


@given(st.integers(0, 10), st.integers(-12, 12), st.integers(-12, 12))
def test_parts_are_those_of_a_list(count: int, start: int, stop: int) -> None:
    table, times = numbered(count), Times.of(range(count))
    listed = list(range(count))

    assert [row["n"] for row in table[start:stop]] == listed[start:stop]
    assert list(times[start:stop]) == listed[start:stop]
    assert len(table[start:stop]) == len(listed[start:stop])


def test_part_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="a step of 2: columns are cut into parts without gaps"):
        numbered(3)[::2]


def test_place_outside_is_an_index_error() -> None:
    """As with a list; a loop that counts up would not end otherwise."""
    with pytest.raises(IndexError, match="record 3 of 3"):
        numbered(3)[3]
    with pytest.raises(IndexError, match="record -1 of 0"):
        Times.of([])[-1]


def test_empty_table_is_false() -> None:
    assert not numbered(0)
    assert not Times.of([])
    assert numbered(1)


def test_equal_columns_are_equal() -> None:
    assert numbered(2) == numbered(2)
    assert numbered(2) != numbered(3)
    assert numbered(1) != [{"n": 0}]
    assert Times.of([1]) == Times.of([1])
    assert Times.of([1]) != [1]
    for unhashable in (numbered(1), Times.of([1])):
        with pytest.raises(TypeError, match="unhashable"):
            hash(unhashable)


def test_what_people_see_is_short() -> None:
    assert repr(numbered(70_000)) == "Table(70000 rows of n: int64)"
    assert repr(Times.of([1, 2])) == "Times(2)"


def test_rows_are_picked_by_place_or_flag() -> None:
    table, times = numbered(3), Times.of([7, 8, 9])
    places, flags = pa.array([2, 0]), pa.array([False, True, True])

    assert list(table.take(places)) == [{"n": 2}, {"n": 0}]
    assert list(times.take(places)) == [9, 7]
    assert list(table.filter(flags)) == [{"n": 1}, {"n": 2}]
    assert list(times.filter(flags)) == [8, 9]


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([1.0], "timestamp 1.0 is no int"),
        ([0, False], "timestamp False is no int"),
        ([2**63], "timestamps must be int64 milliseconds"),
    ],
)
def test_times_that_are_no_ms_are_refused(times: list[int], text: str) -> None:
    """Arrow would cut a fraction off."""
    with pytest.raises(ConfigError, match=text):
        Times.of(times)


@pytest.mark.parametrize("array", [pa.array([1, None]), pa.array([1.0]), pa.array([1], pa.int32())])
def test_column_of_other_things_is_no_column_of_times(array: pa.Array) -> None:
    """It would be found out far away."""
    with pytest.raises(ConfigError, match="give int64 milliseconds since the epoch"):
        Times(array)


def test_times_of_times_are_the_same() -> None:
    times = Times.of([1])

    assert Times.of(times) is times


@given(TIMES)
def test_oldest_and_newest_are_those_of_a_list(times: list[int]) -> None:
    for given_times in (times, Times.of(times)):
        assert oldest_of(given_times, 5) == min(times, default=5)
        assert newest_of(given_times, 5) == max(times, default=5)


@pytest.mark.parametrize(("rows", "credit"), [(0, 0), (1, 1), (64, 1), (65, 2), (65_536, 1024)])
def test_both_ends_count_the_same_for_flow_control(rows: int, credit: int) -> None:
    batch = Batch(numbered(rows), Times.of(range(rows)))

    assert ROWS_PER_CREDIT == 64
    assert credit_of(batch.values) == batch.credit == credit
    assert EncodedBatch(rows, b"", is_table=True).credit == credit
    assert EncodedBatch(rows, b"").credit == Batch([0] * rows, [0] * rows).credit == rows


def test_size_is_that_of_the_part() -> None:
    assert numbered(100)[:10].size_bytes == 80


def test_arrow_is_loaded_by_the_first_table() -> None:
    code = (
        "import sys, gearpy.messages.table, gearpy.task.sources.task, gearpy.task.runtime.outlet, "
        "gearpy.wire.link_codec, gearpy.task.stages.tables; "
        "assert 'pyarrow' not in sys.modules, 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
