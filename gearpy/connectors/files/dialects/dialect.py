"""Dialects of CSV: what stands between cells and around them, and which lines are none.

Arrow reads files with one character between cells, and quotes or none. For others each block is
first made into such a one, by a few replacements over the whole of it.
"""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, BinaryIO, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]

from gearpy.connectors.locations import DamagedFile
from gearpy.errors import ConfigError

#: One that is not in a block stands for a separator that Arrow cannot read.
_SEPARATORS: Final = [bytes([code]) for code in (0x1F, 0x1E, 0x1D, 0x1C, *range(1, 9), 0x7F)]


class _Patterns(NamedTuple):
    """Patterns of a dialect.

    Attributes:
        plain: for lines without quotes, and whether each stands for a separator.
        tokens: parts of lines with quotes that may have to change; a cell follows its delimiter.
    """

    plain: list[tuple[re.Pattern[bytes], bool]]
    tokens: re.Pattern[bytes]
    line_ends: re.Pattern[bytes]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How cells stand in lines; `gearpy.csv` tells what the options mean."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    comment: str | None = None
    trim: bool = False
    trailing: bool = False
    decimal: str = "."
    multiline: bool = False

    def __post_init__(self) -> None:
        delimiter: Any = self.delimiter
        if not isinstance(delimiter, str) or not delimiter or set(delimiter) & {*"\r\n\0"}:
            raise ConfigError(
                f"csv: delimiter is {delimiter!r}, must be text in one line, like '||'"
            )
        marks: dict[str, Any] = {
            "quote": self.quote,
            "escape": self.escape,
            "decimal": self.decimal,
        }
        for name, mark in marks.items():
            if mark is None and name != "decimal":
                continue
            if (
                not isinstance(mark, str)
                or len(mark) != 1
                or not mark.isascii()
                or mark in "\r\n\0"
            ):
                none = "" if name == "decimal" else ", or None"
                raise ConfigError(f"csv: {name} is {mark!r}, must be one ASCII character{none}")
            if mark in delimiter:
                raise ConfigError(
                    f"csv: {name} is {mark!r}, which is in the delimiter {delimiter!r}"
                )
        for name in ("trim", "trailing", "multiline"):
            if type(getattr(self, name)) is not bool:
                raise ConfigError(f"csv: {name} is {getattr(self, name)!r}, must be True or False")
        comment: Any = self.comment
        if comment is not None and (not isinstance(comment, str) or not comment.strip()):
            raise ConfigError(f"csv: comment is {comment!r}, must be text such as '#', or None")
        if self.quote is not None and self.quote in {self.escape, self.decimal}:
            raise ConfigError(f"csv: {self.quote!r} is the quote, and something else: give another")
        if self.multiline and self.quote is None:
            raise ConfigError("csv: multiline=True needs a quote: line endings stand between two")

    @property
    def note(self) -> str:
        return "" if self._is_plain else "its dialect is translated for Arrow, which takes longer"

    @cached_property
    def quotes(self) -> bytes:
        return (self.quote or "").encode()

    def parse_options(self, separator: str, *, keeps_blank: bool) -> pa_csv.ParseOptions:
        """Return the options for blocks with this separator; an empty line may be a row."""
        return pa_csv.ParseOptions(
            delimiter=separator,
            quote_char=self.quote or False,
            escape_char=self.escape or False,
            newlines_in_values=self.multiline,
            ignore_empty_lines=not keeps_blank,
        )

    def plain(self, lines: bytes) -> tuple[bytes, str]:
        """Return whole lines as Arrow reads them, without comments, and what separates cells."""
        if self._is_plain:
            return lines, self.delimiter
        delimiter = mark = self.delimiter.encode()
        if len(mark) > 1:
            mark = next((each for each in _SEPARATORS if each not in lines), b"")
            if not mark:
                raise ValueError("control characters of all kinds are in it: is this text?")

        def token(found: re.Match[bytes]) -> bytes:
            same, at_begin, is_mark, behind = found.groups(b"")
            return same + at_begin + (mark if is_mark else b"") + behind

        if any(each and each.encode() in lines for each in (self.quote, self.escape)):
            lines = self._patterns.tokens.sub(token, lines)
        else:
            for pattern, is_mark in self._patterns.plain:
                lines = pattern.sub((mark if is_mark else b"").replace(b"\\", rb"\\"), lines)
            if len(delimiter) > 1 and not self.trim:
                lines = lines.replace(delimiter, mark)
        return lines, mark.decode()

    def in_its_words(self, error: pa.ArrowInvalid, separator: str) -> pa.ArrowInvalid:
        return pa.ArrowInvalid(str(error).replace(separator, self.delimiter))

    def cells(self, line: str) -> list[str]:
        text, separator = self.plain(line.encode())
        reader = csv.reader(
            [text.decode()],
            delimiter=separator,
            quotechar=self.quote or '"',
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape,
            strict=True,
        )
        return next(reader, [])

    def is_comment(self, line: bytes) -> bool:
        return self.comment is not None and line.startswith(self.comment.encode())

    def ends(self, data: bytes) -> Iterable[int]:
        return (
            found.end() for found in self._patterns.line_ends.finditer(data) if found[0] == b"\n"
        )

    def last_end(self, data: bytes) -> int:
        """Return the place behind the last line ending that is not in a cell; 0 if none is."""
        if self.comment is not None or self.escape is not None:
            return max(self.ends(data), default=0)
        quote, end = self.quotes, data.rfind(b"\n") + 1
        quotes = data.count(quote, 0, end)
        while end and quotes % 2:  # That line ending stands between quotes.
            earlier = data.rfind(quote, 0, end)
            before = data.rfind(b"\n", 0, earlier) + 1
            quotes -= data.count(quote, before, end)
            end = before
        return end

    def lines(self, data: bytes) -> list[bytes]:
        places = [0, *self.ends(data)]
        found = [data[at:end] for at, end in pairwise(places)]
        return found + ([data[places[-1] :]] if places[-1] < len(data) else [])

    @property
    def _is_plain(self) -> bool:
        is_known = len(self.delimiter.encode()) == 1 and self.comment is None
        return is_known and not self.trim and not self.trailing

    @cached_property
    def _patterns(self) -> _Patterns:
        begin, end = rb"(?m:^)", rb"(?=\r?(?:\n|\Z))"
        delimiter, quote, escape = map(
            re.escape, (self.delimiter.encode(), self.quotes, (self.escape or "").encode())
        )
        spaces = b" \t" if self.delimiter == " " else b" \t".replace(self.delimiter.encode(), b"")
        space = b"[" + spaces + b"]*" if self.trim else b""
        between = space + delimiter + space
        escaped = escape + rb"[\s\S]" if self.escape else rb"(?!)"
        inner = b"[^" + quote + escape + (b"" if self.multiline else rb"\n") + b"]"
        quoted = quote + b"(?:" + inner + b"|" + quote * 2 + b"|" + escaped + b")*+" + quote
        comment = begin + re.escape((self.comment or "").encode()) + rb"[^\n]*"

        plain: list[tuple[bytes, bool]] = []
        cell = b"(" + quoted + b")?" if self.quote else b"()"
        tokens = [b"(?P<same>" + escaped + b")"]
        line_ends = [escaped, quoted, quote + rb"[\s\S]*", rb"\n"]
        if self.comment is not None:
            plain.append((comment + rb"\n?", False))
            tokens.append(comment + rb"\n?")
            line_ends.insert(0, comment)
        if self.trim:
            plain.append((begin + space + b"|" + space + end, False))
        if self.trailing:
            plain.append((between + end, False))
            tokens.append(between + end)
        if self.trim:
            plain.append((between, True))
            tokens.append(space[:-1] + b"+" + end)
        tokens.append(begin + space + cell)
        tokens.append(b"(?P<mark>" + between + b")" + cell)
        return _Patterns(
            [(re.compile(pattern), is_mark) for pattern, is_mark in plain],
            re.compile(b"|".join(tokens)),
            re.compile(b"|".join(line_ends)),
        )


_HEAD_BYTES: Final = 1 << 16


class _OldLines(io.BufferedIOBase):
    """Such a file with other line endings, of the same length."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        return self._opened.seek(place, whence)

    def tell(self) -> int:
        return self._opened.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            data = self._opened.read(-1 if size is None else size)
        except DamagedFile as damaged:
            damaged.data = damaged.data.replace(b"\r", b"\n")
            raise
        return data.replace(b"\r", b"\n")

    def close(self) -> None:
        self._opened.close()
        super().close()


def with_lines(opened: BinaryIO) -> BinaryIO:
    """Return a file with line endings; it looks whether the file has carriage returns only."""
    try:
        head = opened.read(_HEAD_BYTES)
        opened.seek(0)
    except DamagedFile as damaged:  # Its reader tells when it comes to the damage.
        head = damaged.data
    is_old = b"\r" in head.removesuffix(b"\r") and b"\n" not in head
    return _OldLines(opened) if is_old else opened  # type: ignore[return-value] # It has what is asked.
