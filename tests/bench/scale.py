"""How many messages a cluster sends in steady work, by its size.

Counted by real roles and tasks of a simulated cluster, in virtual time; or by a real run on some
processes. In both, half of the tasks read, each the same number of records per second, and send
them by key to the other half. `predicted` is the model of `docs/scale.md`.
"""

import ctypes
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import gearpy as gp
from gearpy.clocks import monotonic_ms
from gearpy.messages.data import DataMessage, LinkMessage
from gearpy.messages.peer import Letter
from gearpy.transport.letters.peers import LetterPeers
from gearpy.transport.links.tcp import TcpTransport
from gearpy.wire.codec import decode_control
from tests.world.cluster import ClusterSimulation
from tests.world.network import WorldTransport

RATE: Final = 10  #: Records per second of a task that reads.
_PROMISES_S_MAX: Final = 50  # Of a link, where its task has few.
_LINKS_AT_A_TIME: Final = 16  # With twice as many a link is told half as often.
_WIDTH_MAX: Final = 1000  # Of a step; more tasks are several pairs of steps.
_CLOCKS_S: Final = 10  # Reports of an executor per second.
_METRICS_S: Final = 1
_STATUS_S: Final = 10  # Of an app master.
_EPOCH_LETTERS: Final = 4  # To and from each executor.
#: CPU time of a message between processes, of both ends, with its share of their turns; and of the
#: clock of a task at the app master, which reads and files it.
_MESSAGE_S: Final = 70e-6
_CLOCK_S: Final = 6e-6
_SIZES: Final = (
    *((10, 1), (10, 2), (40, 4), (100, 10), (200, 50)),
    *((400, 100), (1_000, 100), (1_000, 250), (2_000, 1_000), (10_000, 1_000)),
)
#: To compare the model with: small enough to be simulated in seconds, and to run here.
SIMULATED: Final = ((8, 2), (16, 4), (32, 8))
REAL: Final = ((8, 1), (8, 2), (16, 4))
_WARM_UP_MS: Final = 4_000
_MEASURED_MS: Final = 4_000
KINDS: Final = (
    *("records", "promises", "questions", "answers", "probes"),
    *("clocks", "metrics", "status", "epochs"),
)
#: Defaults of the configuration, where simulations have quicker ones.
_SETTINGS: Final = {
    "checkpoint.interval-ms": "1000",
    "streaming.ack-once-every-message-count": "2000",
    "streaming.max-pending-message-count-per-connection": "20000",
    "streaming.batch-max-records": "1000",
}


def predicted(*, tasks: int, executors: int, rate: float = RATE) -> dict[str, float]:
    """Return messages per second between processes, by kind, as the model has them.

    Args:
        rate: records per second of a task that reads.
    """
    shuffles = -(-tasks // 2 // _WIDTH_MAX)
    half, away = tasks / 2 / shuffles, 1 - 1 / executors
    links = shuffles * half * half * away  # From one process to another.
    records = tasks / 2 * rate * away
    # A record makes its task promise more, to each link; an epoch is told to each, too.
    often = _PROMISES_S_MAX / -(-half // _LINKS_AT_A_TIME)
    promises = links * (min(rate, often) + 1)
    return {
        "records": records,
        "promises": promises,
        "questions": records + promises,  # A link that is quiet again asks for an answer.
        "answers": records + promises,
        "probes": tasks / 2 * min(half, _LINKS_AT_A_TIME) * away,
        "clocks": _CLOCKS_S * executors,
        "metrics": _METRICS_S * executors,
        "status": _STATUS_S,
        "epochs": _EPOCH_LETTERS * executors,
    }


class Size(NamedTuple):
    """What a cluster of one size is busy with, beside records; cores are of this machine."""

    tasks: int
    executors: int
    links_a_task: float
    messages_s: float  #: Between tasks of different processes.
    cores_of_links: float  #: Of all executors together.
    promise_every_ms: float
    letters_s: float  #: To and from the app master.
    core_of_clocks: float  #: Of the app master.


def sizes() -> Iterator[Size]:
    """Yield what the model says of clusters whose links all have news, an epoch each second."""
    for tasks, executors in _SIZES:
        found = predicted(tasks=tasks, executors=executors, rate=_PROMISES_S_MAX)
        messages = sum(found[kind] for kind in KINDS[1:5])
        half = min(tasks / 2, _WIDTH_MAX)
        yield Size(
            tasks,
            executors,
            half,
            messages,
            messages * _MESSAGE_S,
            1000 / _PROMISES_S_MAX * -(-half // _LINKS_AT_A_TIME),
            sum(found[kind] for kind in KINDS[5:]),
            tasks * _CLOCKS_S * _CLOCK_S,
        )


# -- what is counted -----------------------------------------------------------------------------


def simulated(*, tasks: int, executors: int) -> dict[str, float]:
    """Return messages per second between processes of a simulated cluster, by kind."""
    cluster = ClusterSimulation(7, workers=1, slots=tasks + 1, settings=_SETTINGS, idle_poll_ms=10)
    world = cluster.world
    world._readings_per_ms = 1 << 20  # noqa: SLF001 - time is to pass with messages alone
    counts, carry, told = Counter[str](), WorldTransport._carry, cluster.network.on_letter  # noqa: SLF001

    def on_letter(letter: Letter) -> None:
        told(letter)
        counts[_letter_kind(letter.body)] += not letter.answers

    def counted(transport: WorldTransport, address: str, message: LinkMessage) -> None:
        counts[_link_kind(message)] += 1
        carry(transport, address, message)

    cluster.network.on_letter = on_letter
    WorldTransport._carry = counted  # type: ignore[assignment,method-assign]  # noqa: SLF001
    try:
        cluster.submit(lambda: _program(tasks, lambda: world.now_ms), executors=executors)
        world.run(lambda: False, within_ms=_WARM_UP_MS)
        before = counts.copy()
        world.run(lambda: False, within_ms=_MEASURED_MS)
    finally:
        WorldTransport._carry = carry  # type: ignore[method-assign]  # noqa: SLF001
    return {kind: (counts[kind] - before[kind]) * 1000 / _MEASURED_MS for kind in KINDS}


def real(*, tasks: int, executors: int) -> dict[str, float]:
    """Return messages per second between processes of this machine, by kind."""
    shared: Any = multiprocessing.Array(ctypes.c_longlong, len(KINDS))
    send_to, send = TcpTransport._send_to, LetterPeers.send  # noqa: SLF001

    def add(kind: str) -> None:
        if kind in KINDS:
            with shared.get_lock():
                shared[KINDS.index(kind)] += 1

    def counted(transport: TcpTransport, address: str, messages: list[LinkMessage]) -> None:
        for message in messages:
            add(_link_kind(message))
        send_to(transport, address, messages)

    def lettered(peers: LetterPeers, node: str, **letter: Any) -> bool:
        if not letter.get("answers"):
            add(_letter_kind(letter["body"]))
        return send(peers, node, **letter)

    TcpTransport._send_to, LetterPeers.send = counted, lettered  # type: ignore[assignment,method-assign]  # noqa: SLF001
    try:
        with (
            TemporaryDirectory(prefix="gearpy-scale-") as folder,
            gp.start(_program(tasks, monotonic_ms), processes=executors, checkpoint=folder) as run,
        ):
            time.sleep(_WARM_UP_MS / 1000)
            before = list(shared)
            time.sleep(_MEASURED_MS / 1000)
            found = [
                (now - then) * 1000 / _MEASURED_MS
                for now, then in zip(list(shared), before, strict=True)
            ]
            run.kill()
    finally:
        TcpTransport._send_to, LetterPeers.send = send_to, send  # type: ignore[method-assign]  # noqa: SLF001
    return dict(zip(KINDS, found, strict=True))


def _link_kind(message: LinkMessage) -> str:
    if isinstance(message, DataMessage):
        return "records" if message.batch else "promises"
    return {"AckRequest": "questions", "Ack": "answers"}.get(type(message).__name__, "probes")


def _letter_kind(body: bytes) -> str:
    name = type(decode_control(body)).__name__
    kinds = {
        "ReportClocks": "clocks",
        "ReportMetrics": "metrics",
        "ApplicationStatusChanged": "status",
    }
    return kinds.get(name, "epochs" if "Epoch" in name else name)


def _program(tasks: int, now_ms: Callable[[], int]) -> gp.StreamApp:
    app = gp.StreamApp("scale", parallelism=tasks // 2)
    numbers = app.read(_Steady(tasks // 2, now_ms)).key_by(lambda number: number)
    numbers.window(gp.tumbling("1s")).count().write(_Nowhere())
    return app


class _Steady(gp.Source[int]):
    replayable = True
    bounded = False

    def __init__(self, parts: int, now_ms: Callable[[], int]) -> None:
        self._parts = parts
        self._now_ms = now_ms

    def partitions(self) -> Sequence[str]:
        return [f"{part:05}" for part in range(self._parts)]

    def open(self, partition: str, resume: int | None) -> "_Reader":
        return _Reader(int(partition), self._now_ms)


class _Reader(gp.SourceReader[int]):
    """Gives one record at a time, at its rate; tasks that read do not do so all at once."""

    def __init__(self, part: int, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._every_ms = 1000 // RATE
        self._due_ms = now_ms() + part * 7919 % self._every_ms
        self._number = part * 1_000_003

    def read_batch(self, max_records: int) -> gp.Batch[int] | None:
        if self._now_ms() < self._due_ms:
            return None
        self._due_ms += self._every_ms
        self._number += 1
        return gp.Batch([self._number], [self._due_ms])

    def snapshot(self) -> int:
        return 0

    @property
    def watermark_ms(self) -> int:
        return self._due_ms - self._every_ms


class _Nowhere(gp.SimpleSink[Any]):
    def write(self, records: Sequence[Any]) -> None:
        """Forget them."""
