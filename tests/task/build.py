"""A task runner on a bench: the test plays the tasks before and behind it."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st

from gearpy.core.flow.link import FlowLimits
from gearpy.core.flow.partition import BroadcastPartitioner, Partitioner
from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.app import SourceProbe
from gearpy.messages.data import (
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    InitialAckRequest,
    LatencyProbe,
    LinkMessage,
    Message,
    Unmanaged,
)
from gearpy.task.api.interfaces import Task, TaskContext, TaskLimits
from gearpy.task.api.keyed import open_on_heap
from gearpy.task.api.rejects import OnError
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.runtime import recording
from gearpy.task.runtime.info import TaskInfo
from gearpy.task.runtime.metering import MeterSettings
from gearpy.task.runtime.outlet import OutputEdge, OutputLimits
from gearpy.task.runtime.runner import OUTBOX_FULL, TaskRunner

SESSION = SessionId(7)
UPSTREAM_SESSION = SessionId(3)
#: The task on the bench; processor 0 is upstream of it, 2 and more are downstream.
TASK = TaskId(1, 0)
TARGET = TaskId(2, 0)


def some_limits(
    *,
    window: int = 50,
    interval: int = 10,
    batch: int = 16,
    window_bytes: int = 1_000_000,
    batch_bytes: int = 100_000,
    least: int = 0,
) -> OutputLimits:
    """Return small limits; bare watermarks go out every 3 ms."""
    return OutputLimits(
        flow=FlowLimits(
            window_records=window,
            window_bytes=window_bytes,
            ack_interval_records=interval,
            ack_interval_ms=25,
            quiet_ack_ms=5,
            repeat_ack_ms=1000,
            least_records=least,
        ),
        batch_records=batch,
        batch_bytes=batch_bytes,
        watermark_interval_ms=3,
    )


@dataclass
class TargetTask:
    """A downstream task: takes from its queue what the test tells it to, and checks the link."""

    queue: deque[LinkMessage] = field(default_factory=deque)
    messages: list[Message] = field(default_factory=list)
    data: list[DataMessage] = field(default_factory=list)
    watermark_ms: int = MIN_MS
    idle: bool = False
    epoch: int = 0
    #: Records taken that were older than what had been promised before.
    late: list[Message] = field(default_factory=list)

    def take(self, message: LinkMessage) -> Ack | None:
        """Process one message; return the answer if it is a question."""
        if isinstance(message, AckRequest):
            return Ack(
                session=message.session,
                source=message.target,
                target=message.source,
                seq=message.seq,
                received=sum(message.counted for message in self.data),
            )
        if isinstance(message, DataMessage):
            self._take_data(message)
        return None

    def _take_data(self, message: DataMessage) -> None:
        assert isinstance(message.batch, Batch)
        assert message.seq == len(self.data) + 1, "sequence numbers have no gap"
        assert message.watermark_ms >= self.watermark_ms, "a watermark never goes backwards"
        assert message.epoch >= self.epoch, "an epoch never goes backwards"
        records = list(message.batch.messages())
        self.late += [record for record in records if record.timestamp < self.watermark_ms]
        self.messages += records
        self.data.append(message)
        self.watermark_ms, self.idle = message.watermark_ms, message.idle
        self.epoch = message.epoch

    @property
    def values(self) -> list[Any]:
        return [message.value for message in self.messages]

    @property
    def epochs(self) -> list[tuple[int, list[Any]]]:
        found: dict[int, list[Any]] = {}
        for message in self.data:
            assert isinstance(message.batch, Batch)
            found.setdefault(message.epoch, []).extend(message.batch.values)
        return list(found.items())


class Bench:
    """One task with everything around it, in virtual time.

    Args:
        upstream: number of tasks before it; 0 makes it a source.
        on_error: what to do with records on which it raises.
    """

    def __init__(
        self,
        make: Callable[[TaskContext], Task],
        *,
        upstream: int = 1,
        targets: Sequence[int] = (1,),
        partitioner: Partitioner | None = None,
        limits: OutputLimits | None = None,
        task_limits: TaskLimits | None = None,
        parallelism: int = 1,
        turn_ms: int = 1_000_000,
        epoch: int = 1,
        resume: TaskResume | None = None,
        key: Callable[[Any], Any] | None = None,
        on_error: OnError = "fail",
        metering: MeterSettings | None = None,
        recorder: recording.MakeRecorder | None = None,
        probe: SourceProbe | None = None,
    ) -> None:
        self._resume = resume
        self.now_ms = 0
        self.sources = [TaskId(0, index) for index in range(upstream)]
        self.targets = {
            TaskId(processor, index): TargetTask()
            for processor, tasks in enumerate(targets, start=2)
            for index in range(tasks)
        }
        self.answers: list[Ack] = []
        self.unmanaged: list[Unmanaged] = []
        self.opened: list[TaskId] = []
        self.probes: list[LatencyProbe] = []
        self._sent = dict.fromkeys(self.sources, 0)
        self._records = dict.fromkeys(self.sources, 0)
        split = partitioner or BroadcastPartitioner()
        self.runner = TaskRunner(
            TaskInfo(
                task_id=TASK,
                session=SESSION,
                parallelism=parallelism,
                operator="bench",
                upstream=self.sources,
                edges=[
                    OutputEdge(
                        processor=pid, parallelism=tasks, partitioner=split.fork(Random(pid))
                    )
                    for pid, tasks in enumerate(targets, start=2)
                ],
                app_name="test",
                key=key,
            ),
            make,
            limits=limits or some_limits(),
            task_limits=task_limits or TaskLimits(),
            turn_ms=turn_ms,
            clock_ms=lambda: self.now_ms,
            wall_ms=lambda: 1_000_000 + self.now_ms,
            epoch=epoch,
            open_state=open_on_heap,
            resume=resume,
            on_error=on_error,
            metering=metering,
            recorder=recorder,
            probe=probe,
        )

    def open(self) -> "Bench":
        for source in self.sources:
            self.runner.receive(InitialAckRequest(UPSTREAM_SESSION, source, TASK))
        self.runner.open(MIN_MS)
        self._collect()
        return self

    @property
    def target(self) -> TargetTask:
        return next(iter(self.targets.values()))

    # -- upstream --------------------------------------------------------------------------

    def send(
        self,
        *messages: Message | int | str,
        watermark_ms: int = MIN_MS,
        idle: bool = False,
        source: int = 0,
        epoch: int = 1,
    ) -> None:
        """Put records into the task's queue; what is no `Message` has the time 0."""
        batch = Batch.of(*(m if isinstance(m, Message) else Message(m) for m in messages))
        task = self.sources[source]
        self._sent[task] += 1
        self._records[task] += len(batch) or 1
        self.runner.receive(
            DataMessage(
                session=UPSTREAM_SESSION,
                source=task,
                target=TASK,
                seq=self._sent[task],
                batch=batch,
                watermark_ms=watermark_ms,
                idle=idle,
                epoch=epoch,
            )
        )

    def ask(self, *, source: int = 0) -> None:
        task = self.sources[source]
        self.runner.receive(AckRequest(UPSTREAM_SESSION, task, TASK, self._records[task]))

    # -- the task --------------------------------------------------------------------------

    def turn(self) -> int | None:
        """Give the task one turn, and more as long as only its outbox ends them.

        What it sends goes into the queues.
        """
        while True:
            wake_ms = self.runner.turn()
            is_full = len(self.runner.outbox) >= OUTBOX_FULL
            self._collect()
            if wake_ms != 0 or not is_full:
                return wake_ms

    def pass_time(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.turn()

    def snapshot(self, epoch: int) -> TaskResume:
        resume = self._resume
        for snapshot in self.runner.snapshots:
            if snapshot.epoch <= epoch:
                resume = snapshot.resume(resume)
        assert resume is not None, "no epoch has ended"
        return resume

    # -- downstream ------------------------------------------------------------------------

    def consume(self, target: TaskId, messages: int = 1) -> None:
        """Let a target process messages of its queue; acks go back at once."""
        task = self.targets[target]
        for _ in range(min(messages, len(task.queue))):
            answer = task.take(task.queue.popleft())
            if answer is not None:
                self.runner.receive(answer)
                self._collect()

    def run(self, *, turns_max: int = 1000) -> "Bench":
        """Give turns and let the targets process everything, until nothing is left to do now."""
        for _ in range(turns_max):
            wake_ms = self.turn()
            for target, task in self.targets.items():
                self.consume(target, len(task.queue))
            waits = any(task.queue for task in self.targets.values())
            if (
                not waits
                and not self.runner.is_blocked
                and (wake_ms is None or wake_ms > self.now_ms)
            ):
                return self
        raise AssertionError(f"the task is still busy after {turns_max} turns")

    def _collect(self) -> None:
        for message in self.runner.outbox:
            if isinstance(message, Ack):
                self.answers.append(message)
            elif isinstance(message, Unmanaged):
                self.unmanaged.append(message)
            elif isinstance(message, InitialAckRequest):
                self.opened.append(message.target)
            elif isinstance(message, LatencyProbe):
                self.probes.append(message)
            else:
                self.targets[message.target].queue.append(message)
        self.runner.outbox.clear()


def a_context(*, task_index: int = 0, parallelism: int = 1, batch: int = 4) -> TaskContext:
    bench = Bench(Task, upstream=0, task_limits=TaskLimits(batch_records=batch))
    context = bench.runner.context
    context.task_id, context.parallelism = TaskId(1, task_index), parallelism
    return context


class Echo(Task):
    def on_next(self, message: Message) -> None:
        self.context.output(message)


class Recorder(Task):
    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.calls: list[Any] = []

    def on_start(self, start_time_ms: int) -> None:
        self.calls.append(("start", start_time_ms))

    def on_next(self, message: Message) -> None:
        self.calls.append(message.value)

    def on_watermark(self, watermark_ms: int) -> None:
        self.calls.append(("watermark", watermark_ms))

    def on_timer(self, payload: object) -> None:
        self.calls.append(("timer", payload))

    def on_unmanaged(self, value: Any) -> None:
        self.calls.append(("unmanaged", value))

    def on_stop(self, *, completed: bool) -> None:
        self.calls.append(("stop", completed))


def task_of(bench: Bench) -> Any:
    return bench.runner.task


def source_of(produce: Callable[[Task], Any]) -> type[Task]:
    class Producing(Task):
        def produce(self) -> Any:
            return produce(self)

    return Producing


def on_next_of(function: Callable[[Message], Any]) -> type[Task]:
    class Answering(Task):
        def on_next(self, message: Message) -> Any:
            return function(message)

    return Answering


#: Steps for `take_epochs`: what links 0 and 1 send, ends of their epochs, turns and acks.
EPOCH_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.lists(st.integers(0, 7), max_size=4)),
        st.tuples(st.just("end"), st.integers(0, 1)),
        st.tuples(st.just("turn")),
        st.tuples(st.just("consume"), st.integers(1, 4)),
    ),
    max_size=60,
)


def take_epochs(bench: Bench, steps: list[tuple[Any, ...]]) -> list[dict[int, list[int]]]:
    """Take the steps, and end all epochs; return the numbers sent, of each link by epoch."""
    epochs: list[int] = [1, 1]
    sent: list[dict[int, list[int]]] = [{1: []}, {1: []}]

    def end_epoch(source: int) -> None:
        epochs[source] += 1
        sent[source][epochs[source]] = []
        bench.send(source=source, epoch=epochs[source])

    for name, *values in steps:
        if name == "send":
            source, numbers = values
            bench.send(*numbers, source=source, epoch=epochs[source])
            sent[source][epochs[source]] += numbers
        elif name == "end":
            end_epoch(values[0])
        elif name == "turn":
            bench.turn()
        else:
            bench.consume(TARGET, values[0])
    last = max(epochs)
    for source in (0, 1):
        while epochs[source] <= last:
            end_epoch(source)
        del sent[source][last + 1]
    bench.run()
    return sent
