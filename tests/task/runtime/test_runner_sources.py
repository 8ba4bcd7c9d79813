"""One task at work: producing by itself, timers, messages outside of flow control, its life."""

import itertools
from collections.abc import Generator

import pytest

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.data import Batch, Message, Unmanaged
from gearpy.task.api.interfaces import FINISHED, Task
from tests.task.build import (
    SESSION,
    TARGET,
    TASK,
    Bench,
    Recorder,
    on_next_of,
    some_limits,
    source_of,
    task_of,
)


def test_task_without_inputs_produces_until_it_has_finished() -> None:
    """Then its stream ends."""

    class Three(Task):
        count = 0

        def produce(self) -> int:
            self.count += 1
            self.context.output(Message(self.count))
            return FINISHED if self.count == 3 else 0

    bench = Bench(Three, upstream=0).open()

    bench.run()

    assert bench.target.values == [1, 2, 3]
    assert bench.target.watermark_ms == MAX_MS


def test_endless_source_is_bounded_by_its_window() -> None:
    """Plain `produce` is stopped between calls, a generator within one."""

    def produce(task: Task) -> Generator[Batch, None, int]:
        for number in itertools.count():
            yield Batch([number], [0])
        return FINISHED

    bench = Bench(source_of(produce), upstream=0, limits=some_limits(window=20)).open()

    bench.turn()

    assert bench.runner.clock().records_out <= 20 + 16


def test_source_is_asked_again_after_the_time_it_says() -> None:
    """An idle source does not spin."""
    asked_ms = []

    def produce(task: Task) -> int:
        asked_ms.append(bench.now_ms)
        return 10

    bench = Bench(source_of(produce), upstream=0).open()

    assert bench.turn() == 10
    bench.pass_time(9)
    bench.pass_time(1)
    assert asked_ms == [0, 10]


def test_source_promises_by_update_watermark() -> None:
    """What was put out before stands before the promise. Gearpump: `updateWatermark`."""

    def produce(task: Task) -> int:
        task.context.output(Message("a", 3))
        task.context.update_watermark(5)
        task.context.update_watermark(4)
        return 100

    bench = Bench(source_of(produce), upstream=0).open()

    bench.pass_time(3)
    bench.consume(TARGET, 10)

    assert bench.target.late == []
    assert bench.target.watermark_ms == 5


def test_promise_stands_behind_all_parts_of_what_was_put_out() -> None:
    """Output that is cut for its size is no exception."""

    def produce(task: Task) -> int:
        for _ in range(6):
            task.context.output(Message("x" * 400, 3))
        task.context.update_watermark(5)
        return 100

    bench = Bench(source_of(produce), upstream=0, limits=some_limits(batch_bytes=1000)).open()

    bench.run()
    bench.pass_time(3)
    bench.run()

    assert len(bench.target.data) > 3
    assert bench.target.late == []
    assert bench.target.watermark_ms == 5


def test_source_that_is_idle_when_it_finishes_ends_its_stream() -> None:
    """A link that had ended as an idle one would be waited for, for ever."""

    def produce(task: Task) -> int:
        task.context.set_idle(True)
        return FINISHED

    bench = Bench(source_of(produce), upstream=0).open()

    bench.run()

    assert bench.target.watermark_ms == MAX_MS
    assert not bench.target.idle


def test_task_with_inputs_may_not_promise_by_itself() -> None:
    """Its inputs do."""
    bench = Bench(on_next_of(lambda _: task_of(bench).context.update_watermark(5))).open()

    bench.send("a")

    with pytest.raises(OperatorError, match="for tasks without inputs"):
        bench.turn()


def test_timers_fire_in_the_order_of_their_times() -> None:
    """Of equal ones in the order in which they were set."""

    class Waking(Recorder):
        def on_start(self, start_time_ms: int) -> None:
            for delay_ms, payload in ((30, "c"), (10, "a"), (10, "b")):
                self.context.schedule(delay_ms, payload)

    bench = Bench(Waking).open()

    wakes = [bench.turn()]
    bench.now_ms = 10
    wakes.append(bench.turn())
    bench.now_ms = 30
    bench.turn()

    assert wakes == [10, 30]
    assert task_of(bench).calls == [("timer", payload) for payload in "abc"]


def test_source_with_a_timer_ends_after_it() -> None:
    """A task without inputs may live by timers alone."""

    class Ticking(Task):
        def on_start(self, start_time_ms: int) -> None:
            self.context.schedule(10, 2)

        def on_timer(self, payload: object) -> None:
            assert isinstance(payload, int)
            self.context.output(Message(payload))
            if payload:
                self.context.schedule(10, payload - 1)

    bench = Bench(Ticking, upstream=0).open()

    bench.run()
    assert bench.target.watermark_ms == MIN_MS
    for _ in range(3):
        bench.pass_time(10)
        bench.run()

    assert bench.target.values == [2, 1, 0]
    assert bench.target.watermark_ms == MAX_MS


def test_timer_that_sets_itself_again_lets_records_through() -> None:
    """A delay of 0 must not stop the world."""

    class Spinning(Recorder):
        def on_start(self, start_time_ms: int) -> None:
            self.context.schedule(0, "spin")

        def on_timer(self, payload: object) -> None:
            super().on_timer(payload)
            self.context.schedule(0, payload)

    bench = Bench(Spinning).open()
    bench.send("a")

    bench.pass_time(1)

    assert task_of(bench).calls == [("timer", "spin"), "a"]


def test_values_travel_outside_of_flow_control() -> None:
    """Gearpump: unmanaged messages."""
    bench = Bench(Recorder).open()

    bench.runner.receive(Unmanaged(SESSION, TaskId(0, 0), TASK, "hello"))
    bench.turn()
    bench.runner.context.send_unmanaged(TARGET, "answer")
    bench.turn()

    assert task_of(bench).calls[1:] == [("unmanaged", "hello")]
    assert [(sent.target, sent.value) for sent in bench.unmanaged] == [(TARGET, "answer")]


def test_turn_ends_after_its_time() -> None:
    """Neighbours on the same thread get theirs; the owner is told to come back at once."""

    class Slow(Recorder):
        def on_next(self, message: Message) -> None:
            super().on_next(message)
            bench.now_ms += 5

    bench = Bench(Slow, turn_ms=2).open()
    bench.send("a")
    bench.send("b")

    assert bench.turn() == 0
    assert task_of(bench).calls[1:] == ["a"]


def test_life_of_a_task() -> None:
    """Start, records, watermark, stop."""
    bench = Bench(Recorder).open()

    bench.send("a", watermark_ms=5)
    bench.run()
    bench.runner.stop(completed=True)

    assert task_of(bench).calls == [("start", MIN_MS), "a", ("watermark", 5), ("stop", True)]
