"""Every replayable source goes on exactly where a snapshot was taken."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.connectors.files.lines_files import files
from gearpy.connectors.memory import collection
from gearpy.connectors.streams.generator import generate
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import Source, SourceReader
from gearpy.task.api.snapshots import decode_state, encode_state

LINES = [f"{number * 7 % 23} {'x' * (number % 5)}é" for number in range(40)]


def time_of(line: str) -> int:
    """Return the event time that a line begins with."""
    return int(line.split(" ", maxsplit=1)[0])


def time_of_number(number: int) -> int:
    """Return times that are out of order."""
    return number * 7 % 23


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with text files of all kinds."""
    folder = tmp_path_factory.mktemp("resume")
    (folder / "whole.txt").write_text("".join(f"{line}\n" for line in LINES))
    (folder / "windows.txt").write_bytes("\r\n".join(LINES).encode())
    (folder / "empty.txt").write_text("")
    (folder / "marked.txt").write_text("".join(f"{line}\n" for line in LINES), "utf-8-sig")
    return folder


SOURCES: dict[str, Callable[[Path], Source]] = {
    "files": lambda folder: files(folder / "whole.txt"),
    "windows": lambda folder: files(folder / "windows.txt", timestamp=time_of, out_of_order="5ms"),
    "marked": lambda folder: files(folder / "marked.txt", timestamp=time_of, encoding="utf-8-sig"),
    "empty": lambda folder: files(folder / "empty.txt"),
    "follow": lambda folder: files(folder / "whole.txt", timestamp=time_of, follow=True),
    "collection": lambda _: collection(LINES, timestamp=time_of, partitions=3),
    "messages": lambda _: collection(
        [Message(line, time_of(line)) for line in LINES], out_of_order="9ms"
    ),
    "generator": lambda _: generate(
        lambda part: count(100 * part), timestamp=time_of_number, limit=50, partitions=3
    ),
    "ended": lambda _: generate(lambda: range(30), timestamp=time_of_number),
}


def read(reader: SourceReader, sizes: list[int]) -> list[Any]:
    """Return what some reads give, and what the reader says after each."""
    found: list[Any] = []
    for size in sizes:
        if reader.finished:
            break
        batch = reader.read_batch(size)
        records = [] if batch is None else list(batch.messages())
        found.append((records, reader.watermark_ms, reader.finished, reader.idle, reader.progress))
    return found


def is_end(step: Any) -> bool:
    """Whether a read gave nothing and said that it had finished."""
    return not step[0] and bool(step[2])


@settings(max_examples=40)
@given(
    before=st.lists(st.integers(1, 20), max_size=6),
    after=st.lists(st.integers(1, 20), min_size=1, max_size=12),
    part=st.integers(0, 2),
)
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_source_gives_what_follows(
    folder: Path, name: str, before: list[int], after: list[int], part: int
) -> None:
    """Property: same records, times, watermarks and progress, cut wherever; also from bytes.

    A reader that stood at the end without knowing it may need one more read to find out, as the
    first one may.
    """
    source = SOURCES[name](folder)
    partitions = source.partitions()
    partition = partitions[part % len(partitions)]
    reader = source.open(partition, None)
    read(reader, before)
    was_finished = reader.finished

    state = decode_state(encode_state(name, reader.snapshot()))
    again = SOURCES[name](folder).open(partition, state)
    assert again.watermark_ms == reader.watermark_ms
    expected, found = read(reader, after), read(again, after)

    assert source.replayable
    if was_finished:
        assert [step for step in found if not is_end(step)] == []
    elif name in {"files", "windows", "marked", "follow"}:  # Progress is by blocks.
        assert records_of(found) == records_of(expected)
        assert watermarks_of(found) == watermarks_of(expected)
    else:
        assert found == expected
    reader.close()
    again.close()


def records_of(steps: list[Any]) -> list[Message]:
    """Return all records of some reads."""
    return [record for step in steps for record in step[0]]


def watermarks_of(steps: list[Any]) -> list[tuple[int, int]]:
    """Return how many records there were at each watermark."""
    total, found = 0, []
    for records, watermark_ms, *_ in steps:
        total += len(records)
        found.append((total, watermark_ms))
    return found
