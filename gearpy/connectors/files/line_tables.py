"""Tables out of files of lines: large blocks are cut at the end of a line and parsed by Arrow.

A place is the byte offset of a block and a number of rows in it. A block is a function of the file
and its offset, so all readers that begin at a place find the same rows.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TypedDict

from gearpy.connectors.files.dialects.dialect import Dialect
from gearpy.connectors.files.tables import ARROW_ERRORS, BadRows, FilePiece, Fit, fitting_parts
from gearpy.connectors.locations import DamagedFile, FoundFile

_log = logging.getLogger(__name__)

BLOCK_BYTES: Final = 1 << 21
_LITTLE_BYTES: Final = 1 << 16  #: A block has no more where only some lines are read.
_LINE_BYTES_MAX: Final = 1 << 26


class LineParser(ABC):
    """Makes rows of whole lines."""

    multiline: Dialect | None = None  #: It is given if a line ending may be part of a cell.

    @abstractmethod
    def parse(self, lines: bytes) -> Any:
        """Return a record batch, or a list of rows; a bad line is one of `ARROW_ERRORS`."""

    def cause(self, line: bytes, error: Exception) -> str:
        """Return Arrow's message without its row numbers, which count within a block."""
        text = str(error).split("\n", 1)[0]
        for begin in ("CSV parse error: ", "JSON parse error: "):
            text = text.removeprefix(begin)
        return text.split(": ", 1)[1] if text.startswith("Row #") else text.replace(" in row 0", "")


class LinePlace(TypedDict):
    """The beginning of a block, the number of its rows taken, and of its first line."""

    offset: int
    row: int
    line: int


class LineTables:
    def __init__(
        self,
        file: FoundFile,
        opened: BinaryIO,
        parser: LineParser,
        fit: Fit,
        bad: BadRows,
        *,
        place: LinePlace,
    ) -> None:
        self._file = file
        self._opened = opened
        self._parser = parser
        self._fit = fit
        self._bad = bad
        self._offset = place["offset"]
        self._line = place["line"]
        self._length = 0  # The block has so many bytes.
        self._lines = 0
        self._pieces: list[FilePiece] = []
        self._row = 0  # Rows of the block that were taken.
        if place["row"]:
            rows = place["row"]
            while rows > 0 and (piece := self.take(rows)) is not None:
                rows -= len(piece)
            bad.go_back()  # Those of this block were counted when it was begun.

    def take(self, max_rows: int) -> FilePiece | None:
        while not self._pieces:
            if not self._fill(max_rows):
                return None
        piece = self._pieces[0]
        if len(piece) <= max_rows:
            self._pieces.pop(0)
            taken = piece
        else:
            taken = piece.part(0, max_rows)
            self._pieces[0] = piece.part(max_rows, len(piece) - max_rows)
        self._row += len(taken)
        return taken

    @property
    def place(self) -> LinePlace:
        if self._pieces or not self._length:
            return {"offset": self._offset, "row": self._row, "line": self._line}
        return {"offset": self._offset + self._length, "row": 0, "line": self._line + self._lines}

    @property
    def part_read(self) -> float:
        return min(1.0, self._offset / max(1, self._file.size))

    def step_over(self) -> str:
        block = self._next_block(1)
        self._length, self._lines = len(block), block.count(b"\n")
        text = block.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
        return f"line {self._line}: {text}" if block else ""

    def close(self) -> None:
        self._opened.close()

    def _next_block(self, max_lines: int) -> bytes:
        """Return the block behind the last one; of few lines, where little is to be read."""
        self._offset, self._line = self._offset + self._length, self._line + self._lines
        self._length = self._lines = self._row = 0
        multiline, reads_little = self._parser.multiline, self._fit.reads_little
        size = _LITTLE_BYTES if reads_little else BLOCK_BYTES
        block = block_at(self._opened, self._offset, multiline=multiline, size=size)
        found, end = self._file.size, self._offset + len(block)
        if found and not self._file.is_packed:  # Bytes that were added since are left out.
            if end < found and not block.endswith(b"\n"):
                block = block[: cut_at_line(block, multiline=multiline)]
                if not block:
                    raise ValueError(
                        f"it has {end} bytes, and had {found}: it was cut while it was read"
                    )
            block = block[: found - self._offset]
        return b"".join(lines_of(block, multiline=multiline)[:max_lines]) if reads_little else block

    def _fill(self, max_lines: int) -> bool:
        try:
            block = self._next_block(max_lines)
        except ValueError as error:  # The rest of the file cannot be had.
            self._bad.take(f"from line {self._line} on", error, self._file.name, what="file")
            return False
        if not block:
            return False
        self._length, self._lines = len(block), block.count(b"\n")
        try:
            self._pieces = [self._fit.piece(self._parser.parse(block))]
        except ARROW_ERRORS:
            self._pieces = list(self._without_bad(block))
        self._pieces = [piece for piece in self._pieces if len(piece)]
        return True

    def _without_bad(self, block: bytes) -> Iterator[FilePiece]:
        lines = lines_of(block, multiline=self._parser.multiline)
        numbers, number = [], self._line
        for line in lines:
            numbers.append(number)
            number += line.count(b"\n")

        def on_bad(at: int, error: Exception) -> None:
            text = lines[at].rstrip(b"\r\n").decode("utf-8", "backslashreplace")
            self._bad.take(f"line {numbers[at]}", self._parser.cause(lines[at], error), text)

        def make(some: Sequence[bytes]) -> FilePiece:
            return self._fit.piece(self._parser.parse(b"".join(some)))

        yield from fitting_parts(lines, make, on_bad)


def block_at(
    file: BinaryIO, offset: int, *, multiline: Dialect | None = None, size: int = BLOCK_BYTES
) -> bytes:
    """Return whole lines from a place on, about ``size`` bytes; the last line may lack its end."""
    file.seek(offset)
    data = b""
    while True:
        wanted = max(size, len(data)) if data else size
        try:
            more = file.read(wanted)
            while more and len(more) < wanted and (rest := file.read(wanted - len(more))):
                more += rest
        except DamagedFile as damaged:
            data += damaged.data
            if end := cut_at_line(data, multiline=multiline):
                return data[:end]
            raise
        data += more
        if len(more) < wanted:
            return data  # The end of the file.
        if end := cut_at_line(data, multiline=multiline):
            return data[:end]
        if len(data) > _LINE_BYTES_MAX:
            raise ValueError(
                f"the line at byte {offset} is longer than {_LINE_BYTES_MAX} bytes: is this a file "
                "of text lines?"
            )


def whole_lines(file: FoundFile, is_row: Callable[[bytes], bool]) -> int:
    """Return the bytes of a file up to the end of its last line; one that may still be written to.

    Args:
        is_row: whether a last line without its end is whole all the same.
    """
    with Path(file.name).open("rb") as opened:
        begin, tail = file.size, b""
        while begin and b"\n" not in tail:
            size = min(begin, max(_LITTLE_BYTES, len(tail)))
            begin -= size
            opened.seek(begin)
            tail = opened.read(size) + tail
    rest = tail[tail.rfind(b"\n") + 1 :]
    is_of_returns = len(rest) == file.size and b"\r" in rest  # Which no other line ending has.
    if not rest or is_of_returns or is_row(rest):
        return file.size
    _log.warning("%s ends in the middle of a line, which waits until its end is there", file.name)
    return file.size - len(rest)


def cut_at_line(data: bytes, *, multiline: Dialect | None) -> int:
    return multiline.last_end(data) if multiline else data.rfind(b"\n") + 1


def lines_of(block: bytes, *, multiline: Dialect | None) -> list[bytes]:
    if multiline:
        return multiline.lines(block)
    if b"\r" not in block:
        return block.splitlines(keepends=True)
    *parts, last = block.split(b"\n")
    return [part + b"\n" for part in parts] + ([last] if last else [])
