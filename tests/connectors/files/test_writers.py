"""Files as sinks: text lines and JSON lines."""

import json
import os
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.files.lines_files import jsonl_file, text_file
from gearpy.connectors.files.writers import json_lines, text_lines
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, SinkWriter
from gearpy.task.api.window_result import WindowResult


class Point(NamedTuple):
    x: int
    y: list[int]


@dataclass
class Sale:
    item: str
    at: datetime


def opened(sink: Sink, task: int = 0, tasks: int = 1, state: Any = None) -> SinkWriter:
    writer = sink.open(task, tasks)
    writer.restore(state)
    return writer


def write(sink: Sink, *values: Any, completed: bool = True) -> None:
    writer = opened(sink)
    writer.write_batch(Batch(list(values), [0] * len(values)))
    writer.close(completed=completed)


def test_a_text_file_is_begun_anew_or_continued(tmp_path: Path) -> None:
    write(text_file(tmp_path / "a.txt"), "one")
    write(text_file(tmp_path / "a.txt"), "two")
    write(text_file(tmp_path / "a.txt", append=True), "three")

    assert (tmp_path / "a.txt").read_text() == "two\nthree\n"


def test_several_tasks_have_a_file_each(tmp_path: Path) -> None:
    """Two tasks in one file would mix their lines."""
    sink = text_file(tmp_path / "out.data.txt")

    for task in range(2):
        writer = opened(sink, task, 2)
        writer.write_batch(Batch([task], [0]))
        writer.close(completed=True)

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.data-00000-of-00002.txt",
        "out.data-00001-of-00002.txt",
    ]


def test_lines_can_be_seen_when_event_time_moves(tmp_path: Path) -> None:
    writer = opened(text_file(tmp_path / "a.txt"))
    writer.write_batch(Batch(["one"], [0]))

    writer.on_watermark(1)
    seen = (tmp_path / "a.txt").read_text()
    writer.close(completed=False)

    assert seen == "one\n"


@pytest.mark.parametrize("completed", [True, False])
def test_only_a_completed_file_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, completed: bool
) -> None:
    """A failed task is in a hurry; a completed one has promised."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    write(text_file(tmp_path / "a.txt"), "one", completed=completed)

    assert bool(synced) == completed
    assert (tmp_path / "a.txt").read_text() == "one\n"


def test_a_missing_folder_is_named_when_opened(tmp_path: Path) -> None:
    """And not made: a slip of the pen would scatter folders."""
    with pytest.raises(ConfigError, match=f"folder {tmp_path / 'new'} does not exist"):
        text_file(tmp_path / "new" / "a.txt").open(0, 1)


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()

    with pytest.raises(ConfigError, match=r"cannot write .*a\.txt: "):
        opened(text_file(tmp_path / "a.txt"))


# -- restarts --------------------------------------------------------------------------------


def lines(*values: str) -> Batch:
    return Batch(list(values), [0] * len(values))


def test_a_snapshot_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and, the first time, its name; nothing is waited for when nothing is new."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    writer = opened(text_file(tmp_path / "a.txt"))
    writer.write_batch(lines("one"))

    places = [writer.snapshot(), writer.snapshot()]
    seen = (tmp_path / "a.txt").read_text()
    writer.write_batch(lines("two"))
    places.append(writer.snapshot())

    assert places == [{"size": 4}, {"size": 4}, {"size": 8}]
    assert seen == "one\n"
    assert len(synced) == 3
    writer.close(completed=False)


@given(
    before=st.lists(st.text("ab\n"), max_size=4),
    after=st.lists(st.text("ab\n"), max_size=4),
    torn=st.integers(0, 20),
)
def test_a_restart_goes_on_at_the_snapshot(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str], torn: int
) -> None:
    """Property: wherever the process was killed, what came after the snapshot is gone."""
    path = tmp_path_factory.mktemp("restart") / "a.txt"
    killed = opened(text_file(path))
    killed.write_batch(lines(*before))
    state = killed.snapshot()
    killed.write_batch(lines(*after))
    killed.close(completed=False)
    with path.open("r+b") as file:
        file.truncate(max(state["size"], path.stat().st_size - torn))

    writer = opened(text_file(path), state=state)
    writer.write_batch(lines("more"))
    writer.close(completed=True)

    assert path.read_text() == "".join(f"{line}\n" for line in [*before, "more"])
    assert [each.name for each in path.parent.iterdir()] == ["a.txt"]


def test_a_process_that_was_believed_dead_writes_into_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    frozen = opened(text_file(path))
    frozen.write_batch(lines("one"))
    state = frozen.snapshot()
    frozen.write_batch(lines("two"))

    writer = opened(text_file(path), state=state)
    frozen.close(completed=True)
    writer.write_batch(lines("2"))
    writer.close(completed=True)

    assert path.read_text() == "one\n2\n"


def test_an_appended_file_goes_on_at_the_snapshot_too(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    killed = opened(text_file(path, append=True))
    killed.write_batch(lines("one"))
    state = killed.snapshot()
    killed.write_batch(lines("two"))
    killed.close(completed=False)

    opened(text_file(path, append=True), state=state).close(completed=True)

    assert state == {"size": 8}
    assert path.read_text() == "old\none\n"


@pytest.mark.parametrize("content", [None, "on"])
def test_a_file_that_lost_what_was_written_is_an_error(tmp_path: Path, content: str | None) -> None:
    """To go on would lose lines silently."""
    path = tmp_path / "a.txt"
    if content is not None:
        path.write_text(content)

    with pytest.raises(GearpyError, match="cannot go on at 4: it was changed, or the task was"):
        opened(text_file(path), state={"size": 4})

    assert list(tmp_path.iterdir()) == ([] if content is None else [path])


def test_a_renewed_file_keeps_its_rights_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "link.txt"
    path.write_text("old\n")
    path.chmod(0o640)
    link.symlink_to(path)

    write(text_file(link), "new")

    assert link.is_symlink()
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = opened(text_file(path))

    writer.write_batch(lines("one"))
    state = writer.snapshot()
    writer.close(completed=True)

    assert state is None
    assert os.read(reader, 100) == b"one\n"
    os.close(reader)


# -- records to lines ------------------------------------------------------------------------


def test_a_record_that_has_no_text_is_named() -> None:
    class Mute:
        def __str__(self) -> str:
            raise ValueError("mute")

        def __repr__(self) -> str:
            return "Mute()"

    with pytest.raises(OperatorError) as mute:
        text_lines("text_file", ["a", Mute()])
    with pytest.raises(OperatorError) as half:
        text_lines("text_file", ["a", "\ud800"])

    assert mute.value.record == "Mute()"
    assert half.value.record == repr("\ud800")


def test_records_with_names_become_objects(tmp_path: Path) -> None:
    at = datetime(2024, 1, 2, 3, tzinfo=UTC)
    nested = {"points": [Point(1, [2])], "pair": (1, "é")}

    write(jsonl_file(tmp_path / "a.jsonl"), Sale("fig", at), WindowResult("a", 1, 0, 10), nested)

    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines == [
        '{"item":"fig","at":"2024-01-02T03:00:00+00:00"}',
        '{"key":"a","value":1,"start":0,"end":10,"firing":0,"timing":"on-time","retracts":false}',
        '{"points":[{"x":1,"y":[2]}],"pair":[1,"é"]}',
    ]


def test_dates_and_foreign_integers_have_a_form() -> None:
    class Whole:
        def __index__(self) -> int:
            return 3

    assert json_lines("jsonl_file", [[date(2024, 1, 2), Whole()]]) == b'["2024-01-02",3]\n'


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (b"raw", "decode them before"),
        ({"a": [b"raw"]}, "decode them before"),
        ({1, 2}, "JSON has no form for set"),
        (object, "JSON has no form for type"),
        (float("nan"), "JSON has no form for nan: map it"),
        ({(1, 2): 3}, "keys must be"),
        ("\ud800", "which has half a character: map it"),
    ],
)
def test_what_json_has_no_form_for_is_refused_with_the_record(value: Any, cause: str) -> None:
    with pytest.raises(OperatorError) as failed:
        json_lines("jsonl_file", [1, value])

    assert failed.value.operator == "jsonl_file"
    assert failed.value.record == repr(value)
    assert cause in failed.value.cause


def test_an_empty_record_type_is_an_object() -> None:
    empty = namedtuple("empty", [])  # noqa: PYI024 - no fields to type

    assert json_lines("jsonl_file", [(), empty()]) == b"[]\n{}\n"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\n"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(values=st.lists(json_values, max_size=5))
def test_json_lines_are_read_back_as_they_were(values: list[Any]) -> None:
    """Property: one line a record, whatever line breaks it holds."""
    lines = json_lines("jsonl_file", values).decode().split("\n")

    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == values
