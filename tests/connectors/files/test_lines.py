r"""Lines out of blocks: what a line is, and where it stands in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.files.lines import Decoder, LineBlocks
from gearpy.errors import ConfigError, OperatorError

# Few characters, so that line endings, line separators of Unicode and long characters meet often.
texts = st.text(alphabet="ab\r\n\n\x0b\x85\u2028é€😀", max_size=60)
encodings = st.sampled_from(["utf-8", "utf-8-sig", "gb18030"])
sizes = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)


def lines_of(text: str) -> list[str]:
    pieces = text.split("\n")
    ended, last = pieces[:-1], pieces[-1]
    return [line.removesuffix("\r") for line in ended] + [last] * bool(last)


def a_file(
    data: bytes,
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    offset: int = 0,
    block_bytes: tuple[int, ...] = (4,),
    line_bytes_max: int = 1000,
) -> LineBlocks:
    return LineBlocks(
        lambda start, size: data[start : start + size],
        Decoder(encoding, errors),
        name="a.txt",
        offset=offset,
        block_bytes=block_bytes,
        line_bytes_max=line_bytes_max,
    )


def rest_of(blocks: LineBlocks, max_records: int = 3) -> list[str]:
    lines: list[str] = []
    while not blocks.exhausted:
        lines += blocks.take(max_records)
    return lines


@given(text=texts, encoding=encodings, block_bytes=sizes, max_records=st.integers(1, 5))
def test_lines_are_those_of_the_text_whatever_the_blocks(
    text: str, encoding: str, block_bytes: tuple[int, ...], max_records: int
) -> None:
    """Property: neither block size, batch size nor long characters at an edge change a line."""
    blocks = a_file(text.encode(encoding), encoding=encoding, block_bytes=block_bytes)

    assert rest_of(blocks, max_records) == lines_of(text)


@given(text=texts, block_bytes=sizes, batches=st.lists(st.integers(1, 4), max_size=20))
def test_an_offset_is_where_the_next_line_starts(
    text: str, block_bytes: tuple[int, ...], batches: list[int]
) -> None:
    """Property: who begins at the offset of any moment reads exactly what is left."""
    data = text.encode()
    blocks = a_file(data, block_bytes=block_bytes)
    read: list[str] = []

    for size in batches:
        read += blocks.take(size)
        again = a_file(data, offset=blocks.offset, block_bytes=(7,))

        assert read + rest_of(again) == lines_of(text)


@given(
    data=st.binary(max_size=40).map(lambda data: data.replace(b"\0", b"\n")),
    errors=st.sampled_from(["replace", "ignore", "surrogateescape"]),
)
def test_any_bytes_can_be_read_leniently(data: bytes, errors: str) -> None:
    """Property: broken bytes break their own line only, and no offset."""
    blocks = a_file(data, errors=errors)
    read: list[str] = []

    while not blocks.exhausted:
        assert blocks.offset in (0, len(data)) or data[blocks.offset - 1] == ord("\n")
        read += blocks.take(1)

    assert read == lines_of(data.decode(errors=errors))


def test_bytes_that_are_no_text_are_named() -> None:
    blocks = a_file(b"fine\nna\xefve\n", block_bytes=(100,))

    with pytest.raises(OperatorError) as failed:
        blocks.take(10)

    assert failed.value.record == repr(b"na\xefve")
    assert "a.txt: byte 7 is not utf-8" in failed.value.cause
    assert "encoding=" in failed.value.cause


def test_the_byte_is_right_behind_a_byte_order_mark() -> None:
    blocks = a_file(b"\xef\xbb\xbfa\xff\n", encoding="utf-8-sig")

    with pytest.raises(OperatorError, match="byte 4 is not utf-8"):
        blocks.take(10)


def test_a_line_over_the_limit_is_refused() -> None:
    """A disk image would fill the memory, one line without end."""
    blocks = a_file(b"ok\n" + b"x" * 50, line_bytes_max=20)

    assert blocks.take(1) == ["ok"]
    with pytest.raises(ConfigError, match="line at byte 3 is longer than 20 bytes"):
        blocks.take(1)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-7", "cp037", "unicode_escape"])
def test_encodings_that_hide_line_endings_are_refused(encoding: str) -> None:
    """The byte of a line ending could stand for something else there, and lines would be cut."""
    with pytest.raises(ConfigError, match="convert the file to utf-8"):
        Decoder(encoding, "strict")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "shift_jis", "gbk", "UTF8", "euc_kr"])
def test_encodings_that_keep_ascii_are_taken(encoding: str) -> None:
    blocks = a_file("a\nb".encode(encoding), encoding=encoding)

    assert rest_of(blocks) == ["a", "b"]


@pytest.mark.parametrize(("encoding", "errors"), [("utf-9", "strict"), ("utf-8", "shrug")])
def test_a_misspelt_encoding_or_error_handler_is_refused_at_once(
    encoding: str, errors: str
) -> None:
    with pytest.raises(ConfigError, match="unknown to Python"):
        Decoder(encoding, errors)
