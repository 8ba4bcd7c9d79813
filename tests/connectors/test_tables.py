"""Tables in memory, tables that are made, and collections with a schema."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import duckdb

# Both ship no type information.
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.connectors.memory import collection
from gearpy.connectors.streams.generator import generate
from gearpy.connectors.tables import generate_tables
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Message
from gearpy.messages.table import Table
from gearpy.task.api.interfaces import Source, SourceReader
from gearpy.testing import check_source


@dataclass
class Reading:
    at: int
    value: float


ROWS = [Reading(number * 7 % 23, number / 2) for number in range(40)]
BATCH = pa.RecordBatch.from_pylist([vars(row) for row in ROWS])


def batches(part: int) -> Iterator[Any]:
    for start, length in ((0, 11), (11, 0), (11, 9), (20, 20)):
        yield BATCH.slice(start + part, length)


SOURCES: dict[str, Callable[[], Source]] = {
    "table": lambda: gp.rows(BATCH, time="at", partitions=3, out_of_order="4ms"),
    "rows": lambda: gp.rows(ROWS, time="at"),
    "collection": lambda: collection(ROWS, schema=Reading, timestamp=lambda row: row.at),
    "generate": lambda: generate(
        lambda: ROWS, schema=Reading, timestamp=lambda row: row.at, limit=30, partitions=2
    ),
    "made": lambda: generate_tables(
        batches, schema={"at": int | None, "value": float | None}, time="at", limit=31, partitions=2
    ),
}


def read(reader: SourceReader, size: int) -> list[Message]:
    found: list[Message] = []
    while not reader.finished and (batch := reader.read_batch(size)) is not None:
        assert type(batch.values) is Table
        assert len(batch) <= size
        found += batch.messages()
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_goes_on_at_any_place(name: str) -> None:
    check_source(SOURCES[name], has_late=True, seeds=1)


@pytest.mark.parametrize(("name", "rows"), [("table", 40), ("rows", 40), ("made", 31)])
def test_all_rows_are_given(name: str, rows: int) -> None:
    source = SOURCES[name]()
    found = [each for part in source.partitions() for each in read(source.open(part, None), 7)]

    assert source.schema is not None
    assert source.schema.arrow.names == ["at", "value"]
    assert len(found) == rows
    assert all(message.timestamp == message.value["at"] for message in found)
    assert source.replayable
    assert source.bounded


def test_rate_and_end_of_made_tables() -> None:
    """Rows go as fast as they may; without a time they have that of the clock."""
    source = generate_tables(
        lambda: (BATCH.select(["value"]) for _ in count()), schema={"value": float | None}, rate=1
    )
    reader = source.open("00000", None)
    first = reader.read_batch(100)

    assert first is not None
    assert len(first) == 1
    assert reader.read_batch(100) is None
    assert not reader.finished
    assert not source.bounded
    assert reader.watermark_ms == first.timestamps[0] > 0
    reader.close()
    ending = generate_tables(list, schema={"value": float}).open("00000", None)
    assert ending.read_batch(1) is None
    assert ending.finished


def test_a_table_does_not_wait_for_the_next_one_of_a_program_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ms = 0

    def polled() -> Iterator[pa.RecordBatch]:
        nonlocal now_ms
        for number in range(100):
            now_ms += 1_000 if number < 50 else 0
            yield pa.RecordBatch.from_pydict({"n": [number]})

    monkeypatch.setattr("gearpy.connectors.tables.wall_ms", lambda: now_ms)
    reader = generate_tables(polled, schema={"n": int}).open("00000", None)
    waits = list[bool]()
    while reader.read_batch(100) is not None:
        waits.append(reader.may_wait)

    assert waits[0], "none is read behind it to join it"
    assert waits == sorted(waits, reverse=True)
    assert not waits[-1]


def frames() -> dict[str, Callable[[], object]]:
    """Return what makes the rows of `BATCH` in the classes of other libraries."""
    frame = pd.DataFrame(BATCH.to_pydict())
    return {
        "reader": lambda: pa.Table.from_batches([BATCH.slice(0, 3), BATCH.slice(3)]).to_reader(),
        "capsule": lambda: Capsule(BATCH),
        # On a connection of its own: others may leave results on that of the module.
        "duckdb": lambda: duckdb.connect().sql("select * from BATCH"),
        "pandas": lambda: frame,
        "index": lambda: frame.set_index("at"),
        "unnamed index": lambda: frame.set_index(frame["at"].rename(None)),
        "polars": lambda: pytest.importorskip("polars").DataFrame(BATCH),
    }


@dataclass
class Capsule:
    """Only the one of Arrow's two interfaces that has no stream."""

    batch: pa.RecordBatch

    def __arrow_c_array__(self, schema: object = None) -> object:
        return self.batch.__arrow_c_array__(schema)


@pytest.mark.parametrize("library", frames())
def test_tables_of_other_libraries_are_read(library: str) -> None:
    source = gp.rows(frames()[library](), time="at", partitions=2, out_of_order="4ms")
    same = SOURCES["table"]()

    found = [
        message for part in source.partitions() for message in read(source.open(part, None), 7)
    ]
    assert found == [each for part in same.partitions() for each in read(same.open(part, None), 7)]


def test_data_frames_give_rows_without_a_word_of_their_own() -> None:
    """Neither the name of an index that has none, nor notes for pandas alone."""
    schema = gp.rows(pd.DataFrame({"n": [1, 2, 3]})[1:]).schema

    assert schema is not None
    assert schema.arrow.names == ["n"]
    assert schema.arrow.metadata is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gp.rows("text"), "give a table"),
        (lambda: gp.rows(pa.array([1])), "rows: a Int64Array gives no table: .*non-struct type"),
        (lambda: gp.rows(pd.DataFrame({"o": [1, "x"]})), "a DataFrame gives no table: .*column o"),
        (lambda: gp.rows([]), "no rows that would tell the columns"),
        (lambda: gp.rows(BATCH, partitions=0), "partitions is 0"),
        (lambda: gp.rows(BATCH, time="when"), "there are at, value"),
        (lambda: gp.rows([{"t": None}], time="t"), "column 't'"),
        (lambda: gp.rows(BATCH, schema={"value": int}), "rows: column 'value' is double"),
        (lambda: generate_tables(5, schema={}), "generate_tables: 5 is no function"),  # type: ignore[arg-type]
        (lambda: generate_tables(list, schema={"n": int}, time="x"), "time='x' is no column"),
    ],
)
def test_mistakes_are_told(make: Callable[[], Source], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("item", "message"),
    [({"n": 1}, "gave a dict"), (pa.RecordBatch.from_pydict({"m": [1]}), "there is no column 'n'")],
)
def test_what_is_made_has_to_fit(item: Any, message: str) -> None:
    reader = generate_tables(lambda: [item], schema={"n": int}).open("00000", None)

    with pytest.raises(OperatorError, match=message):
        reader.read_batch(1)
