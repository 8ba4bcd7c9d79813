"""Drivers of one task, or one application: records go in by hand, results come out.

Everything happens in virtual time, within the call that causes it; nothing waits, and no thread
is started.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, cast

from gearpy.core.base.times import Duration, EventTime, duration_ms, event_time_ms
from gearpy.core.flow.link import FlowLimits
from gearpy.core.flow.partition import CoLocationPartitioner
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.data import (
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    InitialAckRequest,
    LinkMessage,
    Message,
    Unmanaged,
)
from gearpy.task.api.application import Buildable
from gearpy.task.api.interfaces import Task, TaskContext, TaskLimits
from gearpy.task.api.keyed import open_on_heap
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.runtime.info import TaskInfo
from gearpy.task.runtime.outlet import OutputEdge, OutputLimits
from gearpy.task.runtime.runner import TaskRunner
from gearpy.testing.manual_source import ManualReader, ManualSource
from gearpy.testing.simulation import Simulation
from gearpy.testing.world import World
from gearpy.transport.loop.virtual_loop import VirtualCoroutines

if TYPE_CHECKING:  # As in `messages.type_variables`.
    from typing_extensions import TypeVar

    TaskT = TypeVar("TaskT", bound=Task, default=Any)
else:
    from typing import TypeVar

    TaskT = TypeVar("TaskT", bound=Task)

_LIMITS: Final = OutputLimits(
    flow=FlowLimits(
        window_records=1000,
        window_bytes=100_000_000,
        ack_interval_records=100,
        ack_interval_ms=5,
        quiet_ack_ms=1,
        repeat_ack_ms=1000,
    ),
    batch_records=256,
    batch_bytes=1_000_000,
    watermark_interval_ms=0,
)
_OUTPUTS_MAX: Final = 1_000_000
_SETTLE_MS_MAX: Final = 1000
_SESSION: Final = SessionId(1)


class TaskDriver(Generic[TaskT]):
    """Runs one task by hand.

    Messages that it sends are in ``outputs``, for all targets together.

    Args:
        task: a `Task` class, or a function that makes a task of a `TaskContext`.
        parallelism: the number of tasks in the context.
        task_index: which of them this one is.
        config: the content of `TaskContext.config`.
        is_source: the task has no inputs; its `produce` is called as `advance` lets time pass.
        resume: the result of another driver's `cut`; the task goes on from there.

    Raises:
        OperatorError: from every method here, when the task raises.

    Example:
        >>> import gearpy as gp
        >>> from gearpy.testing import TaskDriver
        >>> class Changes(gp.Task):
        ...     last = None
        ...
        ...     def on_next(self, message):
        ...         if message.value != self.last:
        ...             self.last = message.value
        ...             self.context.output(message)
        >>> driver = TaskDriver(Changes)
        >>> driver.send("red", timestamp=1)
        >>> driver.send("red", timestamp=2)
        >>> driver.send("green", timestamp=3)
        >>> driver.take()
        [Message(value='red', timestamp=1), Message(value='green', timestamp=3)]
    """

    def __init__(
        self,
        task: Callable[[TaskContext], TaskT],
        *,
        parallelism: int = 1,
        task_index: int = 0,
        config: Mapping[str, Any] | None = None,
        is_source: bool = False,
        resume: TaskResume | None = None,
    ) -> None:
        self._world = World(0, start_ms=0)
        self.outputs: list[Message] = []
        self.unmanaged: list[tuple[TaskId, Any]] = []
        self._task_id = TaskId(1, task_index)
        self._upstream = TaskId(0, 0)
        self._downstream = TaskId(2, task_index)
        self._is_source = is_source
        self._sent_seq = 0
        self._epoch = 1
        self._kept = resume
        self._got = 0
        self._runner = TaskRunner(
            TaskInfo(
                task_id=self._task_id,
                session=_SESSION,
                parallelism=parallelism,
                operator=getattr(task, "__name__", type(task).__name__),
                upstream=[] if is_source else [self._upstream],
                edges=[
                    OutputEdge(
                        processor=self._downstream.processor,
                        parallelism=parallelism,
                        partitioner=CoLocationPartitioner(),
                    )
                ],
                app_name="test",
                config=config,
            ),
            task,
            limits=_LIMITS,
            task_limits=TaskLimits(),
            turn_ms=1,
            # With the work of a source time goes on, so that an endless one comes to a pause.
            clock_ms=self._world.read_clock if is_source else lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            open_state=open_on_heap,
            resume=resume,
            coroutines=VirtualCoroutines(lambda: self.now_ms, self._world.later, self._world.rng),
        )
        if not self._is_source:
            opening = InitialAckRequest(_SESSION, self._upstream, self._task_id)
            self._runner.receive(opening)
        self._runner.open(MIN_MS)
        if not self._is_source:
            self._work(self.now_ms)

    def send(self, value: Any, timestamp: EventTime = 0) -> None:
        """Let the task process one message."""
        self.send_all(Message(value, event_time_ms(timestamp)))

    def send_all(self, *messages: Message) -> None:
        """Let the task process some messages, as one batch."""
        self._deliver(Batch.of(*messages), MIN_MS)

    def watermark(self, time: EventTime) -> None:
        """Promise that nothing older will be sent."""
        self._deliver(Batch([], []), event_time_ms(time))

    def end(self) -> None:
        """End the stream: the watermark goes to `MAX_MS`."""
        self._deliver(Batch([], []), MAX_MS)

    def cut(self) -> TaskResume:
        """End an epoch and return the state of the task, to give to another driver."""
        if self._is_source:
            self._runner.cut(self._runner.epoch)
            self._work(self.now_ms)
        else:
            self._epoch += 1
            self._deliver(Batch([], []), MIN_MS)
        (snapshot,) = self._runner.snapshots
        self._runner.snapshots.clear()
        self._kept = snapshot.resume(self._kept)
        return self._kept

    def advance(self, duration: Duration) -> None:
        """Let time pass: timers fire, a source produces."""
        until_ms = self.now_ms + duration_ms(duration)
        wake_ms = self._work(until_ms)
        while wake_ms is not None and max(wake_ms, self.now_ms) <= until_ms:
            self._world.now_ms = max(wake_ms, self.now_ms)
            wake_ms = self._work(until_ms)
        self._world.now_ms = max(self.now_ms, until_ms)

    def take(self) -> list[Message]:
        """Return the messages sent since the last time; ``outputs`` is empty afterwards."""
        taken, self.outputs = self.outputs, []
        return taken

    def stop(self, *, completed: bool = True) -> None:
        """Stop the task; called once, at the end."""
        self._runner.stop(completed=completed)

    @property
    def now_ms(self) -> int:
        """Virtual time; it begins at 0."""
        return self._world.now_ms

    @property
    def task(self) -> TaskT:
        """The task itself, to look at its state."""
        assert self._runner.task is not None
        return cast("TaskT", self._runner.task)

    @property
    def clock(self) -> TaskClock:
        """The report of the task: clock, watermark that it passed on, numbers of records."""
        return self._runner.clock()

    def _deliver(self, batch: Batch, watermark_ms: int) -> None:
        if self._is_source:
            raise ConfigError("the task is a source: it takes nothing, let it produce by advance()")
        self._sent_seq += 1
        self._runner.receive(
            DataMessage(
                session=_SESSION,
                source=self._upstream,
                target=self._task_id,
                seq=self._sent_seq,
                batch=batch,
                watermark_ms=watermark_ms,
                epoch=self._epoch,
            )
        )
        self._work(self.now_ms)

    def _work(self, until_ms: int) -> int | None:
        """Give turns until nothing is left to do now; return when there will be."""
        before = self._got
        while True:
            wake_ms = self._runner.turn()
            messages = list(self._runner.outbox)
            self._runner.outbox.clear()
            for message in messages:
                self._take(message)
            if self._got - before > _OUTPUTS_MAX:
                raise GearpyError(f"the task sends without an end: {_OUTPUTS_MAX} messages so far")
            events = self._world.events
            self._world.pass_until(self.now_ms)
            rests = events == self._world.events and not messages
            if (rests and (wake_ms is None or wake_ms > self.now_ms)) or self.now_ms > until_ms:
                times = (self._world.next_ms, wake_ms)
                return min((each for each in times if each is not None), default=None)

    def _take(self, message: LinkMessage) -> None:
        if isinstance(message, DataMessage):
            assert isinstance(message.batch, Batch)
            self._got += message.counted
            self.outputs += message.batch.messages()
        elif isinstance(message, Unmanaged):
            self.unmanaged.append((message.target, message.value))
        elif isinstance(message, AckRequest):
            self._runner.receive(
                Ack(
                    session=_SESSION,
                    source=message.target,
                    target=self._task_id,
                    seq=message.seq,
                    received=self._got,
                )
            )


class FlowDriver:
    """Runs an application by hand, each call as far as it goes.

    The application reads from `ManualSource`s (with ``parallelism=1``) and writes where the test
    can look, such as ``gp.to_list(results)``. A call may take some ms of virtual time.

    Args:
        app: the application to run.
        seed: decides the order of events at the same time.

    Raises:
        ConfigError: the application cannot run, or a source is not one of its own.
        OperatorError: from every method here, when user code raises.

    Example:
        >>> import gearpy as gp
        >>> from gearpy.testing import FlowDriver, ManualSource
        >>> app, source, results = gp.StreamApp("visits"), ManualSource(), []
        >>> visits = app.read(source).key_by(lambda page: page)
        >>> visits.window(gp.tumbling("1m")).count().write(gp.to_list(results))
        >>> flow = FlowDriver(app)
        >>> flow.send(source, "/home", timestamp=1_000)
        >>> flow.send(source, "/home", timestamp=59_999)
        >>> flow.send(source, "/home", timestamp=60_000)
        >>> results
        []
        >>> flow.watermark(source, 60_000)
        >>> results
        [WindowResult(key='/home', value=2, start=0, end=60000)]
        >>> flow.end(source)
        >>> flow.stop()
        >>> len(results)
        2
    """

    def __init__(self, app: Buildable, *, seed: int = 0) -> None:
        self._simulation = Simulation(
            app, seed=seed, delay_ms=0, limits=_LIMITS, idle_poll_ms=1000, readings_per_ms=1000
        )
        self._sources = {
            TaskId(number, 0): source
            for number, processor in self._simulation.application.processors.items()
            if isinstance(source := processor.source, ManualSource)
        }
        self._settle()

    def send(self, source: ManualSource, value: Any, timestamp: EventTime = 0) -> None:
        """Let a source give one record."""
        self.send_all(source, Message(value, event_time_ms(timestamp)))

    def send_all(self, source: ManualSource, *messages: Message) -> None:
        """Let a source give some records at once."""
        reader = self._reader_of(source)
        reader.idle = False
        reader.records += messages
        self._settle()

    def watermark(self, source: ManualSource, time: EventTime) -> None:
        """Let a source promise that nothing older will come from it."""
        reader = self._reader_of(source)
        reader.promised_ms = max(reader.promised_ms, event_time_ms(time))
        self._settle()

    def idle(self, source: ManualSource) -> None:
        """Let a source hold no clock back until it gives again."""
        self._reader_of(source).idle = True
        self._settle()

    def end(self, source: ManualSource) -> None:
        """Let a source finish; when all have, the application has."""
        self._reader_of(source).ends = True
        self._settle()

    def advance(self, duration: Duration) -> None:
        """Let time pass: timers fire, other sources read."""
        self._simulation.advance(duration_ms(duration))
        self._settle()

    def stop(self) -> None:
        """Stop all tasks, which closes sources and sinks; called once, at the end."""
        self._simulation.stop(completed=self.is_finished)

    @property
    def is_finished(self) -> bool:
        """Whether all sources have ended and everything was processed."""
        return self._simulation.is_finished

    @property
    def late_records(self) -> int:
        """The number of records that were dropped because their window had closed."""
        return sum(clock.late_records for clock in self._simulation.clocks())

    def _reader_of(self, source: ManualSource) -> ManualReader:
        reader = source.reader
        if source not in self._sources.values():
            raise ConfigError(f"{source.description!r} is no source of the driver's application")
        if reader.ends:
            raise ConfigError(f"source {source.description!r} has ended")
        return reader

    def _settle(self) -> None:
        """Let due events happen, up to a limit, since other sources may never be quiet."""
        until_ms = self._simulation.now_ms + _SETTLE_MS_MAX
        for task in self._sources:
            self._simulation.wake(task)
        self._simulation.advance(0)
        while not self._is_calm() and self._simulation.now_ms < until_ms:
            self._simulation.advance(1)

    def _is_calm(self) -> bool:
        waits = any(source.reader.records for source in self._sources.values())
        return self._simulation.is_calm and not waits
