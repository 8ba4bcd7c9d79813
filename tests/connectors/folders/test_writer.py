"""One task that writes a folder: what is shown when, and what is left to others."""

import logging
from pathlib import Path
from typing import Any

import pytest

from gearpy.connectors.folders.json import JsonFolderFormat
from gearpy.connectors.folders.parts import FolderShare, PreparedPart
from gearpy.connectors.folders.writer import FolderWriter
from gearpy.core.handover.window_log import PENDING
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.messages.data import Batch
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.folder.memory import MemoryFolder


def text_of(folder: MemoryFolder) -> str:
    return "".join(folder.files[name].data.decode() for name in sorted(folder.names()))


def a_writer(folder: Any, **share: Any) -> FolderWriter:
    return FolderWriter("sink", folder, JsonFolderFormat(), FolderShare(**{"task": 0, **share}))


def started(folder: Any, incarnation: int = 1, run: str = "r", **share: Any) -> FolderWriter:
    writer = a_writer(folder, **share)
    writer.recover({}, epoch=0, run=run, incarnation=incarnation)
    return writer


def batch(*values: Any) -> Batch:
    return Batch(list(values), [0] * len(values))


def prepared(writer: FolderWriter, epoch: int, *values: Any) -> PreparedPart:
    writer.write_batch(batch(*values))
    part = writer.prepare(epoch)
    assert isinstance(part, dict)
    return part


def commit(writer: FolderWriter, epoch: int, *values: Any) -> PreparedPart:
    part = prepared(writer, epoch, *values)
    writer.commit(epoch, part)
    return part


# -- epochs ----------------------------------------------------------------------------------


def test_an_epoch_is_one_file_with_a_name_that_tells() -> None:
    """Task, epoch, run and incarnation; the handle has what a person may want to know."""
    folder = MemoryFolder()

    part = commit(started(folder, 255, task=3, tasks=4, prefix="out"), 7, "a", "b")

    assert part == {
        "pending": "out-00003-r-00000000000000ff-000001.jsonl.pending",
        "name": "out-00003-0000000007-r-00000000000000ff.jsonl",
        "rows": 2,
        "size": 8,
    }
    assert (folder.names(), folder.names(PENDING)) == ([part["name"]], [])


@pytest.mark.parametrize("values", [[], [{1, 2}]], ids=["none", "refused"])
def test_an_epoch_without_records_leaves_nothing(values: list[Any]) -> None:
    folder = MemoryFolder()
    writer = started(folder)
    if values:
        with pytest.raises(OperatorError):
            writer.write_batch(batch(*values))
    writer.write_batch(batch())

    part = writer.prepare(1)
    writer.commit(1, part)

    assert (part, folder.names(), folder.names(PENDING)) == (None, [], [])


# -- restarts --------------------------------------------------------------------------------


def test_going_back_removes_what_was_shown_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    folder = MemoryFolder()
    writer = started(folder)
    parts = {epoch: commit(writer, epoch, epoch) for epoch in range(1, 15)}

    with caplog.at_level(logging.WARNING):
        a_writer(folder).recover({1: parts[1]}, epoch=1, run="r", incarnation=2)

    assert text_of(folder) == "1\n"
    assert "sink: back to epoch 1, so 13 files are removed from memory" in caplog.text
    assert parts[2]["name"] in caplog.text
    assert parts[14]["name"] not in caplog.text
    assert "and 3 more" in caplog.text


def test_other_tasks_and_runs_are_left_alone() -> None:
    """Pending or shown; also those whose names begin alike."""
    folder = MemoryFolder()
    others: dict[str, dict[str, Any]] = {
        "r": {"task": 1},
        "r2": {},
        "r-1": {},
        "R": {"prefix": "x"},
    }
    for run, share in others.items():
        writer = started(folder, run=run, **share)
        commit(writer, 1, run)
        prepared(writer, 2, run)
    (before, waiting) = (folder.names(), folder.names(PENDING))

    started(folder, 2)

    assert (folder.names(), folder.names(PENDING)) == (before, waiting)


def test_what_is_neither_pending_nor_shown_is_an_error() -> None:
    """Records would be lost without a word."""
    folder = MemoryFolder()
    part = prepared(started(folder), 1, 1)
    folder.remove(PENDING + part["pending"])

    with pytest.raises(GearpyError, match=f"sink: memory has neither {part['name']} nor"):
        a_writer(folder).recover({1: part}, epoch=1, run="r", incarnation=2)


def test_a_run_may_go_on_from_a_checkpoint_of_another(caplog: pytest.LogCaptureFixture) -> None:
    folder, elsewhere = MemoryFolder(), MemoryFolder()
    writer = started(folder)
    parts: dict[int, PreparedPart | None] = {1: commit(writer, 1, 1), 2: prepared(writer, 2, 2)}

    a_writer(folder).recover(parts, epoch=2, run="s", incarnation=2)
    with caplog.at_level(logging.WARNING):
        a_writer(elsewhere).recover(parts, epoch=2, run="s", incarnation=3)

    assert (text_of(folder), text_of(elsewhere)) == ("1\n2\n", "")
    assert caplog.text.count("which an earlier run has written") == 2


def test_a_pending_file_of_another_size_is_an_error() -> None:
    folder = MemoryFolder()
    part = prepared(started(folder), 1, 1)
    folder.files[PENDING + part["pending"]].data += b"2"

    with pytest.raises(GearpyError, match="has 3 bytes, 2 were written: it was changed"):
        a_writer(folder).recover({1: part}, epoch=1, run="r", incarnation=2)
    assert folder.names() == []


def test_a_zombie_cannot_show_what_its_successor_has_removed() -> None:
    folder = MemoryFolder()
    zombie = started(folder)
    part = prepared(zombie, 1, 1)
    successor = started(folder, 2)
    commit(successor, 1, 1)

    with pytest.raises(GearpyError, match="this task was given up"):
        zombie.commit(1, part)
    zombie.write_batch(batch(2))
    zombie.prepare(2)

    assert text_of(folder) == "1\n"


# -- earlier runs ----------------------------------------------------------------------------


def two_runs(**share: Any) -> MemoryFolder:
    """Return what two tasks of an earlier run, and then one of a new run, have left."""
    folder = MemoryFolder()
    for task in range(2):
        writer = started(folder, run="old", task=task)
        commit(writer, 1, task)
        prepared(writer, 2, task)
    commit(started(folder, 5, "new", **share), 1, "new")
    return folder


def test_each_task_removes_its_share_of_earlier_runs() -> None:
    folder = two_runs(overwrite=True, tasks=2)

    assert text_of(folder) == '"new"\n1\n'


def test_a_run_that_began_later_is_not_removed() -> None:
    """An application was killed and started again; the first one's process was frozen meanwhile."""
    folder = two_runs()

    def freeze(_: str) -> None:
        folder.on_step = lambda _: None
        commit(started(folder, 1, "newest", overwrite=True), 1, "newest")

    folder.on_step = freeze
    started(folder, 4, "middle", overwrite=True)

    assert text_of(folder) == '"newest"\n'


# -- on disk ---------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "_pending").write_text("")

    with pytest.raises(
        ConfigError, match=f"sink: cannot write {tmp_path}: it is a file, and no folder"
    ):
        started(LocalFolder(tmp_path))


# -- large epochs ------------------------------------------------------------------------------


def test_a_file_that_is_full_is_followed_by_another_of_its_epoch() -> None:
    folder = MemoryFolder()
    writer = FolderWriter("sink", folder, JsonFolderFormat(), FolderShare(task=0), file_bytes=4)
    writer.recover({}, epoch=0, run="r", incarnation=1)
    for value in (11, 22, 33, 44, 5):
        writer.write_batch(batch(value))
    parts = writer.prepare(1)
    before = folder.names()
    writer.commit(1, parts)
    writer.commit(1, parts)

    assert before == []
    assert sorted(folder.names()) == [
        "part-00000-0000000001-r-0000000000000001.jsonl",
        "part-00000-0000000001.0001-r-0000000000000001.jsonl",
        "part-00000-0000000001.0002-r-0000000000000001.jsonl",
    ]
    assert sorted(text_of(folder).split()) == ["11", "22", "33", "44", "5"]
    started(folder, 2)
    assert folder.names() == []


def test_files_that_are_full_and_not_prepared_go() -> None:
    folder = MemoryFolder()
    writer = FolderWriter("sink", folder, JsonFolderFormat(), FolderShare(task=0), file_bytes=1)
    writer.recover({}, epoch=0, run="r", incarnation=1)
    writer.write_batch(batch(1))
    writer.write_batch(batch(2))
    writer.close(completed=False)

    assert folder.walk() == []
