"""What tests of transports share: an inbox to wait at, and messages to send."""

import queue
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gearpy.errors import ConnectionLost
from gearpy.ids import SessionId, TaskId
from gearpy.messages.client import ListWorkers, WorkerList
from gearpy.messages.data import AckRequest, Batch, DataMessage, LinkMessage
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.credentials import Shown
from gearpy.wire.connection.keys import KeyRing
from tests.eventually import DEADLINE_S, eventually

SECRET = b"s" * 32
KEYS = KeyRing.of_cluster(SECRET)
PATIENCE_S = float(DEADLINE_S)  #: How long a test waits for what must happen; then it has failed.


class Folders(NamedTuple):
    cluster: Path
    other_cluster: Path
    expired: Path
    expiring: Path
    elsewhere: Path  # Of the same authority, for another host; without the loopback names.


class Inbox:
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[LinkMessage]] = queue.SimpleQueue()

    def __call__(self, messages: list[LinkMessage]) -> None:
        self._queue.put(messages)

    def take(self, wanted: int) -> list[LinkMessage]:
        taken: list[LinkMessage] = []
        deadline_s = time.monotonic() + PATIENCE_S
        while len(taken) < wanted:
            try:
                taken += self._queue.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"got {len(taken)} of {wanted} messages") from None
        return taken

    def take_seqs(self, wanted: int) -> list[int]:
        """Wait for this many ack requests or data messages; return their numbers."""
        messages = self.take(wanted)
        return [m.seq for m in messages if isinstance(m, AckRequest | DataMessage)]

    @property
    def empty(self) -> bool:
        return self._queue.empty()


class Losses:
    """An `on_link_lost` callback that a test can wait at."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()

    def __call__(self, address: str, reason: str) -> None:
        self._queue.put((address, reason))

    def take(self) -> tuple[str, str]:
        """Wait for a loss; return address and reason."""
        return self._queue.get(timeout=PATIENCE_S)


def ask_for_workers(address: str, shown: Shown) -> WorkerList:
    """Ask a server that answers; again where a handshake took longer than it may."""

    def answered() -> object:
        with suppress(ConnectionLost), ControlClient(address, shown) as client:
            return client.ask(ListWorkers(), PATIENCE_S)
        return None

    answer: WorkerList = eventually(answered, "the server answers")
    return answer


def request(seq: int, target: TaskId, source: TaskId = TaskId(0, 0)) -> AckRequest:
    return AckRequest(SessionId(1), source, target, seq)


def data(seq: int, target: TaskId, values: list[Any]) -> DataMessage:
    batch = Batch(values, list(range(len(values))))
    return DataMessage(SessionId(1), TaskId(0, 0), target, seq, batch)
