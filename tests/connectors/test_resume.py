"""Every replayable source goes on exactly where a snapshot was taken."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv as arrow_csv  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.files.datasets import csv, jsonl, parquet
from gearpy.connectors.files.lines_files import files
from gearpy.connectors.memory import collection
from gearpy.connectors.streams.generator import generate
from gearpy.connectors.tables import generate_tables, rows
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import Source
from gearpy.testing import check_source

LINES = [f"{number * 7 % 23} {'x' * (number % 5)}é" for number in range(40)]


#: Sources whose records are further out of order than their readers were told.
LATE = {"windows", "marked", "follow", "collection", "messages", "generator", "ended"}


def time_of(line: str) -> int:
    return int(line.split(" ", maxsplit=1)[0])


def time_of_number(number: int) -> int:
    return number * 7 % 23


def followed(path: Path) -> Source:
    """Return a source of a file that may grow, whose only partition is known from the start."""
    source = files(path, timestamp=time_of, follow=True)
    source.discovers = False
    return source


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resume")
    (folder / "whole.txt").write_text("".join(f"{line}\n" for line in LINES))
    (folder / "windows.txt").write_bytes("\r\n".join(LINES).encode())
    table = pa.table({"n": range(40), "at": [time_of_number(n) for n in range(40)]})
    arrow_csv.write_csv(table, folder / "rows.csv")
    pq.write_table(table, folder / "rows.parquet", row_group_size=7)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    (folder / "empty.txt").write_text("")
    (folder / "marked.txt").write_text("".join(f"{line}\n" for line in LINES), "utf-8-sig")
    return folder


SOURCES: dict[str, Callable[[Path], Source]] = {
    "files": lambda folder: files(folder / "whole.txt"),
    "windows": lambda folder: files(folder / "windows.txt", timestamp=time_of, out_of_order="5ms"),
    "marked": lambda folder: files(folder / "marked.txt", timestamp=time_of, encoding="utf-8-sig"),
    "empty": lambda folder: files(folder / "empty.txt"),
    "follow": lambda folder: followed(folder / "whole.txt"),
    "collection": lambda _: collection(LINES, timestamp=time_of, partitions=3),
    "messages": lambda _: collection(
        [Message(line, time_of(line)) for line in LINES], out_of_order="9ms"
    ),
    "generator": lambda _: generate(
        lambda part: count(100 * part), timestamp=time_of_number, limit=50, partitions=3
    ),
    "csv": lambda folder: csv(folder / "rows.csv", time="at", out_of_order="99ms"),
    "jsonl": lambda folder: jsonl(folder / "rows.jsonl", time="at", out_of_order="99ms"),
    "parquet": lambda folder: parquet(folder / "rows.parquet", time="at", out_of_order="99ms"),
    "rows": lambda _: rows([{"n": n} for n in range(40)], partitions=2),
    "tables": lambda _: generate_tables(
        lambda: (pa.RecordBatch.from_pydict({"n": [n, n]}) for n in range(20)),
        schema={"n": int},
        limit=40,
    ),
    "ended": lambda _: generate(lambda: range(30), timestamp=time_of_number),
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_source_gives_what_follows(folder: Path, name: str) -> None:
    """Same records, times and watermarks, cut wherever; also from bytes, and in an application."""
    records = {"follow": len(LINES), "ended": 30}.get(name)

    check_source(lambda: SOURCES[name](folder), records=records, has_late=name in LATE, seeds=2)
