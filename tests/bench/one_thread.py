"""An application's tasks in one thread: real actors, runners and limits, on a clock that is told.

Turns come in the order in which they were asked for, those of sources last. So nothing of a run
depends on threads, time or chance, and a run up to a moment of rest has an exact amount of work.
"""

import random
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from gearpy.actor.api import Dispatcher, DispatcherChoice, Ref
from gearpy.actor.dispatcher import Runnable
from gearpy.actor.local_system import LocalActorSystem
from gearpy.actor.mailbox import Reply
from gearpy.cluster.host.task_limits import output_limits, task_limits
from gearpy.config.load import from_overrides
from gearpy.errors import ApplicationFailed
from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.app import FailureKind
from gearpy.messages.data import LinkMessage
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.snapshots import TaskSnapshot
from gearpy.task.runtime.actor import (
    ClockBoard,
    CommitTask,
    CutEpoch,
    StartTask,
    StopTask,
    TaskActor,
)
from gearpy.task.runtime.metering import MeterSettings
from gearpy.task.runtime.recording import Recording
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.testing.world import World, WorldTimer
from gearpy.transport.links.memory import MemoryHub, MemoryTransport
from gearpy.transport.links.routes import RoutedTransport
from gearpy.transport.loop.virtual_loop import VirtualCoroutines
from gearpy.wire.connection.frames import FrameDecoder, FrameLimits
from gearpy.wire.link_codec import LinkCodec

_TURN_MESSAGES: Final = 100
_NS_PER_MS: Final = 1_000_000
#: Of a task's turn; the clock does not move in one.
_TURN_MS: Final = 2
#: Reports of clocks come with time, not with batches.
_REPORT_INTERVAL_MS: Final = 3_600_000


class _Turns:
    """A dispatcher whose turns wait until they are taken; those of sources behind all others."""

    def __init__(self) -> None:
        self.queue: deque[Runnable] = deque()
        self.start = lambda: None
        self.schedule = self.queue.append


class _System(LocalActorSystem):
    def __init__(self, world: World) -> None:
        super().__init__(node="one-thread", stop_timeout_ms=1000)
        self.world = world
        self.turns: dict[bool, _Turns] = {False: _Turns(), True: _Turns()}

    @property
    def timers(self) -> "_Timers":
        return _Timers(self.world)

    def dispatcher_of(self, name: str, choice: DispatcherChoice) -> Dispatcher:
        return self.turns[name.startswith("source")]

    def now_ms(self) -> int:
        return self.world.now_ms

    def wall_ms(self) -> int:
        return self.world.now_ms

    def wait(self, reply: Reply, timeout_s: float) -> bool:
        raise NotImplementedError("nobody asks a task")

    def shutdown(self, timeout_s: float = 10.0) -> bool:
        self.stop_all()
        return True


class _Timers:
    def __init__(self, world: World) -> None:
        self.call_later = world.later

    def call_every(self, interval_ms: int, call: Callable[[], object], /) -> WorldTimer:
        raise NotImplementedError("tasks have no such timers")


class _CodedTransport(RoutedTransport):
    """A transport to another process that is this one: messages go through frames, as bytes."""

    address = "coded"

    def __init__(self) -> None:
        super().__init__()
        self._codec = LinkCodec()
        self._frames = FrameDecoder(FrameLimits())
        self.others: dict[TaskId, Callable[[list[LinkMessage]], None]] = {}

    def register(self, task: TaskId, handler: Callable[[list[LinkMessage]], None]) -> None:
        self.others[task] = handler
        self.locate({task: "another"})

    def _send_to(self, address: str, messages: list[LinkMessage]) -> None:
        for message in messages:
            data = b"".join(self._codec.encode(message))
            for frame in self._frames.feed(data):
                decoded = self._codec.decode(frame)
                self.others[decoded.target]([decoded])


class OneThread:
    """Runs the tasks of an application as far as it is told.

    Args:
        batch_records: records of a batch, of rows, at most; also of a read.
    """

    def __init__(
        self, application: StreamApplication, *, batch_records: int, is_coded: bool = False
    ) -> None:
        records = str(batch_records)
        config = from_overrides(
            {
                "streaming.batch-max-records": records,
                "streaming.columnar-batch-records": records,
                "streaming.ack-once-every-message-count": str(2 * batch_records),
                "source.read-batch-size": records,
            }
        )
        self.world = World(0, readings_per_ms=1 << 60)
        self._system = _System(self.world)
        self.snapshots: dict[TaskId, list[TaskSnapshot]] = {}
        self.committed: dict[TaskId, list[int]] = {}
        self._failed: list[str] = []
        transport: Any = _CodedTransport() if is_coded else MemoryTransport(MemoryHub(), "one")
        output = output_limits(config)
        factory = RunnerFactory(
            application=application,
            # As no time passes, targets would never say that they are fast.
            output=replace(output, flow=replace(output.flow, least_records=0)),
            limits=task_limits(config),
            turn_ms=_TURN_MS,
            clock_ms=self._system.now_ms,
            wall_ms=self._system.now_ms,
            rng=random.Random(0),
            coroutines=VirtualCoroutines(self._system.now_ms, self.world.later, self.world.rng),
            metering=MeterSettings(clock_ns=self._now_ns, wall_ns=self._now_ns),
            run="app1",
        )
        board, self._refs = ClockBoard(), dict[TaskId, Ref[Any]]()
        for number, task in enumerate(application.dag.tasks()):
            runner = factory.make(task, SessionId(number + 1))

            def make(runner: Any = runner) -> TaskActor:
                return TaskActor(
                    runner,
                    transport,
                    self,
                    board,
                    clock_ms=self._system.now_ms,
                    report_interval_ms=_REPORT_INTERVAL_MS,
                )

            kind = "task" if runner.info.upstream else "source"
            ref = self._refs[task] = self._system.spawn(make, f"{kind}{task}")
            transport.register(task, _telling(ref))
        self._sources = [ref for ref in self._refs.values() if ref.path.name.startswith("source")]
        self._tell_all(StartTask(MIN_MS))

    def rest(self, *, within_ms: int = 0) -> None:
        """Go on until nothing is left to do; with a time, also with what is due in it."""
        until_ms = self.world.now_ms + within_ms
        tasks, sources = self._system.turns[False].queue, self._system.turns[True].queue
        while True:
            while tasks or sources:
                (tasks or sources).popleft().take_turn(_TURN_MESSAGES, inf)
            next_ms = self.world.next_ms
            if self._failed or len(self._system.lives()) < len(self._refs):
                raise ApplicationFailed("one thread", "; ".join(self._failed) or "an actor died")
            if next_ms is None or next_ms > until_ms:
                self.world.now_ms = until_ms
                return
            self.world.step()

    def end_epoch(self, epoch: int, *, is_last: bool = False) -> None:
        for source in self._sources:
            source.tell(CutEpoch(epoch, is_last=is_last))
        self.rest()
        assert all(len(each) == epoch for each in self.snapshots.values()), "all have ended it"
        self._tell_all(CommitTask(epoch))
        self.rest()

    def stop(self) -> None:
        self._tell_all(StopTask(completed=True))
        self.rest()
        self._system.stop_all()

    def _tell_all(self, message: Any) -> None:
        for ref in self._refs.values():
            ref.tell(message)

    def _now_ns(self) -> int:
        return self.world.now_ms * _NS_PER_MS

    # -- TaskEvents ------------------------------------------------------------------------

    def on_task_started(self, task_id: TaskId) -> None:
        self.snapshots[task_id], self.committed[task_id] = [], []

    def on_task_failed(self, task_id: TaskId, error: ErrorCard, kind: FailureKind) -> None:
        self._failed.append(f"task {task_id}: {error.cause}")

    def on_task_stopped(self, task_id: TaskId, error: ErrorCard | None) -> None:
        assert error is None, error

    def on_task_snapshot(self, task_id: TaskId, snapshot: TaskSnapshot) -> None:
        self.snapshots[task_id].append(snapshot)

    def on_task_committed(self, task_id: TaskId, epoch: int) -> None:
        self.committed[task_id].append(epoch)

    def on_record_quarantined(
        self, task_id: TaskId, value: bytes, event_time_ms: int, card: ErrorCard
    ) -> None:
        self._failed.append(f"task {task_id}: {card.cause}")

    def on_record_injected(self, task_id: TaskId, number: int, epoch: int) -> None:
        raise NotImplementedError("nothing is injected")

    def on_task_recorded(self, task_id: TaskId, recording: Recording) -> None:
        raise NotImplementedError("nothing is recorded")


def _telling(ref: Ref[Any]) -> Callable[[list[LinkMessage]], None]:
    def tell(messages: list[LinkMessage]) -> None:
        for message in messages:
            ref.tell(message)

    return tell
