"""Lines of standard input."""

import codecs
import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from gearpy.connectors.lines import Decoder
from gearpy.connectors.stamps import FromClock, FromRecords, Stamps, wall_clock_ms
from gearpy.core.times import Duration, EventTime, duration_ms
from gearpy.errors import GearpyError
from gearpy.task.api import Batch, Source, SourceReader

__all__ = ["LineBuffer", "StdinReader", "StdinSource", "stdin"]

_READ_BYTES: Final = 1 << 16
_PARTITION: Final = "stdin"
_LINE_CHARS_MAX: Final = 1 << 26


def stdin(
    *,
    timestamp: Callable[[str], EventTime] | None = None,
    out_of_order: Duration = "0s",
    encoding: str = "utf-8",
    errors: str = "replace",
) -> Source:
    r"""Read the lines of standard input, to its end.

    It cannot be read again: after a failure what was read since the newest epoch is lost, so the
    guarantee is at most once. It is that of the process in which the task runs, so this is for
    applications that run embedded.

    Args:
        timestamp: gives the event time of a line; without it a line has the time at which it came.
        out_of_order: how far back in time a later line may be.
        encoding: of the text; one that writes ASCII as ASCII.
        errors: what to do with bytes that are no text: "strict" fails, "replace", "ignore".

    Example:
        >>> import gearpy as gp
        >>> gp.stdin().replayable
        False
    """
    Decoder(encoding, errors)  # Refuses what has no lines.
    return StdinSource(
        timestamp=timestamp,
        bound_ms=duration_ms(out_of_order),
        encoding=encoding,
        errors=errors,
    )


class LineBuffer:
    """Makes lines of bytes that come in pieces.

    Args:
        encoding: of the text.
        errors: what to do with bytes that are no text.
        line_chars_max: longer ones are refused, as what has no line endings is no text of lines.
    """

    def __init__(
        self, encoding: str, errors: str, *, line_chars_max: int = _LINE_CHARS_MAX
    ) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._line_chars_max = line_chars_max
        self._tail: list[str] = []
        self._tail_chars = 0

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that end in the data.

        Raises:
            GearpyError: a line does not end.
        """
        *ended, tail = self._decoder.decode(data).split("\n")
        if not ended:
            self._tail.append(tail)
            self._tail_chars += len(tail)
            if self._tail_chars > self._line_chars_max:
                raise GearpyError(
                    f"a line has more than {self._line_chars_max} characters, and no end: are "
                    "these lines of text?"
                )
            return []
        ended[0] = "".join([*self._tail, ended[0]])
        self._tail, self._tail_chars = [tail], len(tail)
        return [line.removesuffix("\r") for line in ended]

    def end(self) -> list[str]:
        """Return the last line, if it has no end, and forget it."""
        line = "".join([*self._tail, self._decoder.decode(b"", final=True)])
        self.clear()
        return [line.removesuffix("\r")] if line else []

    def clear(self) -> None:
        """Forget what has no end."""
        self._tail, self._tail_chars = [], 0
        self._decoder.reset()


class StdinSource(Source):
    """Standard input; see `stdin`."""

    bounded = True

    def __init__(
        self,
        *,
        timestamp: Callable[[str], EventTime] | None,
        bound_ms: int,
        encoding: str,
        errors: str,
        file: int | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._timestamp = timestamp
        self._bound_ms = bound_ms
        self._text = (encoding, errors)
        self._file = file
        self._now_ms = now_ms

    @property
    def description(self) -> str:
        """The name of the function."""
        return "stdin"

    def partitions(self) -> Sequence[str]:
        """There is one."""
        return [_PARTITION]

    def open(self, partition: str, resume: Any | None) -> "StdinReader":
        """Return a reader of what has not been read."""
        stamps: Stamps = FromClock(self._now_ms)
        if self._timestamp is not None:
            stamps = FromRecords("stdin(timestamp)", self._timestamp, bound_ms=self._bound_ms)
        file = sys.stdin.fileno() if self._file is None else self._file
        return StdinReader(file, stamps, LineBuffer(*self._text))


class StdinReader(SourceReader):
    """Reads lines from a pipe, a terminal or a file, as far as they are there.

    Args:
        file: number of the open file.
        stamps: gives the event times.
        buffer: makes lines.
    """

    def __init__(self, file: int, stamps: Stamps, buffer: LineBuffer) -> None:
        self._file = file
        self._stamps = stamps
        self._buffer = buffer
        self._lines: list[str] = []
        self._at_end = False
        self._count = 0
        self.out_of_order_ms = stamps.out_of_order_ms

    def read_batch(self, max_records: int) -> Batch | None:
        """Return lines that are there."""
        if not self._lines and not self._at_end:
            self._fill()
        lines, self._lines = self._lines[:max_records], self._lines[max_records:]
        self._count += len(lines)
        self.finished = self._at_end and not self._lines
        self.idle = not lines and not self.finished
        return Batch(lines, self._stamps.of(lines)) if lines else None

    def snapshot(self) -> None:
        """Nobody can go back."""

    @property
    def watermark_ms(self) -> int:
        """As far as the lines' times allow."""
        return self._stamps.watermark_ms

    @property
    def progress(self) -> tuple[int, int]:
        """Lines read of nobody knows how many."""
        return self._count, 0

    def _fill(self) -> None:
        poll = select.poll()
        poll.register(self._file, select.POLLIN)
        if not poll.poll(0):
            return
        data = os.read(self._file, _READ_BYTES)
        self._at_end = not data
        self._lines = self._buffer.feed(data) if data else self._buffer.end()
