"""Lines that come once, in pieces: a reader cannot go back to them.

What a connection or a pipe gives ends anywhere, also in the middle of a character.
"""

import codecs
from abc import abstractmethod
from typing import Final

from gearpy.connectors.files.stamps import StampedReader, Stamps
from gearpy.errors import GearpyError
from gearpy.task.api.interfaces import Batch

_LINE_CHARS_MAX: Final = 1 << 26
_SHOWN_BYTES: Final = 40


class LineBuffer:
    """Makes lines of bytes that come in pieces."""

    def __init__(
        self, encoding: str, errors: str, *, line_chars_max: int = _LINE_CHARS_MAX
    ) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._line_chars_max = line_chars_max
        self._tail: list[str] = []
        self._tail_chars = 0
        self.count = 0  #: Lines that have ended.

    def feed(self, data: bytes) -> list[str]:
        *ended, tail = self._text(data).split("\n")
        if not ended:
            self._tail.append(tail)
            self._tail_chars += len(tail)
            if self._tail_chars > self._line_chars_max:
                raise GearpyError(
                    f"line {self.count + 1} has more than {self._line_chars_max} characters, and "
                    "no end: are these lines of text?"
                )
            return []
        self.count += len(ended)
        ended[0] = "".join([*self._tail, ended[0]])
        self._tail, self._tail_chars = [tail], len(tail)
        return [line.removesuffix("\r") for line in ended]

    def end(self) -> list[str]:
        line = "".join([*self._tail, self._text(b"", final=True)])
        self.clear()
        return [line.removesuffix("\r")] if line else []

    def _text(self, data: bytes, *, final: bool = False) -> str:
        try:
            return self._decoder.decode(data, final=final)
        except UnicodeDecodeError as error:
            shown = error.object[max(0, error.start - _SHOWN_BYTES) :][: 2 * _SHOWN_BYTES]
            raise GearpyError(
                f"line {self.count + 1} has bytes that are not {error.encoding} ({error.reason}), "
                f"in {shown!r}: give the encoding= of the text, or errors='replace'"
            ) from error

    def clear(self) -> None:
        self._tail, self._tail_chars = [], 0
        self._decoder.reset()


class LiveLineReader(StampedReader):
    """Gives lines as they come; a subclass knows where from."""

    def __init__(self, stamps: Stamps, buffer: LineBuffer) -> None:
        super().__init__(stamps)
        self._buffer = buffer
        self._lines: list[str] = []
        self._at_end = False
        self._count = 0

    @abstractmethod
    def _fill(self) -> None:
        """Call `_feed` with what has come, or `_end`; do not wait.

        Called when all lines were given, and not after the end.
        """

    def read_batch(self, max_records: int) -> Batch | None:
        if not self._lines and not self._at_end:
            self._fill()
        lines, self._lines = self._lines[:max_records], self._lines[max_records:]
        self._count += len(lines)
        self.finished = self._at_end and not self._lines
        self.idle = not lines and not self.finished
        return Batch(*self._stamps.stamped(lines)) if lines else None

    def snapshot(self) -> None:
        """Return no place: a reader cannot go back."""

    @property
    def progress(self) -> tuple[int, int]:
        return self._count, 0

    def _feed(self, data: bytes) -> None:
        self._lines = self._buffer.feed(data)

    def _end(self) -> None:
        self._at_end, self._lines = True, self._buffer.end()
