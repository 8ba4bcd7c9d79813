"""Lines of standard input."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.stdin import LineBuffer, StdinSource, stdin
from gearpy.errors import ConfigError, GearpyError
from gearpy.task.api import SourceReader


@pytest.fixture
def pipe() -> Iterator[tuple[SourceReader, int]]:
    """Return a reader and the end of a pipe that it reads."""
    out, into = os.pipe()
    source = StdinSource(timestamp=int, bound_ms=2, encoding="utf-8", errors="replace", file=out)
    reader = source.open("stdin", None)
    yield reader, into
    os.close(out)


def values(reader: SourceReader, size: int = 10) -> list[str]:
    """Return what is there now."""
    batch = reader.read_batch(size)
    return [] if batch is None else batch.values


def test_lines_are_given_as_they_come(pipe: tuple[SourceReader, int]) -> None:
    """Whole ones; the last needs no end. In between it is idle."""
    reader, into = pipe

    assert values(reader) == []
    assert reader.progress == (0, 0)
    os.write(into, b"5\n7")
    assert values(reader) == ["5"]
    os.write(into, b"0\r\n80\n90")
    assert values(reader, 1) == ["70"]
    assert values(reader) == ["80"]
    assert (reader.watermark_ms, reader.out_of_order_ms) == (78, 2)
    os.close(into)
    assert values(reader) == ["90"]
    assert reader.finished
    assert reader.progress == (4, 0)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[str], data: st.DataObject) -> None:
    """Property: also in the middle of a character."""
    text = "".join(f"{line}\n" for line in lines).encode()
    buffer, found, start = LineBuffer("utf-8", "strict"), list[str](), 0
    while start < len(text):
        stop = data.draw(st.integers(start + 1, len(text)))
        found += buffer.feed(text[start:stop])
        start = stop

    assert found + buffer.end() == lines


def test_a_line_that_never_ends_is_refused() -> None:
    """Who sends what is no text must not fill the memory; lines that end may be as many."""
    buffer = LineBuffer("utf-8", "replace", line_chars_max=10)

    assert buffer.feed(b"12345\n" * 9 + b"123456") == ["12345"] * 9
    assert buffer.feed(b"789") == []
    with pytest.raises(GearpyError, match="more than 10 characters, and no end"):
        buffer.feed(b"01")
    buffer.clear()

    assert buffer.feed(b"1234567890") == []


def test_the_source_says_that_it_cannot_be_read_again() -> None:
    """So that the guarantee is told."""
    source = stdin()

    assert not source.replayable
    assert source.bounded
    assert source.partitions() == ["stdin"]
    assert source.description == "stdin"
    with pytest.raises(ConfigError, match="utf-16"):
        stdin(encoding="utf-16")
