"""Lines over TCP, from a real server where it matters."""

import select
import socket
from random import Random

import pytest

from gearpy.connectors.files.stamps import FromRecords
from gearpy.connectors.streams.live_lines import LineBuffer
from gearpy.connectors.streams.tcp import TcpReader, tcp_lines
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import SourceReader


class Clock:
    ms = 0

    def __call__(self) -> int:
        return self.ms


class Scripted:
    file = -1
    """A connection that does what a list says: None, bytes, or an error."""

    def __init__(self, *steps: bytes | OSError | None) -> None:
        self.steps = list(steps)
        self.is_closed = False

    def is_made(self) -> bool:
        step = self.steps.pop(0)
        if isinstance(step, OSError):
            raise step
        return step is not None

    def read(self) -> bytes | None:
        """Say the next step; nothing comes behind the last."""
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, OSError):
            raise step
        return step

    def close(self) -> None:
        self.is_closed = True


class Longest(Random):
    def randint(self, a: int, b: int) -> int:
        return b


def a_reader(clock: Clock, *connections: Scripted, until_closed: bool = False) -> TcpReader:
    waiting = list(connections)
    return TcpReader(
        "host:1",
        lambda: waiting.pop(0),
        FromRecords("test", int, bound_ms=0),
        LineBuffer("utf-8", "replace"),
        (100, 1000),
        until_closed=until_closed,
        connect_timeout_ms=500,
        now_ms=clock,
        rng=Longest(),
    )


def values(reader: SourceReader, size: int = 10) -> list[str]:
    batch = reader.read_batch(size)
    return [] if batch is None else batch.values


def test_it_connects_again_after_longer_and_longer_pauses(caplog: pytest.LogCaptureFixture) -> None:
    """Half a line is dropped with its connection; what works makes the pause short again."""
    clock = Clock()
    refused = Scripted(OSError("refused"))
    working = Scripted(b"", b"1\n2\n", b"half", b"")
    silent = Scripted(None, None)
    last = Scripted(b"", b"3\n")
    reader = a_reader(clock, refused, Scripted(OSError("refused")), working, silent, last)

    assert values(reader) == []
    assert reader.idle
    assert refused.is_closed
    clock.ms = 99
    values(reader)
    assert reader.attempts == 1
    clock.ms = 100
    values(reader)
    assert reader.attempts == 2
    clock.ms = 300  # 200 more.
    assert values(reader) == ["1", "2"]
    assert values(reader) == []  # Half a line.
    assert values(reader) == []  # Closed.
    clock.ms = 400
    assert values(reader) == []  # No answer yet.
    clock.ms = 900
    assert values(reader) == []  # None within the timeout.
    assert silent.is_closed
    clock.ms = 1100
    assert values(reader) == ["3"]
    assert reader.watermark_ms == 3
    assert "next try in 200 ms: no answer within 500 ms" in caplog.text
    reader.close()
    assert last.is_closed


def test_the_stream_may_end_with_the_connection() -> None:
    reader = a_reader(Clock(), Scripted(b"", b"1\n2", b""), until_closed=True)

    assert values(reader) == ["1"]
    assert values(reader) == ["2"]
    assert reader.finished
    assert reader.progress == (2, 0)


def test_from_a_real_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = tcp_lines("127.0.0.1", port, until_closed=True)
        reader = source.open(source.partitions()[0], None)
        found = values(reader)
        client, _ = server.accept()
        with client:
            client.sendall(b"to be\nor not\n")
        for _ in range(100):
            if reader.finished:
                break
            found += values(reader)
            select.select([], [], [], 0.01)
        reader.close()

    assert found == ["to be", "or not"]
    assert reader.finished
    assert not source.replayable


def test_a_reader_tells_what_it_waits_for_until_it_is_connected() -> None:
    clock = Clock()
    refused = [Scripted(OSError(111, "Connection refused")) for _ in range(2)]
    reader = a_reader(clock, *refused, Scripted(b"", b"1\n"))

    told = []
    for clock.ms in (0, 1000, 2000):
        values(reader)
        told.append(reader.waits_for)

    assert told == [
        "tcp_lines: host:1: Connection refused (try 1)",
        "tcp_lines: host:1: Connection refused (try 2)",
        "",
    ]


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    source = tcp_lines("127.0.0.1", port)
    reader = source.open(source.partitions()[0], None)

    assert values(reader) == []
    assert reader.idle
    assert not source.bounded
    reader.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"port": 0}, "port is 0"),
        ({"host": ""}, "host is empty"),
        ({"retry_first": "0s"}, "retry_first is '0s'"),
        ({"retry_first": "2s", "retry_most": "1s"}, "at most retry_most"),
        ({"encoding": "utf-16"}, "utf-16"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tcp_lines(**({"host": "localhost", "port": 1} | arguments))  # type: ignore[arg-type]
