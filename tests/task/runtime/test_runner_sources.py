"""One task at work: producing by itself, timers, messages outside of flow control, its life."""

from collections.abc import Iterator
from typing import Any

import pytest

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.data import Message, Unmanaged
from gearpy.task.api.interfaces import Task
from tests.task.build import SESSION, TARGET, TASK, Bench, Recorder, on_next_of, source_of, task_of


def test_source_promises_by_update_watermark() -> None:
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


def test_task_with_inputs_may_not_promise_by_itself() -> None:
    bench = Bench(on_next_of(lambda _: task_of(bench).context.update_watermark(5))).open()

    bench.send("a")

    with pytest.raises(OperatorError, match="for tasks without inputs"):
        bench.turn()


def test_timers_fire_in_the_order_of_their_times() -> None:
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


def test_messages_that_timers_and_unmanaged_values_give_back_are_sent() -> None:
    """Also those of a generator, which nobody would run."""

    class Answering(Task):
        def on_start(self, start_time_ms: int) -> None:
            self.context.schedule(10, 2)

        def on_timer(self, payload: Any) -> Iterator[Message[Any]]:
            yield Message(payload, 1)
            yield Message(payload + 1, 1)

        def on_unmanaged(self, value: Any) -> list[Message[Any]]:
            return [Message(value, 1)]

    bench = Bench(Answering, upstream=0).open()
    bench.runner.receive(Unmanaged(SESSION, TaskId(0, 0), TASK, 1))
    bench.run()
    bench.pass_time(10)
    bench.run()

    assert bench.target.values == [1, 2, 3]


def test_values_travel_outside_of_flow_control() -> None:
    bench = Bench(Recorder).open()

    bench.runner.receive(Unmanaged(SESSION, TaskId(0, 0), TASK, "hello"))
    bench.turn()
    bench.runner.context.send_unmanaged(TARGET, "answer")
    bench.turn()

    assert task_of(bench).calls[1:] == [("unmanaged", "hello")]
    assert [(sent.target, sent.value) for sent in bench.unmanaged] == [(TARGET, "answer")]


def test_life_of_a_task() -> None:
    bench = Bench(Recorder).open()

    bench.send("a", watermark_ms=5)
    bench.run()
    bench.runner.stop(completed=True)

    assert task_of(bench).calls == [("start", MIN_MS), "a", ("watermark", 5), ("stop", True)]
