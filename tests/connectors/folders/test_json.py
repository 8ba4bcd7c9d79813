"""Folders of JSON lines as sinks."""

from pathlib import Path
from typing import Any

import pytest

from gearpy.connectors.folders.json import jsonl_folder
from gearpy.connectors.folders.writer import FolderWriter
from gearpy.errors import ConfigError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink
from gearpy.task.api.snapshots import decode_state, encode_state


def write(sink: Sink, *epochs: list[Any]) -> None:
    """Write some epochs with one task, as a bounded stream does."""
    writer = sink.open(0, 1)
    assert isinstance(writer, FolderWriter)
    writer.recover({}, epoch=0, run="run/1", incarnation=1)
    for number, values in enumerate(epochs, 1):
        writer.write_batch(Batch(values, [0] * len(values)))
        handle = encode_state("sink", writer.prepare(number))
        assert isinstance(handle, bytes)
        writer.commit(number, decode_state(handle))
    writer.close(completed=True)


@pytest.mark.smoke
def test_records_become_lines_of_json(tmp_path: Path) -> None:
    """A file for each epoch; handles travel through a checkpoint."""
    write(jsonl_folder(tmp_path / "out"), [{"n": 1}, [2]], [], ["é"])

    texts = [path.read_text() for path in sorted((tmp_path / "out").glob("*.jsonl"))]
    assert texts == ['{"n":1}\n[2]\n', '"é"\n']


def test_the_names_of_files_begin_with_the_prefix(tmp_path: Path) -> None:
    """So that two sinks of an application can write into one folder."""
    for prefix in ("left", "right_2"):
        write(jsonl_folder(tmp_path / "out", prefix=prefix), [prefix])

    names = sorted(path.name for path in (tmp_path / "out").glob("*.jsonl"))
    assert [name.partition("-")[0] for name in names] == ["left", "right_2"]


@pytest.mark.parametrize("prefix", ["", "_part", ".part", "a-b", "a/b", "1", "é"])
def test_a_prefix_is_a_word(tmp_path: Path, prefix: str) -> None:
    """Files that begin with an underscore or a dot are hidden from readers."""
    with pytest.raises(ConfigError, match="cannot begin names of files"):
        jsonl_folder(tmp_path, prefix=prefix)


def test_earlier_runs_are_overwritten_if_wanted(tmp_path: Path) -> None:
    """Only files that such a sink has written; others stay."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000.jsonl").write_text("0\n")
    write(jsonl_folder(tmp_path / "out"), [1])
    writer = jsonl_folder(tmp_path / "out", overwrite=True).open(0, 1)
    assert isinstance(writer, FolderWriter)

    writer.recover({}, epoch=0, run="run/2", incarnation=1)

    assert [path.name for path in (tmp_path / "out").glob("*.jsonl")] == ["part-00000.jsonl"]


def test_a_missing_folder_is_named_when_opened(tmp_path: Path) -> None:
    """One level is made, no more: a slip of the pen would scatter folders."""
    with pytest.raises(ConfigError, match=f"folder {tmp_path / 'a'} does not exist: make it first"):
        jsonl_folder(tmp_path / "a" / "b").open(0, 1)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Named when opened."""
    (tmp_path / "a").write_text("")

    with pytest.raises(ConfigError, match="is a file: give a folder"):
        jsonl_folder(tmp_path / "a").open(0, 1)


def test_it_says_what_it_is() -> None:
    """In plans, in the guarantee, and as the place where no other sink may write."""
    sink = jsonl_folder("out")

    assert sink.description == "jsonl_folder(out)"
    assert jsonl_folder("out", prefix="left").description == "jsonl_folder(out/left-*)"
    assert (sink.transactional, sink.idempotent) == (True, False)
