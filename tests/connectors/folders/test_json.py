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


def test_earlier_runs_are_overwritten_if_wanted(tmp_path: Path) -> None:
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
