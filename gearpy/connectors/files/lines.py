r"""Cuts lines out of large blocks of bytes and knows the place of each in the file.

A line ends with ``\n``; one ``\r`` before it belongs to the ending. What stands behind the last
``\n`` is a line, too, unless it is empty or more may be written to it.
"""

import codecs
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final

from gearpy.errors import ConfigError, OperatorError

if TYPE_CHECKING:
    from gearpy.connectors.files.tables import BadRows

# Many files may wait for their time with one block in memory each, hence the small first one.
_BLOCK_BYTES: Final = (1 << 16, 1 << 18)
_LINE_BYTES_MAX: Final = 1 << 26
_SHOWN_BYTES: Final = 500
_ASCII: Final = bytes(range(128))


class Decoder:
    """Turns blocks of whole lines into text.

    Args:
        encoding: one in which the bytes of ASCII stand for ASCII, else lines cannot be found.
        errors: what to do with bytes that are no text; as for `open`.
    """

    def __init__(self, encoding: str, errors: str) -> None:
        try:
            name = codecs.lookup(encoding).name
            # A codec with escapes would warn of what follows it.
            is_fit = b"\\n".decode(name) == "\\n" and _ASCII.decode(name) == _ASCII.decode("ascii")
        except LookupError:
            raise ConfigError(f"encoding {encoding!r} is unknown to Python") from None
        except UnicodeError:
            is_fit = False
        if not is_fit:
            raise ConfigError(
                f"encoding {encoding!r} does not write ASCII as ASCII, so that lines cannot be "
                "found: convert the file to utf-8"
            )
        self._encoding = name.removesuffix("-sig")
        self._mark = codecs.BOM_UTF8 if name == "utf-8-sig" else b""
        self._errors = errors
        try:
            codecs.lookup_error(errors)
        except LookupError:
            raise ConfigError(
                f"errors={errors!r} is unknown to Python: use 'strict', 'replace' or 'ignore'"
            ) from None

    def decode(self, block: bytes, *, name: str, offset: int) -> str:
        # Only at the very beginning of a file is U+FEFF a mark and not a character.
        if offset == 0 and self._mark and block.startswith(self._mark):
            block, offset = block[len(self._mark) :], len(self._mark)
        try:
            return block.decode(self._encoding, self._errors)
        except UnicodeDecodeError as error:
            first = block.rfind(b"\n", 0, error.start) + 1
            line = block[first:].split(b"\n", 1)[0]
            raise OperatorError(
                operator="files",
                cause=f"{name}: byte {offset + error.start} is not {self._encoding} "
                f"({error.reason}): give the file's encoding=, or errors='replace', or leave such "
                'lines out with on_bad="skip", "quarantine" or "side"',
                record=repr(line[:_SHOWN_BYTES]),
            ) from error


class LineBlocks:
    """The lines of one file, block by block.

    Args:
        read_at: returns bytes from an offset on, fewer than asked for only at the end.
        offset: where a line starts, to begin with.
        keep_tail: keep an unfinished last line until its end has been written.
        block_bytes: size of the first blocks read; the last one stays.
        bad: takes lines that are no text; without it they are refused.

    Invariant: `offset` is where the next line starts that was not taken.
    """

    def __init__(
        self,
        read_at: Callable[[int, int], bytes],
        decoder: Decoder,
        *,
        name: str,
        offset: int = 0,
        keep_tail: bool = False,
        block_bytes: tuple[int, ...] = _BLOCK_BYTES,
        line_bytes_max: int = _LINE_BYTES_MAX,
        bad: "BadRows | None" = None,
    ) -> None:
        self._bad = bad
        self._read_at = read_at
        self._decoder = decoder
        self._name = name
        self._keep_tail = keep_tail
        self._block_bytes = block_bytes
        self._line_bytes_max = line_bytes_max
        self.restart(offset)

    def restart(self, offset: int = 0) -> None:
        #: Among the lines, not taken yet.
        self._bad_at: dict[int, tuple[str, str, bytes]] = {}
        self._sizes: Iterator[int] = chain(self._block_bytes, repeat(self._block_bytes[-1]))
        self._start = offset  # The block starts here in the file.
        self._block = b""  # Whole lines, some of them taken.
        self._tail: list[bytes] = []  # It follows the block, and has no end yet.
        self._read_to = offset
        self._lines: list[str] = []
        self._taken = 0
        self._at_end = False

    def take(self, max_records: int) -> list[str]:
        while True:
            if self._taken == len(self._lines):
                self._fill()
            first, lines = self._taken, self._lines[self._taken : self._taken + max_records]
            self._taken += len(lines)
            if not self._bad_at:
                return lines
            good = []
            for at, line in enumerate(lines, first):
                if (found := self._bad_at.pop(at, None)) is None:
                    good.append(line)
                elif self._bad is not None:
                    self._bad.take(*found)
            if good or not lines:
                return good

    @property
    def exhausted(self) -> bool:
        return self._at_end and self._taken == len(self._lines)

    @property
    def offset(self) -> int:
        """Byte offset of the next line; counts lines, so for snapshots only."""
        if self._taken == len(self._lines):
            return self._start + len(self._block)
        return self._start + len(self._block) - len(self._block.split(b"\n", self._taken)[-1])

    @property
    def position(self) -> int:
        """About the same as `offset`, at once."""
        return self._start + len(self._block) * self._taken // max(1, len(self._lines))

    @property
    def read_to(self) -> int:
        """Byte offset of the end of the bytes that were read, an unfinished line included."""
        return self._read_to

    def _fill(self) -> None:
        start = self._start + len(self._block)
        block = self._next_block()
        try:
            text = self._decoder.decode(block, name=self._name, offset=start) if block else ""
            if "\r" in text:
                text = text.replace("\r\n", "\n")
            self._lines = text.split("\n")
        except OperatorError:
            if self._bad is None:
                raise
            self._lines, at_byte = [], start
            pieces = block.split(b"\n")
            for at, line in enumerate(pieces):
                text = ""
                try:
                    text = self._decoder.decode(line, name=self._name, offset=at_byte)
                except OperatorError as error:
                    self._bad_at[at] = f"from byte {at_byte} on", error.cause, line
                is_last = at == len(pieces) - 1
                self._lines.append(text if is_last else text.removesuffix("\r"))
                at_byte += len(line) + 1
        if not self._lines[-1] and len(self._lines) - 1 not in self._bad_at:
            self._lines.pop()  # Nothing stands behind the last line ending.
        self._start, self._block, self._taken = start, block, 0

    def _next_block(self) -> bytes:
        while True:
            size = next(self._sizes)
            data = self._read_at(self._read_to, size)
            self._read_to += len(data)
            self._at_end = len(data) < size
            whole = len(data) if self._at_end and not self._keep_tail else data.rfind(b"\n") + 1
            if whole or (self._at_end and not self._keep_tail):
                block = b"".join([*self._tail, data[:whole]])
                self._tail = [data[whole:]] if whole < len(data) else []
                return block
            self._tail.append(data)
            at, most = self._start + len(self._block), self._line_bytes_max
            if self._read_to - at > most:
                raise ConfigError(
                    f"{self._name}: the line at byte {at} is longer than {most} bytes: is this a "
                    "file of text lines?"
                )
            if self._at_end:
                return b""
