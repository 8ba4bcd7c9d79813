"""Lines that a server sends over TCP."""

import errno
import logging
import os
import select
import socket
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Protocol

from gearpy.clocks import wall_ms
from gearpy.connectors.files.lines import Decoder
from gearpy.connectors.files.stamps import StampedSource, Stamps, in_zone, stamps_of
from gearpy.connectors.streams.live_lines import LineBuffer, LiveLineReader
from gearpy.connectors.waker import call_when_readable
from gearpy.core.base.pauses import pause_after
from gearpy.core.base.times import Duration, EventTime, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import Source

_LOG: Final = logging.getLogger(__name__)
_READ_BYTES: Final = 1 << 16
_PORT_MAX: Final = 65_535
_CONNECTING: Final = frozenset({errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK})


def tcp_lines(
    host: str,
    port: int,
    *,
    timestamp: Callable[[str], EventTime] | None = None,
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    until_closed: bool = False,
    retry_first: Duration = "100ms",
    retry_most: Duration = "30s",
    connect_timeout: Duration = "10s",
    encoding: str = "utf-8",
    errors: str = "replace",
) -> Source[str]:
    """Connect to a server and read the lines that it sends.

    A server does not send again what it has sent: after a failure, and after the connection was
    lost, lines are missing, so the guarantee is at most once. The end of a line that was cut off is
    not made up: what came of it is dropped; but with ``until_closed``, when the server closes, an
    unfinished last line is given as it is. When the connection ends or cannot be made, it tries
    again, each time after a longer pause, with chance in it. Progress, `gear why` and the log tell
    what it waits for.

    Args:
        host: name or address.
        port: from 1 to 65535.
        timestamp: gives the event time of a line; without it a line has the time at which it came.
        zone: name of the time zone of datetimes of ``timestamp`` that tell none, such as
            "Europe/Berlin".
        out_of_order: how far back in time a later line may be.
        until_closed: the stream ends when the server closes the connection; by default it is made
            again, without end.
        retry_first: the first pause.
        retry_most: the longest one.
        connect_timeout: after so long without an answer it begins anew.
        encoding: of the text; one that writes ASCII as ASCII.
        errors: what to do with bytes that are no text: "strict" fails, "replace", "ignore".

    Raises:
        ConfigError: the port or a pause is none.

    Example:
        >>> import gearpy as gp
        >>> gp.tcp_lines("localhost", 9999).replayable
        False
    """
    if not 0 < port <= _PORT_MAX:
        raise ConfigError(f"tcp_lines: port is {port!r}, must be from 1 to {_PORT_MAX}")
    if not host:
        raise ConfigError("tcp_lines: host is empty, need a name or an address")
    first_ms, most_ms = duration_ms(retry_first), duration_ms(retry_most)
    if not 0 < first_ms <= most_ms:
        raise ConfigError(
            f"tcp_lines: retry_first is {retry_first!r}, must be more than 0 and at most "
            f"retry_most, which is {retry_most!r}"
        )
    Decoder(encoding, errors)  # Refuses what has no lines.
    return TcpSource(
        (host, port),
        timestamp=in_zone("tcp_lines", timestamp, zone),
        bound_ms=duration_ms(out_of_order),
        until_closed=until_closed,
        pauses_ms=(first_ms, most_ms),
        connect_timeout_ms=duration_ms(connect_timeout),
        text=(encoding, errors),
    )


class TcpConnection(Protocol):
    """A connection that is being made, or is made. No call waits."""

    file: int  #: Its descriptor.

    def is_made(self) -> bool: ...

    def read(self) -> bytes | None:
        """Return the bytes that have come; None if there are none yet; empty at the end."""
        ...

    def close(self) -> None: ...


class TcpSource(StampedSource[Any]):
    """Lines of a server; see `tcp_lines`."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        timestamp: Callable[[str], EventTime] | None,
        bound_ms: int,
        until_closed: bool,
        pauses_ms: tuple[int, int],
        connect_timeout_ms: int,
        text: tuple[str, str],
    ) -> None:
        self.bounded = until_closed
        self._address = address
        self._timestamp = timestamp
        self._bound_ms = bound_ms
        self.is_by_arrival = timestamp is None
        self._pauses_ms = pauses_ms
        self._connect_timeout_ms = connect_timeout_ms
        self._text = text

    @property
    def description(self) -> str:
        return f"tcp_lines({self._place})"

    def partitions(self) -> Sequence[str]:
        return [self._place]

    def open(self, partition: str, resume: Any | None) -> "TcpReader":
        stamps = stamps_of(
            "tcp_lines(timestamp)", self._timestamp, bound_ms=self._bound_ms, now_ms=wall_ms
        )
        return TcpReader(
            self._place,
            lambda: _Socket(self._address),
            stamps,
            LineBuffer(*self._text),
            self._pauses_ms,
            until_closed=self.bounded,
            connect_timeout_ms=self._connect_timeout_ms,
            now_ms=wall_ms,
        )

    @property
    def _place(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"


class TcpReader(LiveLineReader):
    """Reads lines, and connects again when the connection is lost."""

    def __init__(
        self,
        place: str,
        connect: Callable[[], TcpConnection],
        stamps: Stamps,
        buffer: LineBuffer,
        pauses_ms: tuple[int, int],
        *,
        until_closed: bool,
        connect_timeout_ms: int,
        now_ms: Callable[[], int],
        rng: Random | None = None,
    ) -> None:
        super().__init__(stamps, buffer)
        self.attempts = 0  #: Connections begun.
        self._attempts_in_vain = 0  # Since a line has last come.
        self._place = place
        self._connect = connect
        self._pauses_ms = pauses_ms
        self._rng = rng or Random()
        self._until_closed = until_closed
        self._connect_timeout_ms = connect_timeout_ms
        self._now_ms = now_ms
        self._connection: TcpConnection | None = None
        self._is_made = False
        self._began_ms = 0
        self._next_ms: int | None = None  # When to try again.

    def call_when_ready(self, wake: Callable[[], object]) -> bool:
        there = self._connection if self._is_made else None
        return there is not None and call_when_readable(there.file, wake)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fill(self) -> None:
        try:
            connection = self._made()
            data = None if connection is None else connection.read()
            if data:
                self._attempts_in_vain = 0
                self._feed(data)
            elif data is not None and self._until_closed:
                self._end()
            elif data is not None:
                self._lose("the server has closed it")
        except OSError as error:
            self._lose(error.strerror or str(error) or type(error).__name__)

    def _made(self) -> TcpConnection | None:
        now_ms = self._now_ms()
        if self._connection is None:
            if self._next_ms is not None and now_ms < self._next_ms:
                return None
            self.attempts += 1
            self._began_ms, self._is_made = now_ms, False
            self._connection = self._connect()
        if not self._is_made:
            self._is_made = self._connection.is_made()
            if self._is_made:
                self.waits_for = ""
            if not self._is_made and now_ms - self._began_ms >= self._connect_timeout_ms:
                raise TimeoutError(f"no answer within {self._connect_timeout_ms} ms")
        return self._connection if self._is_made else None

    def _lose(self, cause: str) -> None:
        self.close()
        self._buffer.clear()
        self._attempts_in_vain += 1
        pause_ms = pause_after(self._attempts_in_vain, *self._pauses_ms, self._rng)
        self._next_ms = self._now_ms() + pause_ms
        self.waits_for = f"tcp_lines: {self._place}: {cause} (try {self._attempts_in_vain})"
        _LOG.warning("no connection to %s, next try in %d ms: %s", self._place, pause_ms, cause)


class _Socket:
    """`TcpConnection` of the operating system. Only the look-up of a name may wait."""

    def __init__(self, address: tuple[str, int]) -> None:
        family, kind, protocol, _, place = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        self._socket = socket.socket(family, kind, protocol)
        self.file = self._socket.fileno()
        self._socket.setblocking(False)
        code = self._socket.connect_ex(place)
        if code and code not in _CONNECTING:
            self._socket.close()
            raise OSError(code, os.strerror(code))

    def is_made(self) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        if not poll.poll(0):
            return False
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        return True

    def read(self) -> bytes | None:
        try:
            return self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return None

    def close(self) -> None:
        self._socket.close()
