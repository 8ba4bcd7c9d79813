"""What a row of a table costs on its way to the task of its key: CPU time, in process and by TCP.

A table of a text of a key, two numbers and a short text is partitioned by the key among eight
tasks, and taken by each as columns. Over TCP they are in another process, whose time counts, too.
"""

import multiprocessing
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.base.fields import FieldGetter
from gearpy.core.flow.partition import GroupByPartitioner
from gearpy.ids import SessionId, TaskId
from gearpy.messages.data import Batch, DataMessage, LinkMessage
from gearpy.messages.table import Table, Times
from gearpy.transport.links.memory import MemoryHub, MemoryTransport
from gearpy.transport.links.routes import RoutedTransport
from gearpy.transport.links.tcp import TcpTransport
from gearpy.wire.link_codec import LinkCodec

_TASKS: Final = [TaskId(1, index) for index in range(8)]
#: Rows of a table, and how many different keys.
_CASES: Final = ((65_536, 1_000), (65_536, 65_536), (1_024, 1_000), (64, 1_000))
_ROWS: Final = 1 << 20  # In each turn,
_MESSAGES: Final = 256  # and in no more messages.
_PATIENCE_S: Final = 60


def measure_hops(turns: int) -> Iterator[tuple[str, int, int, float]]:
    """Yield the way, the rows of a table, different keys, and ns of CPU of a row: the least."""
    for name, way in (("in process", _in_process), ("TCP", _over_tcp)):
        with way() as (sender, taken):
            for rows, keys in _CASES:
                turn = partial(
                    _turn, sender, taken, _batch(rows, keys), min(_MESSAGES, _ROWS // rows)
                )
                yield name, rows, keys, min(turn() for _ in range(turns))


def _batch(rows: int, keys: int) -> Batch:
    table = pa.record_batch(
        {
            "key": [f"key {row * 7919 % keys}" for row in range(rows)],
            "price": [row / 7 for row in range(rows)],
            "count": list(range(rows)),
            "text": [f"text {row % 977}" for row in range(rows)],
        }
    )
    return Batch(Table(table), Times.of(range(rows)))


#: Waits until so many rows have come, and returns the CPU seconds of other processes since then.
_Taken = Callable[[int], float]


@contextmanager
def _in_process() -> Iterator[tuple[RoutedTransport, _Taken]]:
    hub = MemoryHub()
    sender, receiver = MemoryTransport(hub, "sender"), MemoryTransport(hub, "receiver")
    receiver.start()
    sender.locate(dict.fromkeys(_TASKS, receiver.address))
    rows = _Rows(receiver)

    def taken(count: int) -> float:
        rows.wait(count)
        return 0

    yield sender, taken


@contextmanager
def _over_tcp() -> Iterator[tuple[RoutedTransport, _Taken]]:
    secret = secrets.token_bytes(32)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_receive, args=(theirs, secret))
    process.start()
    sender = TcpTransport(secret)
    sender.start()
    sender.locate(dict.fromkeys(_TASKS, ours.recv()))

    def taken(count: int) -> float:
        ours.send(count)
        seconds: float = ours.recv()
        return seconds

    try:
        yield sender, taken
    finally:
        ours.send(0)
        process.join()
        sender.stop()


def _receive(pipe: Connection, secret: bytes) -> None:
    receiver = TcpTransport(secret)
    pipe.send(receiver.start())
    rows, before_s = _Rows(receiver), time.process_time()
    while count := pipe.recv():
        rows.wait(count)
        pipe.send((now_s := time.process_time()) - before_s)
        before_s = now_s
    receiver.stop()


class _Rows:
    """The tasks behind the hop: they decode what comes, and count its rows."""

    def __init__(self, transport: RoutedTransport) -> None:
        self._codec = LinkCodec()
        self._changed = threading.Condition()
        self._rows = 0
        for task in _TASKS:
            transport.register(task, self._take)

    def _take(self, messages: list[LinkMessage]) -> None:
        for message in messages:
            assert type(message) is DataMessage
            rows = len(self._codec.decode_batch(message.batch).values)
            with self._changed:
                self._rows += rows
                self._changed.notify()

    def wait(self, rows: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._rows >= rows, _PATIENCE_S), "rows were lost"
            self._rows -= rows


def _turn(sender: RoutedTransport, taken: _Taken, batch: Batch, messages: int) -> float:
    partitioner = GroupByPartitioner(FieldGetter("key"))
    session, source = SessionId(1), TaskId(0, 0)
    begin_s = time.process_time()
    for seq in range(1, messages + 1):
        parts = partitioner.partition(
            batch.values, batch.timestamps, parallelism=len(_TASKS), sender=0
        )
        sender.send(
            [
                DataMessage(session, source, _TASKS[index], seq, Batch(values, times))
                for index, values, times in parts
            ]
        )
    others_s = taken(messages * len(batch))
    return (time.process_time() - begin_s + others_s) / messages / len(batch) * 1e9
