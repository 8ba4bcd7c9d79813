"""What a file notes of a batch, however its rows came."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.windowlog.bodies import BatchNotes

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"window_start": TIME, "window_end": TIME, "firing": pa.int32()})

TIMES = st.one_of(st.none(), st.sampled_from([-10, 0, 10, 1_700_000_000_000, 1 << 52]))
WINDOWS = st.tuples(TIMES, TIMES, st.one_of(st.none(), st.integers(0, 2)))


def batch_of(windows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return a row for each window; times in ms."""
    starts, ends, firings = ([window[place] for window in windows] for place in range(3))
    times = [[None if at is None else at * 1000 for at in column] for column in (starts, ends)]
    arrays = [*(pa.array(column, TIME) for column in times), pa.array(firings, pa.int32())]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@given(st.lists(st.one_of(st.lists(WINDOWS, max_size=4), st.lists(WINDOWS, max_size=1))))
def test_windows_are_counted_once_however_they_came(parts: list[list[tuple[Any, ...]]]) -> None:
    notes = BatchNotes()

    for part in parts:
        notes.add(batch_of(part))

    info = notes.info(seq=1, epoch=2, watermark=None)
    rows = [row for part in parts for row in part]
    assert (info.rows, info.windows) == (len(rows), len(set(rows)))
    assert info.starts == min((row[0] for row in rows if row[0] is not None), default=None)
    assert info.ends == max((row[1] for row in rows if row[1] is not None), default=None)


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema({"key": pa.int64()}),
        pa.schema({"window_start": pa.int64(), "window_end": pa.int64()}),
    ],
)
def test_records_without_windows_have_rows_only(schema: pa.Schema) -> None:
    notes = BatchNotes()

    notes.add(pa.RecordBatch.from_pydict({name: [1, 2] for name in schema.names}, schema=schema))

    info = notes.info(seq=1, epoch=2, watermark=3)
    assert info == (1, 2, 2, None, None, 0, 3, "")


def test_firings_that_are_no_numbers_do_not_count() -> None:
    notes = BatchNotes()
    schema = SCHEMA.set(2, pa.field("firing", pa.string()))
    cells = {"window_start": [0, 0], "window_end": [10, 10], "firing": ["x", "y"]}

    notes.add(pa.RecordBatch.from_pydict(cells, schema=schema))

    assert notes.info(seq=1, epoch=2, watermark=None).windows == 1
