"""Lines of standard input."""

import os
from collections.abc import Iterator

import pytest

from gearpy.connectors.streams.stdin import StdinSource, stdin
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import SourceReader


@pytest.fixture
def pipe() -> Iterator[tuple[SourceReader, int]]:
    out, into = os.pipe()
    source = StdinSource(timestamp=int, bound_ms=2, encoding="utf-8", errors="replace", file=out)
    reader = source.open("stdin", None)
    yield reader, into
    os.close(out)


def values(reader: SourceReader, size: int = 10) -> list[str]:
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


def test_the_source_says_that_it_cannot_be_read_again() -> None:
    source = stdin()

    assert not source.replayable
    assert source.bounded
    assert source.partitions() == ["stdin"]
    assert source.description == "stdin"
    with pytest.raises(ConfigError, match="utf-16"):
        stdin(encoding="utf-16")
