"""Files that are changed, replaced, packed or removed while a folder is followed, or read."""

import gzip
import os
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.files.datasets import csv
from gearpy.connectors.files.line_formats import CsvFormat
from gearpy.connectors.files.partitions import ReadOptions, RowFiles
from gearpy.connectors.files.queue import FileQueue
from gearpy.connectors.locations import FoundFile
from gearpy.errors import GearpyError
from gearpy.task.api.snapshots import decode_state, encode_state
from tests.connectors.files.test_datasets import Clock, read


def test_a_file_that_is_changed_while_a_folder_is_listed_is_not_complete_yet() -> None:
    clock = Clock()

    def look() -> list[FoundFile]:
        clock.ms += 4000
        return [FoundFile("a.csv", 1, clock.ms - 10)]

    assert FileQueue(look, follows=True, settle_ms=1000, now_ms=clock).next() is None


def test_a_file_that_was_replaced_when_it_was_read_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, file = Clock(), tmp_path / "a.csv"
    options = ReadOptions(schema={"n": int}, follow=True, partitions=1, settle="0s")
    reader = RowFiles(CsvFormat(), [tmp_path], options, now_ms=clock).open("00000", None)

    def later(text: str) -> list[int]:
        file.write_text(text)
        os.utime(file, (clock.ms, clock.ms))
        clock.ms += 1000
        return [record.value["n"] for record in read(reader)]

    assert later("n\n1\n2\n") == [1, 2]
    for text in ("n\n7\n8\n", "n\n9\n"):
        assert later(text) == []
        assert later(text) == []
        told = caplog.messages.pop(0)
        assert told.startswith(f"{file} was changed or replaced since it was read")
        caplog.clear()


@pytest.mark.parametrize("ends", [("", ".gz"), (".gz", ""), ("", ".zst"), (".zst", ".gz")])
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_file_that_was_packed_when_it_was_read_is_not_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ends: tuple[str, str], *, is_kept: bool
) -> None:
    clock = Clock()
    options = ReadOptions(schema={"n": int}, follow=True, partitions=4, settle="0s")
    source = RowFiles(CsvFormat(), [tmp_path], options, now_ms=clock)
    readers = [source.open(name, None) for name in source.partitions()]

    def put(name: str, end: str, number: int) -> Path:
        text = f"n\n{number}\n".encode()
        packed = {
            "": text,
            ".gz": gzip.compress(text),
            ".zst": pa.compress(text, "zstd", asbytes=True),
        }
        file = tmp_path / f"{name}.csv{end}"
        file.write_bytes(packed[end])
        return file

    def later() -> list[int]:
        clock.ms += 1000
        return sorted(record.value["n"] for reader in readers for record in read(reader))

    before = [put(str(number), ends[0], number) for number in range(6)]
    assert later() == [*range(6)]
    states = [decode_state(encode_state("test", reader.snapshot())) for reader in readers]
    readers = [source.open(*each) for each in zip(source.partitions(), states, strict=True)]
    for number, file in enumerate(before):
        _ = put(str(number), ends[1], number)
        if not is_kept:
            file.unlink()
    _ = put("new", ends[1], 9)
    assert later() == [9]
    assert later() == []
    told = [each for each in caplog.messages if "is not read, as" in each]
    assert len(told) == len(before)


@pytest.mark.parametrize("on_bad", ["fail", "skip"])
@pytest.mark.parametrize("way", ["written over", "replaced", "cut"])
def test_a_file_that_is_written_anew_while_it_is_read_is_refused(
    tmp_path: Path, way: str, on_bad: Any
) -> None:
    file = tmp_path / "a.csv"
    lines = [f"{number:099}\n" for number in range(40_000)]
    file.write_text("n\n" + "".join(lines))
    os.utime(file, (1, 1))
    source = csv(file, schema={"n": str}, on_bad=on_bad)
    reader = source.open(str(file), None)
    found = [record.value["n"] for record in read(reader, 1000, reads=1)]
    other = file.with_name("b") if way == "replaced" else file
    with other.open("wb" if way != "written over" else "r+b") as written:
        written.write(b"n\n" + (b"8" * 99 + b"\n") * (32_000 if way == "cut" else len(lines)))
    _ = other.replace(file)

    if on_bad == "fail":
        with pytest.raises(GearpyError, match=r"a\.csv, .*while it was read.*on_bad"):
            _ = read(reader, 1 << 16)
        reader.close()
        return
    found += [record.value["n"] for record in read(reader, 1 << 16)]
    assert reader.skipped_records
    if way == "replaced":
        assert found == [line.strip() for line in lines]


def test_lines_that_are_added_while_a_file_is_read_are_no_change_of_it(tmp_path: Path) -> None:
    """They are told, and left out; the rows that were there are right."""
    file = tmp_path / "a.csv"
    file.write_text("n\n1\n2\n")
    reader = csv(file, schema={"n": int}).open(str(file), None)
    found = read(reader, 1, reads=1)
    with file.open("a") as added:
        added.write("3\n")

    found += read(reader)

    assert [record.value["n"] for record in found] == [1, 2]


def test_a_file_that_is_gone_before_it_is_read_is_no_mistake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    options = ReadOptions(schema={"n": int}, follow=True, partitions=1, settle="0s")
    reader = RowFiles(CsvFormat(), [tmp_path], options, now_ms=clock).open("00000", None)
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"n\n{number}\n")
    assert [record.value["n"] for record in read(reader, 1, reads=1)] == [0]
    (tmp_path / "1.csv").unlink()
    (tmp_path / "1.csv.gz").write_bytes(gzip.compress(b"n\n1\n"))
    found = [record.value["n"] for record in read(reader)]
    clock.ms += 1000
    found += [record.value["n"] for record in read(reader)]

    assert sorted(found) == [1, 2]
    assert any("1.csv is gone" in each for each in caplog.messages)
