"""The sink that keeps records in memory: which ones it keeps, and their columns."""

import weakref
from datetime import time

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.row_schema import row_schema_of
from gearpy.connectors.gather import GatherSink
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times

BATCHES = st.lists(st.integers(0, 7), max_size=8)


def gathered(sizes: list[int], *, columns: bool, **limits: int) -> GatherSink:
    """Return a sink that was given batches of numbers, from 0 on."""
    sink = GatherSink("look", **limits)
    writers, start = [sink.open(0, 2), sink.open(1, 2)], 0
    for place, size in enumerate(sizes):
        numbers = list(range(start, start + size))
        start += size
        rows = pa.record_batch({"n": pa.array(numbers, pa.int64())})
        batch = Batch(Table(rows), Times.of(numbers)) if columns else Batch(numbers, numbers)
        writers[place % 2].write_batch(batch)
    return sink


@given(sizes=BATCHES, limit=st.integers(1, 20), columns=st.booleans())
def test_the_first_records_are_kept(sizes: list[int], limit: int, *, columns: bool) -> None:
    """However they were cut into batches; then there is no room for more."""
    sink = gathered(sizes, columns=columns, first=limit)

    found = [each["n"] if columns else each for each in sink.records]
    assert found == [*range(sum(sizes))][:limit]
    assert sink.is_full == (sum(sizes) >= limit)


@given(sizes=BATCHES, limit=st.integers(1, 20), columns=st.booleans())
def test_the_last_records_are_kept(sizes: list[int], limit: int, *, columns: bool) -> None:
    """However they were cut into batches; there is always room for more."""
    sink = gathered(sizes, columns=columns, last=limit)

    found = [each["n"] if columns else each for each in sink.records]
    assert found == [*range(sum(sizes))][-limit:]
    assert not sink.is_full


def test_what_is_not_kept_takes_no_memory() -> None:
    sink, batches = (
        GatherSink("look", last=15),
        [Batch([_Big() for _ in range(10)], [0] * 10) for _ in range(10)],
    )
    alive = [weakref.ref(value) for batch in batches for value in batch.values]
    while batches:
        sink.take(batches.pop())

    assert len(sink.records) == 15
    assert sum(each() is not None for each in alive) == 20


class _Big:
    """A record that tells when it is gone."""


@pytest.mark.parametrize("columns", [True, False])
def test_a_table_has_the_records_and_their_times(*, columns: bool) -> None:
    table = gathered([2, 1], columns=columns).to_arrow()

    name = "n" if columns else "value"
    assert table.column(name).to_pylist() == [0, 1, 2]
    assert table.column(name).type == pa.int64()
    assert [each.microsecond for each in table.column("event_time").to_pylist()] == [0, 1000, 2000]


def test_a_column_of_nothing_but_none_stays_where_it_is() -> None:
    sink = GatherSink("look")
    sink.take(Batch([{"a": None, "b": 1, "c": None}, {"b": 2}], [0, 0]))

    assert sink.to_arrow().schema.names == ["a", "b", "c", "event_time"]
    assert sink.to_arrow().column("a").type == pa.null()


def test_without_records_the_schema_tells_the_columns() -> None:
    sink = GatherSink("look")
    sink.schema = row_schema_of({"n": int})

    assert sink.to_arrow().schema.names == ["n", "event_time"]
    with pytest.raises(ConfigError, match="there is no record"):
        GatherSink("look").to_arrow()


def test_records_that_do_not_fit_are_told() -> None:
    sink = GatherSink("look")
    sink.take(Batch([1, "a"], [0, 0]))

    with pytest.raises(OperatorError, match="operator 'look': column 'value'"):
        sink.to_arrow()


def columns(**cells: pa.Array) -> Batch:
    batch = pa.record_batch(cells)
    return Batch(Table(batch), Times.of(range(batch.num_rows)))


def test_columns_keep_their_types() -> None:
    """Also those that a window log refuses, as Spark has none."""
    sink, noon = GatherSink("look"), pa.array([time(12)])
    shops = pa.array(["north"]).dictionary_encode()
    sink.take(columns(at=noon, shop=shops))

    assert sink.to_arrow().schema.types[:2] == [noon.type, shops.type]


def test_columns_that_differ_become_wider_ones() -> None:
    sink = GatherSink("look")
    sink.take(columns(a=pa.array([1])))
    sink.take(columns(a=pa.array([1.5]), b=pa.array(["x"])))

    assert sink.to_arrow().drop_columns("event_time").to_pydict() == {
        "a": [1.0, 1.5],
        "b": [None, "x"],
    }
    sink.take(columns(a=pa.array(["text"])))
    with pytest.raises(OperatorError, match=r"operator 'look': .*double and string"):
        sink.to_arrow()


def test_an_event_time_of_the_records_own_stays() -> None:
    sink = GatherSink("look")
    sink.take(columns(event_time=pa.array(["noon"])))

    assert sink.to_arrow().to_pydict() == {"event_time": ["noon"]}


def test_other_libraries_take_it_as_a_table() -> None:
    """By Arrow's interface for Python: DuckDB finds it by the name of its variable."""
    found = gathered([2, 1], columns=True)

    assert pa.table(found).equals(found.to_arrow())
    assert duckdb.execute("select sum(n) from found").fetchall() == [(3,)]
    assert found.to_pandas()["n"].tolist() == [0, 1, 2]


def test_polars_takes_it_as_a_table() -> None:
    polars = pytest.importorskip("polars")
    found = gathered([2, 1], columns=True)

    assert found.to_polars()["n"].to_list() == [0, 1, 2]
    assert polars.DataFrame(found).equals(found.to_polars())
