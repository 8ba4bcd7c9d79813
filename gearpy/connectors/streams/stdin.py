"""Lines of standard input."""

import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from gearpy.clocks import wall_ms
from gearpy.connectors.files.lines import Decoder
from gearpy.connectors.files.stamps import StampedSource, Stamps, in_zone, stamps_of
from gearpy.connectors.streams.live_lines import LineBuffer, LiveLineReader
from gearpy.connectors.waker import call_when_readable
from gearpy.core.base.times import Duration, EventTime, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.task.api.interfaces import Source

_READ_BYTES: Final = 1 << 16
_PARTITION: Final = "stdin"


def stdin(
    *,
    timestamp: Callable[[str], EventTime] | None = None,
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    encoding: str = "utf-8",
    errors: str = "replace",
) -> Source[str]:
    r"""Read the lines of standard input, to its end.

    It cannot be read again: after a failure what was read since the newest epoch is lost, so the
    guarantee is at most once. It is that of the process in which the task runs, so this is for
    applications that run embedded.

    Args:
        timestamp: gives the event time of a line; without it a line has the time at which it came.
        zone: name of the time zone of datetimes of ``timestamp`` that tell none, such as
            "Europe/Berlin".
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
        timestamp=in_zone("stdin", timestamp, zone),
        bound_ms=duration_ms(out_of_order),
        encoding=encoding,
        errors=errors,
    )


class StdinSource(StampedSource[Any]):
    """Standard input; see `stdin`."""

    bounded = True
    of_program = True

    def __init__(
        self,
        *,
        timestamp: Callable[[str], EventTime] | None,
        bound_ms: int,
        encoding: str,
        errors: str,
        file: int | None = None,
    ) -> None:
        self._timestamp = timestamp
        self._bound_ms = bound_ms
        self.is_by_arrival = timestamp is None
        self._text = (encoding, errors)
        self._file = file

    @property
    def description(self) -> str:
        return "stdin"

    def partitions(self) -> Sequence[str]:
        return [_PARTITION]

    def open(self, partition: str, resume: Any | None) -> "StdinReader":
        stamps = stamps_of(
            "stdin(timestamp)", self._timestamp, bound_ms=self._bound_ms, now_ms=wall_ms
        )
        file = sys.stdin.fileno() if self._file is None else self._file
        return StdinReader(file, stamps, LineBuffer(*self._text))


class StdinReader(LiveLineReader):
    """Reads lines from a pipe, a terminal or a file, as far as they are there."""

    def __init__(self, file: int, stamps: Stamps, buffer: LineBuffer) -> None:
        super().__init__(stamps, buffer)
        self._file = file

    def call_when_ready(self, wake: Callable[[], object]) -> bool:
        return call_when_readable(self._file, wake)

    def _fill(self) -> None:
        poll = select.poll()
        poll.register(self._file, select.POLLIN)
        if not poll.poll(0):
            return
        data = os.read(self._file, _READ_BYTES)
        if data:
            self._feed(data)
        else:
            self._end()
