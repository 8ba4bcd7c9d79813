"""Folders of Parquet files as sinks."""

from pathlib import Path
from typing import Any, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.folders import columns as column_parts
from gearpy.connectors.folders.parts import PreparedPart
from gearpy.connectors.folders.tables import parquet_folder
from gearpy.connectors.folders.writer import FolderWriter
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink


class Point(NamedTuple):
    x: int
    y: float | None = None


def opened(
    sink: Sink, prepared: dict[int, Any] | None = None, epoch: int = 0, state: bytes | None = None
) -> FolderWriter:
    writer = sink.open(0, 1)
    assert isinstance(writer, FolderWriter)
    writer.restore(state)
    writer.recover(prepared or {}, epoch=epoch, run="r", incarnation=epoch + 1)
    return writer


def write(writer: FolderWriter, epoch: int, *values: Any) -> PreparedPart | None:
    writer.write_batch(Batch(list(values), [0] * len(values)))
    part = writer.prepare(epoch)
    assert not isinstance(part, list)
    writer.commit(epoch, part)
    return part


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return found


def test_records_become_rows(tmp_path: Path) -> None:
    """A file for each epoch, all with one schema; a reader takes the folder as one table."""
    writer = opened(parquet_folder(tmp_path / "out"))

    parts = [
        write(writer, 1, Point(1, 0.5), Point(2)),
        write(writer, 2),
        write(writer, 3, {"x": 3}),
    ]
    writer.write_batch(Batch([Point(4)], [0]))
    writer.prepare(4)

    assert rows(tmp_path / "out") == [{"x": 1, "y": 0.5}, {"x": 2, "y": None}, {"x": 3, "y": None}]
    assert [part and part["rows"] for part in parts] == [2, None, 1]


def test_a_given_schema_decides(tmp_path: Path) -> None:
    schema = pa.schema([("y", pa.float32()), pa.field("x", pa.int16(), metadata={"unit": "m"})])

    write(opened(parquet_folder(tmp_path / "out", schema=schema)), 1, Point(1, 0.5))

    (path,) = (tmp_path / "out").glob("*.parquet")
    found = pq.read_schema(path)
    assert (found.names, found.types) == (["y", "x"], [pa.float32(), pa.int16()])
    assert found.field("x").metadata[b"unit"] == b"m"


def test_a_record_that_does_not_fit_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    writer = opened(parquet_folder(tmp_path / "out"))
    writer.write_batch(Batch([Point(1)], [0]))

    with pytest.raises(OperatorError, match="'three' is of type str, not a whole number") as caught:
        writer.write_batch(Batch([Point(2), {"x": "three"}], [0, 0]))
    write(writer, 1, Point(4))

    assert caught.value.operator == "parquet_folder"
    assert caught.value.record == "{'x': 'three'}"
    assert [row["x"] for row in rows(tmp_path / "out")] == [1, 4]


def test_a_schema_outlives_a_restart(tmp_path: Path) -> None:
    """Whole numbers that come first then would make a column of another type."""
    sink = parquet_folder(tmp_path / "out")
    first = opened(sink)
    part = write(first, 1, {"x": 0.5})

    write(opened(sink, {1: part}, 1, first.snapshot()), 2, {"x": 1})

    assert [path.suffix for path in (tmp_path / "out").iterdir() if path.is_file()] == [
        ".parquet",
        ".parquet",
    ]
    assert rows(tmp_path / "out") == [{"x": 0.5}, {"x": 1.0}]
    assert {
        str(pq.read_schema(path).field("x").type) for path in (tmp_path / "out").glob("*.p*")
    } == {"double"}


@pytest.mark.parametrize("limit", ["_GROUP_ROWS", "_GROUP_BYTES"])
def test_memory_is_bounded_by_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """A long epoch is not kept in memory; a short one is one row group."""
    monkeypatch.setattr(column_parts, limit, 4 if limit == "_GROUP_ROWS" else 64)
    writer = opened(parquet_folder(tmp_path / "out"))

    for number in range(5):
        writer.write_batch(Batch([{"x": number}, {"x": number}], [0, 0]))
    writer.commit(1, writer.prepare(1))

    (path,) = (tmp_path / "out").glob("*.parquet")
    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)]
    assert sum(groups) == 10
    assert groups == ([4, 4, 2] if limit == "_GROUP_ROWS" else [8, 2])
    assert [row["x"] for row in rows(tmp_path / "out")] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"compression": "bz2"}, "compression is 'bz2', must be one of snappy, zstd"),
        ({"schema": {"x": "integer"}}, "schema is {'x': 'integer'}, need a pyarrow.Schema"),
        ({"prefix": "_x"}, "cannot begin names of files"),
    ],
)
def test_wrong_options_are_told_when_it_is_built(options: dict[str, Any], mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        parquet_folder("out", **options)
