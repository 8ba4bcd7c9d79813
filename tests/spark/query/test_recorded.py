"""What a source gave is read again as it came."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Message
from gearpy.messages.table import Table
from gearpy.spark.query.recorded import HeldSource, record
from gearpy.testing import ManualSource


@gp.register_record
@dataclass(frozen=True, slots=True)
class RecordedSale:
    shop: str
    price: int


def _read(source: gp.Source, size: int = 1000) -> Iterator[tuple[list[Message], int]]:
    for partition in source.partitions():
        reader = source.open(partition, None)
        while not reader.finished:
            batch = reader.read_batch(size)
            if batch is not None:
                yield list(batch.messages()), reader.watermark_ms
        reader.close()


def _all(source: gp.Source, size: int = 1000) -> list[Message]:
    return [message for messages, _ in _read(source, size) for message in messages]


@pytest.mark.parametrize("schema", [None, RecordedSale])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_records_times_and_watermarks_come_again(tmp_path: Path, schema: Any, size: int) -> None:
    sales = [RecordedSale("a", number) for number in range(20)]
    source = gp.collection(
        sales, timestamp=lambda sale: sale.price, partitions=3, out_of_order="2ms", schema=schema
    )

    recorded = record(source, tmp_path / "kept")

    assert _all(recorded, size) == _all(source, size)
    assert list(_read(recorded)) == list(_read(source))
    assert recorded.schema == source.schema
    assert bool(recorded.parquet_files) == (schema is not None)
    assert "recorded collection" in recorded.description


def test_a_recording_can_be_read_from_the_middle(tmp_path: Path) -> None:
    recorded = record(gp.collection(range(10)), tmp_path / "kept")
    (partition,) = recorded.partitions()
    reader = recorded.open(partition, None)
    reader.read_batch(4)

    again = recorded.open(partition, reader.snapshot())

    batch = again.read_batch(100)
    assert batch is not None
    assert batch.values == [4, 5, 6, 7, 8, 9]


def test_so_many_records_are_taken(tmp_path: Path) -> None:
    source = gp.generate(lambda part: iter(range(part, 10**9, 2)), partitions=2)

    recorded = record(source, tmp_path / "kept", limit=3000)

    assert len(_all(recorded)) == 3000
    assert recorded.bounded


def test_a_source_that_waits_is_waited_for(tmp_path: Path) -> None:
    source = _Slow()

    recorded = record(source, tmp_path / "kept", limit=1)

    assert [m.value for m in _all(recorded)] == ["x"]


def test_a_source_without_an_end_needs_a_limit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no end"):
        record(ManualSource(), tmp_path / "kept")


def test_a_column_of_the_recording_is_refused(tmp_path: Path) -> None:
    source = gp.rows(pa.table({"__time": [1]}))

    with pytest.raises(ConfigError, match="__time"):
        record(source, tmp_path / "kept")


def test_event_time_stands_still_until_all_is_read() -> None:
    source = gp.collection([Message("a", 5), Message("b", 1)])

    held = HeldSource(source)

    assert [watermark for _, watermark in _read(held, 1)] == [MIN_MS, MIN_MS]
    assert _all(held) == _all(source)
    assert (held.partitions(), held.schema, held.bounded, held.replayable) == (
        source.partitions(),
        None,
        True,
        True,
    )
    assert held.description == source.description
    assert held.open(held.partitions()[0], None).snapshot()


def test_columns_stay_columns(tmp_path: Path) -> None:
    source = gp.rows(pa.table({"n": [1, 2]}))

    recorded = record(source, tmp_path / "kept")

    batch = recorded.open(recorded.partitions()[0], None).read_batch(10)
    assert batch is not None
    assert type(batch.values) is Table


class _Slow(gp.Source):
    def partitions(self) -> list[str]:
        return ["0"]

    def open(self, partition: str, resume: Any) -> "_SlowReader":
        return _SlowReader()


class _SlowReader(gp.SourceReader):
    def __init__(self) -> None:
        self._begun = time.monotonic()

    def read_batch(self, max_records: int) -> gp.Batch | None:
        if time.monotonic() - self._begun < 0.02:
            return None
        return gp.Batch(["x"], [0])

    def snapshot(self) -> None:
        return None
