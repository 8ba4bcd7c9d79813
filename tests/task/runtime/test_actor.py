"""A task in its actor: started and stopped once, told about once, whatever is repeated."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.clocks import monotonic_ms
from gearpy.ids import MAX_MS, SessionId, TaskId
from gearpy.messages.app import FailureKind, TaskClock
from gearpy.messages.data import Batch, DataMessage, Message
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.interfaces import FINISHED, Task, TaskContext, TaskLimits
from gearpy.task.api.keyed import open_on_heap
from gearpy.task.api.snapshots import TaskSnapshot, TaskState
from gearpy.task.runtime.actor import (
    ClockBoard,
    CommitTask,
    CutEpoch,
    InjectMessage,
    StartTask,
    StopTask,
    TaskActor,
    TaskMessage,
)
from gearpy.task.runtime.info import TaskInfo
from gearpy.task.runtime.recording import Recording
from gearpy.task.runtime.runner import TaskRunner
from gearpy.transport.links.memory import MemoryHub, MemoryTransport
from gearpy.wire.values.payload import decode_value, encode_value
from tests.eventually import eventually
from tests.task.build import SESSION, TASK, some_limits

UPSTREAM = TaskId(0, 0)


@dataclass
class Events:
    said: list[str] = field(default_factory=list)
    errors: list[ErrorCard | None] = field(default_factory=list)
    snapshots: list[tuple[TaskId, TaskSnapshot]] = field(default_factory=list)
    committed: list[tuple[TaskId, int]] = field(default_factory=list)
    quarantined: list[tuple[TaskId, bytes, int, ErrorCard]] = field(default_factory=list)

    injected: list[tuple[TaskId, int, int]] = field(default_factory=list)

    def on_task_started(self, task_id: TaskId) -> None:
        self.said.append("started")

    def on_task_failed(self, task_id: TaskId, error: ErrorCard, kind: FailureKind) -> None:
        self.said.append("failed")
        self.errors.append(error)

    def on_task_stopped(self, task_id: TaskId, error: ErrorCard | None) -> None:
        self.said.append("stopped")
        self.errors.append(error)

    def on_task_snapshot(self, task_id: TaskId, snapshot: TaskSnapshot) -> None:
        self.snapshots.append((task_id, snapshot))

    def on_task_committed(self, task_id: TaskId, epoch: int) -> None:
        self.committed.append((task_id, epoch))

    def on_task_recorded(self, task_id: TaskId, recording: Recording) -> None:
        raise AssertionError(f"nothing is recorded of {task_id}: {recording}")

    def on_record_injected(self, task_id: TaskId, number: int, epoch: int) -> None:
        self.injected.append((task_id, number, epoch))

    def on_record_quarantined(
        self, task_id: TaskId, value: bytes, event_time_ms: int, card: ErrorCard
    ) -> None:
        self.quarantined.append((task_id, value, event_time_ms, card))


class Noting(Task):
    life: list[str]
    error_at = ""

    def on_start(self, start_time_ms: int) -> None:
        self.note("start")

    def on_next(self, message: Message) -> None:
        self.note(f"next {message.value}")

    def on_commit(self, epoch: int) -> None:
        self.note(f"commit {epoch}")

    def on_stop(self, *, completed: bool) -> None:
        self.note(f"stop {completed}")

    def note(self, what: str) -> None:
        self.life.append(what)
        if self.error_at and what.startswith(self.error_at):
            raise ValueError(what)


class Desk:
    def __init__(self, system: ThreadedActorSystem) -> None:
        self.events = Events()
        self.board = ClockBoard()
        self._system = system

    def start(self, make: Callable[[TaskContext], Task], *, upstream: bool = True) -> None:
        info = TaskInfo(
            task_id=TASK,
            session=SESSION,
            parallelism=1,
            operator="noting",
            upstream=[UPSTREAM] if upstream else [],
            edges=[],
        )
        self.ref = self._system.spawn(lambda: self._actor(info, make), "task")

    def _actor(self, info: TaskInfo, make: Callable[[TaskContext], Task]) -> TaskActor:
        runner = TaskRunner(
            info,
            make,
            limits=some_limits(),
            task_limits=TaskLimits(),
            turn_ms=5,
            clock_ms=monotonic_ms,
            wall_ms=monotonic_ms,
            open_state=open_on_heap,
            on_error="quarantine",
        )
        return TaskActor(
            runner,
            MemoryTransport(MemoryHub(), "desk"),
            self.events,
            self.board,
            clock_ms=monotonic_ms,
            report_interval_ms=10,
        )

    def tell(self, *messages: TaskMessage) -> None:
        for message in messages:
            self.ref.tell(message)

    def wait_for(self, *said: str) -> None:
        eventually(lambda: len(self.events.said) >= len(said))
        assert self.events.said == list(said)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with ThreadedActorSystem() as system:
        yield Desk(system)


def noting(error_at: str = "") -> type[Noting]:
    return type("Mine", (Noting,), {"life": [], "error_at": error_at})


def test_task_asked_twice_to_start_starts_once(desk: Desk) -> None:
    task = noting()
    desk.start(task)

    desk.tell(StartTask(0), StartTask(0))

    desk.wait_for("started", "started")
    assert task.life == ["start"]


def test_task_asked_twice_to_stop_stops_once(desk: Desk) -> None:
    task = noting()
    desk.start(task)

    desk.tell(StartTask(0), StopTask(completed=True), a_gap(), StopTask(completed=False))

    desk.wait_for("started", "stopped", "stopped")
    assert task.life == ["start", "stop True"]


def a_gap() -> DataMessage:
    return DataMessage(SessionId(3), UPSTREAM, TASK, 99, Batch([1], [0]))


def test_task_that_failed_answers_a_stop_and_starts_no_more(desk: Desk) -> None:
    task = noting("start")
    desk.start(task)

    desk.tell(StartTask(0), StopTask(completed=False), StartTask(0))

    desk.wait_for("failed", "stopped")
    assert desk.events.errors[0] is not None
    assert desk.events.errors[0].cause == "ValueError: start"
    assert task.life == ["start", "stop False"]


def test_task_shows_an_epoch_that_is_complete_before_it_stops(desk: Desk) -> None:
    task = noting()
    desk.start(task)

    desk.tell(StartTask(0), CommitTask(3), StopTask(completed=False))

    desk.wait_for("started", "stopped")
    assert task.life == ["start", "commit 3", "stop False"]


def test_task_stops_also_if_it_cannot_show_the_last_epoch(desk: Desk) -> None:
    task = noting("commit")
    desk.start(task)

    desk.tell(StartTask(0), CommitTask(3), StopTask(completed=False))

    desk.wait_for("started", "stopped")
    assert task.life == ["start", "commit 3", "stop False"]
    assert desk.events.errors[-1] is not None
    assert desk.events.errors[-1].cause == "ValueError: commit 3"


def test_error_of_a_stop_is_told_with_it(desk: Desk) -> None:
    desk.start(noting("stop"))

    desk.tell(StartTask(0), StopTask(completed=True))

    desk.wait_for("started", "stopped")
    assert desk.events.errors[-1] is not None
    assert desk.events.errors[-1].cause == "ValueError: stop True"


def test_task_is_stopped_with_its_actor(desk: Desk) -> None:
    task = noting("stop")
    desk.start(task)
    desk.tell(StartTask(0))
    desk.wait_for("started")

    desk._system.stop(desk.ref)  # noqa: SLF001 - as its executor would

    eventually(lambda: task.life == ["start", "stop False"])


def test_task_that_cannot_say_how_far_it_is_is_stopped_all_the_same(desk: Desk) -> None:
    class Lost(Noting):
        life: list[str] = []  # noqa: RUF012 - of this test alone

        @property
        def hold_ms(self) -> int:
            raise ValueError("lost")

    desk.start(Lost)

    desk.tell(StartTask(0))
    desk.wait_for("started", "failed")
    desk.tell(StopTask(completed=True))

    desk.wait_for("started", "failed", "stopped")
    assert Lost.life == ["start", "stop False"]


def test_source_is_woken_again_and_again(desk: Desk) -> None:
    """Each wait ends, however short; then the clock says that it is done."""

    class Slow(Task):
        turns = 0

        def produce(self) -> int:
            self.turns += 1
            return FINISHED if self.turns == 30 else 1

    clocks: list[TaskClock] = []
    desk.start(Slow, upstream=False)

    desk.tell(StartTask(0))

    def is_done() -> bool:
        clocks.extend(desk.board.collect())
        return bool(clocks) and clocks[-1].clock_ms == MAX_MS

    eventually(is_done)
    desk.wait_for("started")


def test_what_a_source_has_sent_is_told_before_it_blocks(desk: Desk) -> None:
    goes_on, at_work = threading.Event(), threading.Event()

    class Blocking(Task):
        produce_may_block = True
        reads = 0

        def produce(self) -> int:
            if self.reads == 3:
                at_work.set()
                goes_on.wait(60)
                return FINISHED
            self.reads += 1
            self.context.output(Message(self.reads))
            self.context.counters.records_in += 1
            return 0

    desk.start(Blocking, upstream=False)
    desk.tell(StartTask(0))
    assert at_work.wait(60)
    (clock,) = desk.board.collect()
    goes_on.set()

    assert clock.records_in == 3
    desk.wait_for("started")


def test_source_that_is_asked_hands_over_its_snapshots(desk: Desk) -> None:
    """Each once, as soon as the epoch has ended; asked before the start, it ends it then."""

    class Keeping(Task):
        def produce(self) -> int:
            return 10_000

        def snapshot(self) -> str:
            return "kept"

    desk.start(Keeping, upstream=False)

    desk.tell(CutEpoch(1), StartTask(0))
    eventually(lambda: len(desk.events.snapshots) == 1)
    desk.tell(CutEpoch(1), CutEpoch(2))
    eventually(lambda: len(desk.events.snapshots) == 2)

    assert [(t, each.epoch) for t, each in desk.events.snapshots] == [(TASK, 1), (TASK, 2)]
    assert TaskState.decode(desk.events.snapshots[0][1].head).task == "kept"
    assert desk.events.said == ["started"]


def test_record_in_quarantine_is_handed_over_and_given_again(desk: Desk) -> None:
    task = noting("next bad")
    desk.start(task)
    desk.tell(StartTask(0), InjectMessage(encode_value("bad"), 20))
    eventually(lambda: len(desk.events.quarantined) == 1)

    _, value, event_time_ms, card = desk.events.quarantined[0]
    task.error_at = ""
    desk.tell(InjectMessage(value, event_time_ms), StopTask(completed=True))
    desk.wait_for("started", "stopped")

    assert (decode_value(value), event_time_ms) == ("bad", 20)
    assert (card.cause, card.task) == ("ValueError: next bad", str(TASK))
    assert task.life == ["start", "next bad", "stop True"]


class Waiting(Task):
    news: ClassVar[list[str]] = []
    told: ClassVar[threading.Event] = threading.Event()

    def on_start(self, start_time_ms: int) -> None:
        threading.Timer(0.02, self._bring).start()

    def _bring(self) -> None:
        self.news.append("news")
        self.context.wake()

    @property
    def wake_ms(self) -> int | None:
        return 0 if self.news else None

    def on_wake(self, now_ms: int) -> None:
        self.news.clear()
        self.told.set()


def test_task_is_woken_by_another_thread(desk: Desk) -> None:
    desk.start(Waiting)

    desk.tell(StartTask(0))

    assert Waiting.told.wait(90)
    desk.tell(StopTask(completed=True))
    desk.wait_for("started", "stopped")
