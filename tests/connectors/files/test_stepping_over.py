"""Files of which little is read at a time, and parts of which are stepped over unread."""

import bz2
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import Source, SourceReader

ROWS: Final[list[dict[str, Any]]] = [{"n": n, "text": "x" * n} for n in range(9)]
GROUP: Final = 4
_JSON: Final = [json.dumps(row).encode() for row in ROWS]
_CSV: Final = [b'%d,"%s\n"' % (row["n"], row["text"].encode()) for row in ROWS]


def as_arrow(file: Path, table: pa.Table) -> None:
    with pa_ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=GROUP)


def write(file: Path, form: str) -> None:
    table = pa.Table.from_pylist(ROWS)
    if form == "parquet":
        pq.write_table(table, file, row_group_size=GROUP)
    elif form == "arrow":
        as_arrow(file, table)
    else:
        lines = [b"n,text", *_CSV] if form == "csv" else _JSON
        body = b"\n\n".join(lines) if form == "jsonl" else b"\n".join(lines)
        file.write_bytes(bz2.compress(body) if file.suffix == ".bz2" else body)


FORMS: Final[dict[str, tuple[str, Callable[[str], Source]]]] = {
    "jsonl": ("a.jsonl", gp.jsonl),
    "jsonl of rows": ("a.jsonl", lambda name: gp.jsonl(name, rows=True)),
    "jsonl, packed": ("a.jsonl.bz2", gp.jsonl),
    "csv": ("a.csv", lambda name: gp.csv(name, multiline=True)),
    "parquet": ("a.parquet", gp.parquet),
    "arrow": ("a.arrow", gp.arrow),
}


def read(reader: SourceReader, count: int) -> list[int]:
    seen: list[int] = []
    while len(seen) < count and not reader.finished:
        batch = reader.read_batch(count - len(seen))
        seen += [row["n"] for row in (batch.values if batch is not None else ())]
    return seen


@pytest.fixture(params=[*FORMS])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, Source]:
    name, make = FORMS[request.param]
    form = request.param.partition(" ")[0].strip(",")
    (tmp_path / "b").mkdir()
    write(tmp_path / name, form)
    write(tmp_path / "b" / name, form)
    return form, make(f"{tmp_path}/**/{name}")


@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
@pytest.mark.parametrize("begin", range(len(ROWS) + 1))
def test_little_at_a_time_is_the_same(source: tuple[str, Source], begin: int, at_once: int) -> None:
    _, files = source
    partition = files.partitions()[0]
    with closing(files.open(partition, None)) as plain:
        assert read(plain, begin) == [*range(begin)]
        place = plain.snapshot()
    with closing(files.open(partition, place)) as little:
        little.read_little()
        some = read(little, at_once)
        after = little.snapshot()
    with closing(files.open(partition, after)) as plain:
        assert some + read(plain, 100) == [*range(begin, len(ROWS))]


@pytest.mark.parametrize("begin", range(len(ROWS)))
def test_the_smallest_part_is_stepped_over(source: tuple[str, Source], begin: int) -> None:
    """A line, also one with a line ending in a cell; of columns the rest of a group."""
    form, files = source
    partition = files.partitions()[0]
    with closing(files.open(partition, None)) as plain:
        read(plain, begin)
        place: Any = plain.snapshot()
    with closing(files.open(partition, place)) as reader:
        reader.read_little()
        left_out = reader.step_over(all_of_file=False)
        if form == "jsonl" and not (left_out or "").partition(": ")[2]:
            left_out = reader.step_over(all_of_file=False)  # An empty line, which is no row.
        place = reader.snapshot()
    with closing(files.open(partition, place)) as plain:
        rest = read(plain, 100)

    if form in {"parquet", "arrow"}:
        group = begin // GROUP
        assert left_out == f"group {group} of rows, from row {begin - group * GROUP} on"
        assert rest == [*range((group + 1) * GROUP, len(ROWS))]
    else:
        assert str(begin) in str(left_out)
        assert rest == [*range(begin + 1, len(ROWS))]


@pytest.mark.parametrize("begin", [0, 3])
def test_a_file_that_cannot_be_opened_is_stepped_over(
    source: tuple[str, Source], begin: int, tmp_path: Path
) -> None:
    _, files = source
    partition = files.partitions()[0]
    with closing(files.open(partition, None)) as plain:
        read(plain, begin)
        place = plain.snapshot()
    with closing(files.open(partition, place)) as reader:
        reader.read_little()
        assert reader.step_over(all_of_file=True) == f"the rest of {partition}"
        after = reader.snapshot()
        with pytest.raises(ConfigError, match="no file is left"):
            reader.step_over(all_of_file=True)
    with closing(files.open(partition, after)) as plain:
        assert read(plain, 100) == []


def test_other_sources_say_that_they_cannot() -> None:
    reader = gp.collection([1]).open("0", None)
    reader.read_little()
    with pytest.raises(ConfigError, match="cannot step over it unread: take it out of the input"):
        reader.step_over(all_of_file=False)
