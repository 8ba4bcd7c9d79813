"""Dialects of CSV: what stands between cells and around them, and which lines are none.

Arrow reads files with one character between cells, and quotes or none. For others each block is
first made into such a one, by a few replacements over the whole of it.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]

from gearpy.errors import ConfigError

#: One that is not in a block stands for a separator that Arrow cannot read.
_SEPARATORS: Final = [bytes([code]) for code in (0x1F, 0x1E, 0x1D, 0x1C, *range(1, 9), 0x7F)]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How cells stand in lines.

    Attributes:
        delimiter: between cells, any text.
        quote: around cells that have delimiters in them; None: quotes are characters like others.
        escape: makes the next character an ordinary one; None: nothing does.
        comment: a line that begins with it is none; None: there are no such lines.
        trim: whether spaces and tabs around cells do not count, outside of quotes.
        trailing: whether a delimiter stands behind the last cell, too.
        decimal: the decimal point of numbers.
        multiline: whether a cell between quotes may have line endings in it.

    Raises:
        ConfigError: an option is no text of its kind, or two of them do not go together.
    """

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
        """Return the options for blocks with this separator; see `plain`.

        Args:
            keeps_blank: a line without anything is a row.
        """
        return pa_csv.ParseOptions(
            delimiter=separator,
            quote_char=self.quote or False,
            escape_char=self.escape or False,
            newlines_in_values=self.multiline,
            ignore_empty_lines=not keeps_blank,
        )

    def plain(self, lines: bytes) -> tuple[bytes, str]:
        """Return whole lines as Arrow reads them, without comments, and what separates cells.

        Raises:
            ValueError: every character that could stand for the separator is in them.
        """
        if self._is_plain:
            return lines, self.delimiter
        mark = self._delimiter
        if len(mark) > 1:
            mark = next((each for each in _SEPARATORS if each not in lines), b"")
            if not mark:
                raise ValueError("control characters of all kinds are in it: is this text?")
        if (self.quotes and self.quotes in lines) or (self.escape and self._escape in lines):
            lines = self._tokens.sub(lambda found: self._token(found, mark), lines)
        else:
            for pattern, is_mark in self._patterns:
                lines = pattern.sub((mark if is_mark else b"").replace(b"\\", rb"\\"), lines)
            if len(self._delimiter) > 1 and not self.trim:
                lines = lines.replace(self._delimiter, mark)
        return lines, mark.decode()

    def in_its_words(self, error: pa.ArrowInvalid, separator: str) -> pa.ArrowInvalid:
        return pa.ArrowInvalid(str(error).replace(separator, self.delimiter))

    def cells(self, line: str) -> list[str]:
        """Return the cells of one line.

        Raises:
            csv.Error: it is none.
            ValueError: see `plain`.
        """
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
        return (found.end() for found in self._line_ends.finditer(data) if found[0] == b"\n")

    def last_end(self, data: bytes) -> int:
        """Return the place behind the last line ending that is not in a cell; 0 if there is none.

        What stands before the data is not in a cell.
        """
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

    # -- patterns ------------------------------------------------------------------------------

    @property
    def _is_plain(self) -> bool:
        is_known = len(self._delimiter) == 1 and self.comment is None
        return is_known and not self.trim and not self.trailing

    @cached_property
    def _delimiter(self) -> bytes:
        return self.delimiter.encode()

    @cached_property
    def _escape(self) -> bytes:
        return (self.escape or "").encode()

    @cached_property
    def _space(self) -> bytes:
        spaces = b" \t".replace(self._delimiter, b"") if self.delimiter != " " else b" \t"
        return b"[" + spaces + b"]*" if self.trim else b""

    @cached_property
    def _of_delimiter(self) -> bytes:
        return self._space + re.escape(self._delimiter) + self._space

    @cached_property
    def _of_escaped(self) -> bytes:
        return re.escape(self._escape) + rb"[\s\S]" if self.escape else rb"(?!)"

    @cached_property
    def _of_quoted(self) -> bytes:
        quote, escape = re.escape(self.quotes), re.escape(self._escape)
        inner = b"[^" + quote + escape + (b"" if self.multiline else rb"\n") + b"]"
        return quote + b"(?:" + inner + b"|" + quote * 2 + b"|" + self._of_escaped + b")*+" + quote

    @cached_property
    def _of_comment(self) -> bytes:
        return rb"(?m:^)" + re.escape((self.comment or "").encode()) + rb"[^\n]*\n?"

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[bytes], bool]]:
        """Patterns for lines without quotes, and whether each stands for a separator."""
        patterns = []
        if self.comment is not None:
            patterns.append((self._of_comment, False))
        if self.trim:
            patterns.append(
                (rb"(?m:^)" + self._space + b"|" + self._space + rb"(?=\r?(?:\n|\Z))", False)
            )
        if self.trailing:
            patterns.append((self._of_delimiter + rb"(?=\r?(?:\n|\Z))", False))
        if self.trim:
            patterns.append((self._of_delimiter, True))
        return [(re.compile(pattern), is_mark) for pattern, is_mark in patterns]

    @cached_property
    def _tokens(self) -> re.Pattern[bytes]:
        """The parts of lines with quotes that may have to change; a cell follows its delimiter."""
        cell = b"(" + self._of_quoted + b")?" if self.quote else b"()"
        parts = [b"(?P<same>" + self._of_escaped + b")"]
        if self.comment is not None:
            parts.append(self._of_comment)
        if self.trailing:
            parts.append(self._of_delimiter + rb"(?=\r?(?:\n|\Z))")
        if self.trim:
            parts.append(self._space[:-1] + rb"+(?=\r?(?:\n|\Z))")
        parts.append(rb"(?m:^)" + self._space + cell)
        parts.append(b"(?P<mark>" + self._of_delimiter + b")" + cell)
        return re.compile(b"|".join(parts))

    @staticmethod
    def _token(found: re.Match[bytes], mark: bytes) -> bytes:
        same, at_begin, is_mark, behind = found.groups(b"")
        return same + at_begin + (mark if is_mark else b"") + behind

    @cached_property
    def _line_ends(self) -> re.Pattern[bytes]:
        quote = re.escape(self.quotes)
        parts = [self._of_escaped, self._of_quoted, quote + rb"[\s\S]*", rb"\n"]
        if self.comment is not None:
            parts.insert(0, self._of_comment.removesuffix(rb"\n?"))
        return re.compile(b"|".join(parts))
