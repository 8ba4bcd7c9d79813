"""Two executors without actors, and what came of a fault between them."""

import queue
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import gearpy as gp
from gearpy.clocks import monotonic_ms
from gearpy.core.flow.link import FlowLimits
from gearpy.errors import GearpyError
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.data import LinkMessage
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.interfaces import TaskLimits
from gearpy.task.runtime.outlet import OutputLimits
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.transport.api import LinkHandler, Transport, TransportLimits
from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.security.credentials import Credentials
from tests.eventually import eventually
from tests.transport.build import PATIENCE_S, SECRET
from tests.transport.fault_proxy import FaultProxy, Network

ELSEWHERE: Final = "127.0.0.2"  #: Another address of this machine.
HEARTBEAT_TIMEOUT_MS: Final = 500
WIRE: Final = TransportLimits(
    handshake_timeout_ms=1000,
    close_timeout_ms=50,
    reconnect_base_ms=5,
    reconnect_max_ms=20,
    reconnect_retries=3,
    heartbeat_interval_ms=50,
    heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS,
)
WINDOW: Final = 200  #: Records that may be on their way.
_OUTPUT: Final = OutputLimits(
    flow=FlowLimits(
        window_records=WINDOW,
        window_bytes=1_000_000,
        ack_interval_records=20,
        ack_interval_ms=25,
        quiet_ack_ms=5,
        repeat_ack_ms=50,
    ),
    batch_records=16,
    batch_bytes=100_000,
    watermark_interval_ms=5,
)
_BATCH: Final = 10
_START: Final = TaskId(0, 0)
_END: Final = TaskId(1, 0)


@dataclass
class Flow:
    """An application of two tasks: one counts, the other notes what it gets.

    The first one does not end before it may, so that faults meet traffic.
    """

    pad: int = 0  #: Bytes that each record has beside its number.
    batches_max: int = 100_000
    received: list[int] = field(default_factory=list)
    sent: int = 0
    on_the_way_max: int = 0  #: Records that had been sent and not received, at most.
    may_end: threading.Event = field(default_factory=threading.Event)

    def build(self) -> StreamApplication:
        flow = self

        class Counting(gp.Task):
            def produce(self) -> int:
                if flow.may_end.is_set() or flow.sent >= flow.batches_max * _BATCH:
                    return gp.FINISHED
                for _ in range(_BATCH):
                    value = (flow.sent, b"x" * flow.pad)
                    self.context.output(gp.Message(value, flow.sent))
                    flow.sent += 1
                flow.on_the_way_max = max(flow.on_the_way_max, flow.sent - len(flow.received))
                return 1

        class Noting(gp.Task):
            def on_next(self, message: gp.Message) -> None:
                number, pad = message.value
                assert pad == b"x" * flow.pad, "a damaged record was decoded"
                flow.received.append(number)

        graph = gp.Graph().connect(gp.Processor(Counting), gp.Processor(Noting))
        return gp.StreamApplication("flow", graph)


class Host:
    """One process of an application: a task, its thread and its transport.

    ``news`` has what an executor would report: links that were lost, and the error of the task.
    """

    def __init__(
        self,
        stack: ExitStack,
        app: StreamApplication,
        task: TaskId,
        *,
        shown: Credentials | bytes = SECRET,
        limits: TransportLimits = WIRE,
    ) -> None:
        self.task = task
        self.news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.transport = TcpTransport(
            shown, limits=limits, on_link_lost=lambda _, reason: self.news.put(reason)
        )
        self.transport.start()
        stack.callback(self.transport.stop)
        self.finished = threading.Event()
        self.queued_max = 0
        factory = RunnerFactory(
            application=app,
            output=_OUTPUT,
            limits=TaskLimits(batch_records=16, read_batch_records=16, idle_poll_ms=1),
            turn_ms=2,
            clock_ms=monotonic_ms,
            wall_ms=monotonic_ms,
            rng=random.Random(0),
        )
        self.runner = factory.make(task, SessionId(1))
        self._inbox: queue.SimpleQueue[list[LinkMessage]] = queue.SimpleQueue()
        self.transport.register(task, self._inbox.put)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work)
        stack.callback(self.stop)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE_S)

    def _work(self) -> None:
        try:
            self.runner.open(MIN_MS)
            self._send()
            while not self._stopping.is_set():
                self._turn()
        except GearpyError as error:
            self.news.put(f"{type(error).__name__}: {error}")

    def _turn(self) -> None:
        wake_ms = self.runner.turn()
        self._send()
        if self.runner.clock().clock_ms == MAX_MS:
            self.finished.set()
        wait_ms = 20 if wake_ms is None else min(20, max(0, wake_ms - monotonic_ms()))
        try:
            messages = self._inbox.get(timeout=wait_ms / 1000)
        except queue.Empty:
            return
        for message in messages:
            self.runner.receive(message)
        self.queued_max = max(self.queued_max, self.runner.records_queued)

    def _send(self) -> None:
        self.transport.send(self.runner.outbox)
        self.runner.outbox.clear()


class ProxiedTransport:
    def __init__(self, transport: Transport, network: Network) -> None:
        self._transport = transport
        self._network = network
        self.proxy: FaultProxy | None = None

    @property
    def address(self) -> str:
        return self.proxy.address if self.proxy else ""

    def start(self) -> str:
        """Start transport and proxy; return the address of the latter."""
        self.proxy = self._network.proxy(self._transport.start())
        return self.address

    def stop(self) -> None:
        """Stop the transport; nothing goes through its proxy any more."""
        self._transport.stop()
        self.proxy = None

    def register(self, task: TaskId, handler: LinkHandler) -> None:
        self._transport.register(task, handler)

    def unregister(self, task: TaskId) -> None:
        self._transport.unregister(task)

    def locate(self, routes: Mapping[TaskId, str]) -> None:
        self._transport.locate(routes)

    def send(self, messages: Sequence[LinkMessage]) -> None:
        self._transport.send(messages)


class Pair:
    """Two hosts with a proxy on the way there, which has the records, and one for the acks."""

    def __init__(self, stack: ExitStack, network: Network, flow: Flow, **options: Any) -> None:
        app = flow.build()
        self.flow = flow
        self.first = Host(stack, app, _START, **options)
        self.second = Host(stack, app, _END, **options)
        frames = isinstance(options.get("shown", SECRET), bytes)
        self.data: FaultProxy = network.proxy(self.second.transport.address, frames=frames)
        self.acks: FaultProxy = network.proxy(self.first.transport.address, frames=frames)
        self.first.transport.locate({_END: self.data.address})
        self.second.transport.locate({_START: self.acks.address})

    def start(self) -> None:
        self.first.start()
        self.second.start()

    @property
    def finished(self) -> bool:
        return self.first.finished.is_set() and self.second.finished.is_set()

    def wait_records(self, more: int) -> None:
        wanted = len(self.flow.received) + more
        self.wait(lambda: len(self.flow.received) >= wanted, "records arrive")

    def wait(self, holds: Callable[[], object], what: str, timeout_s: float = PATIENCE_S) -> None:
        eventually(holds, what, within_s=timeout_s)

    def outcome(self, timeout_s: float) -> list[str]:
        """Wait for the end, or for news; return the news."""
        self.wait(lambda: self.finished or self._has_news, "an end, or news of a fault", timeout_s)
        return [host.news.get() for host in (self.first, self.second) if not host.news.empty()]

    @property
    def _has_news(self) -> bool:
        return not (self.first.news.empty() and self.second.news.empty())
