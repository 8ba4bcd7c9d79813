"""Lines that come once, in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.files.stamps import FromRecords
from gearpy.connectors.streams.live_lines import LineBuffer, LiveLineReader
from gearpy.errors import GearpyError


class Pieces(LiveLineReader):
    """Gives pieces one by one: nothing at present for None, the end behind the last."""

    def __init__(self, *pieces: bytes | None) -> None:
        super().__init__(FromRecords("test", int, bound_ms=2), LineBuffer("utf-8", "strict"))
        self.pieces = list(pieces)

    def _fill(self) -> None:
        piece = self.pieces.pop(0) if self.pieces else b""
        if piece:
            self._feed(piece)
        elif piece is not None:
            self._end()


def test_lines_are_given_in_batches_and_counted() -> None:
    """It is idle where nothing has come, and finished when all was given; nobody goes back."""
    reader = Pieces(b"1\n2\n3\n", None, b"4")
    found = []

    while not reader.finished:
        batch = reader.read_batch(2)
        found.append((batch and (batch.values, batch.timestamps), reader.idle))

    assert found == [
        ((["1", "2"], [1, 2]), False),
        ((["3"], [3]), False),
        (None, True),
        (None, True),  # Half a line.
        ((["4"], [4]), False),
    ]
    assert (reader.progress, reader.watermark_ms, reader.out_of_order_ms) == ((4, 0), 2, 2)
    assert reader.snapshot() is None  # type: ignore[func-returns-value]


def test_it_is_not_read_on_after_the_end() -> None:
    """What would come then is left where it is."""
    reader = Pieces(b"1\n2")
    reader.read_batch(9)

    reader.read_batch(9)
    assert reader.finished
    reader.pieces = [b"3\n"]

    assert reader.read_batch(9) is None
    assert reader.pieces == [b"3\n"]


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


def test_bytes_that_are_no_text_are_told_with_their_line() -> None:
    reader = Pieces(b"1\n2\n", b"J\xfcrgen\n")
    reader.read_batch(5)
    with pytest.raises(GearpyError, match=r"line 3 has bytes that are not utf-8 .*encoding="):
        reader.read_batch(5)
