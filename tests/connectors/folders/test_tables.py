"""Folders of CSV, Arrow and Parquet files as sinks; tables go in as they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.files.datasets import arrow, csv, parquet
from gearpy.connectors.folders import columns as column_parts
from gearpy.connectors.folders.tables import arrow_folder, csv_folder, parquet_folder
from gearpy.connectors.folders.writer import FolderWriter
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Sink, Source

SINKS: dict[str, tuple[Callable[..., Sink], Callable[..., Source]]] = {
    "csv": (csv_folder, csv),
    "arrow": (arrow_folder, arrow),
    "parquet": (parquet_folder, parquet),
}
TABLE = Table(pa.RecordBatch.from_pydict({"n": [1, 2], "s": ["a", 'b"\n']}))
SCHEMA = {"n": int, "s": str | None}


def opened(sink: Sink, epoch: int = 0, state: bytes | None = None) -> FolderWriter:
    writer = sink.open(0, 1)
    assert isinstance(writer, FolderWriter)
    writer.restore(state)
    writer.recover({}, epoch=epoch, run="r", incarnation=epoch + 1)
    return writer


def write(writer: FolderWriter, epoch: int, *batches: Any) -> None:
    for values in batches:
        times = Times.of([0] * len(values)) if type(values) is Table else [0] * len(values)
        writer.write_batch(Batch(values, times))
    writer.commit(epoch, writer.prepare(epoch))


def rows(name: str, folder: Path) -> list[Any]:
    options = {"multiline": True} if name == "csv" else {}
    source = SINKS[name][1](folder, **options)
    found: list[Any] = []
    for partition in source.partitions():
        reader = source.open(partition, None)
        while not reader.finished:
            if (batch := reader.read_batch(100)) is not None:
                found += batch.values
        reader.close()
    return found


@pytest.mark.parametrize("name", SINKS)
def test_tables_and_rows_are_written(tmp_path: Path, name: str) -> None:
    """Both into one file, all of one schema; the sink says that it takes tables."""
    sink = SINKS[name][0](tmp_path / "out")
    writer = opened(sink)

    write(writer, 1, TABLE, [{"n": 3, "s": "c"}])
    write(writer, 2)
    write(writer, 3, TABLE[1:])
    writer.close(completed=True)

    assert sink.columnar
    assert sink.transactional
    last = {"n": 2, "s": 'b"\n'}
    assert rows(name, tmp_path / "out") == [{"n": 1, "s": "a"}, last, {"n": 3, "s": "c"}, last]


@pytest.mark.parametrize("name", SINKS)
def test_a_row_of_a_table_that_does_not_fit_is_named(tmp_path: Path, name: str) -> None:
    """An unknown column, another type, nothing where something must be; none is written."""
    writer = opened(SINKS[name][0](tmp_path / "out", schema=SCHEMA))
    wrong = [
        ({"n": [1], "x": [1]}, "'x' is not in the schema"),
        ({"n": ["a"]}, "'n' is int64"),
        ({"n": [1, None]}, "'n' is int64: a value is missing"),
    ]

    for columns, message in wrong:
        with pytest.raises(OperatorError, match=message):
            write(writer, 1, Table(pa.RecordBatch.from_pydict(columns)))
    write(writer, 1, Table(pa.RecordBatch.from_pydict({"n": pa.array([1], pa.int8())})))
    writer.close(completed=True)

    nothing = "" if name == "csv" else None
    assert [row["n"] for row in rows(name, tmp_path / "out")] == [1]
    assert rows(name, tmp_path / "out")[0]["s"] in {nothing, None}


@pytest.mark.parametrize("name", SINKS)
def test_the_schema_stays_after_a_restart(tmp_path: Path, name: str) -> None:
    sink = SINKS[name][0](tmp_path / "out")
    first = opened(sink)
    before = first.snapshot()
    write(first, 1, [{"n": 1.5}])

    again = opened(sink, epoch=1, state=first.snapshot())
    with pytest.raises(OperatorError, match="'n' is double"):
        write(again, 2, [{"n": "x"}])
    write(again, 2, [{"n": 2}])
    again.close(completed=True)

    assert before is None
    assert [float(row["n"]) for row in rows(name, tmp_path / "out")] == [1.5, 2.0]


def test_a_given_schema_decides(tmp_path: Path) -> None:
    schema = pa.schema([("y", pa.float32()), pa.field("x", pa.int16(), metadata={"unit": "m"})])

    write(opened(parquet_folder(tmp_path / "out", schema=schema)), 1, [{"x": 1, "y": 0.5}])

    (path,) = (tmp_path / "out").glob("*.parquet")
    found = pq.read_schema(path)
    assert (found.names, found.types) == (["y", "x"], [pa.float32(), pa.int16()])
    assert found.field("x").metadata[b"unit"] == b"m"


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
    assert file.read()["x"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: csv_folder(path, delimiter=""), "must be one ASCII character"),
        (lambda path: csv_folder(path, schema={"n": list[int]}), "no cell can hold"),
        (lambda path: csv_folder(path, schema=5), "csv_folder: schema is 5"),
        (lambda path: arrow_folder(path, schema=5), "arrow_folder: schema is 5"),
        (lambda path: arrow_folder(path, prefix="_x"), "prefix '_x'"),
        (lambda path: parquet_folder(path, compression="bz2"), "must be one of snappy, zstd"),
        (lambda path: parquet_folder(path, schema={"x": "integer"}), "need a pyarrow.Schema"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, make: Callable[[Path], Sink], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(tmp_path)


def test_cells_cannot_hold_lists(tmp_path: Path) -> None:
    writer = opened(csv_folder(tmp_path / "out"))

    with pytest.raises(ConfigError, match="column 'n' is list"):
        write(writer, 1, [{"n": [1]}])
    writer.close(completed=False)
