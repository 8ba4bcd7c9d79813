"""Keyed state and its timers in a task: at which key it is, when timers fire, what comes back."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Message
from gearpy.state.encoding.keys import NO_KEY
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.timers import KeyTimer
from gearpy.task.api.interfaces import Task, TaskContext
from tests.task.build import Bench, task_of


class CountEach(Task):
    """Counts what it gets, for each key; sends key and count."""

    def on_start(self, start_time_ms: int) -> None:
        self.count = self.context.state.value("count", coder="int", default=0)

    def on_next(self, message: Message) -> None:
        self.count.set(self.count.get() + 1)
        self.context.output(Message((self.context.state.key, self.count.get())))


class CountLazily(CountEach):
    def on_start(self, start_time_ms: int) -> None:
        """Do nothing."""

    def on_next(self, message: Message) -> None:
        super().on_start(0)
        super().on_next(message)


class Reminder(Task):
    """Sets a timer for each record, and says at which key and time it fires."""

    domain = "event"

    def on_next(self, message: Message) -> None:
        timers = self.context.state.timers
        if self.domain == "event":
            timers.event_time(message.timestamp + 10)
        else:
            timers.processing_time(self.context.now_ms() + 10)

    def on_key_timer(self, timer: KeyTimer) -> Iterator[Message]:
        assert self.context.state.key == timer.key
        yield Message((timer.key, timer.at_ms), timer.at_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        self.context.output(Message("watermark", watermark_ms))


class QuietReminder(Reminder):
    fired = 0

    def on_key_timer(self, timer: KeyTimer) -> Iterator[Message]:
        self.fired += 1
        return iter(())


def test_others_may_go_on_while_many_timers_fire() -> None:
    bench = Bench(QuietReminder, key=first_letter).open()
    bench.send("apple", "banana", "cherry", "date", "elder", watermark_ms=1)
    bench.run()
    bench.runner._turn_ms = 0  # noqa: SLF001 - each piece of work is a turn
    bench.send(watermark_ms=100)

    fired: list[int] = []
    with patch("gearpy.task.runtime.feed._TIMERS_AT_ONCE", 2):
        while bench.runner.turn() == 0:
            fired.append(task_of(bench).fired)

    assert {2, 4} <= set(fired)
    assert task_of(bench).fired == 5


class ReminderByWall(Reminder):
    domain = "processing"


def first_letter(word: str) -> str:
    return word[0]


def test_state_comes_back_after_a_restart() -> None:
    bench = Bench(CountEach, key=first_letter).open()
    bench.send("apple", "banana")
    bench.send("avocado", epoch=2)
    bench.run()
    bench.send("almond", epoch=3)
    bench.run()

    again = Bench(CountEach, key=first_letter, epoch=3, resume=bench.snapshot(2)).open()
    again.send("almond", "berry", epoch=3)
    again.run()

    assert again.target.values == [("a", 3), ("b", 2)]


def test_event_timers_fire_before_the_task_hears_of_the_watermark() -> None:
    bench = Bench(Reminder, key=first_letter).open()

    bench.send(Message("b", 5), Message("a", 1), Message("c", 90))
    bench.send(watermark_ms=20)
    bench.run()

    assert bench.target.values == [("a", 11), ("b", 15), "watermark"]


def test_timers_on_wall_time_fire_when_it_has_come() -> None:
    bench = Bench(ReminderByWall, key=first_letter).open()
    bench.send("b")
    bench.run()
    before = list(bench.target.values)

    wake_ms = bench.turn()
    bench.pass_time(10)
    bench.run()

    assert before == []
    assert wake_ms is not None
    assert wake_ms <= bench.now_ms
    assert [key for key, _ in bench.target.values] == ["b"]


def test_record_without_a_key_is_a_failure_that_names_it() -> None:
    bench = Bench(CountEach, key=first_letter).open()
    bench.send("")

    with pytest.raises(OperatorError) as caught:
        bench.run()

    assert caught.value.record == "''"


class Unaligned(CountEach):
    aligned = False


class UnalignedLazily(CountLazily):
    aligned = False


@pytest.mark.parametrize("make", [Unaligned, UnalignedLazily])
def test_task_that_is_not_aligned_has_no_state(make: type[Task]) -> None:
    """What it changes for records of the next epoch would be in the snapshot of this one."""

    def run() -> None:
        bench = Bench(make, key=first_letter).open()
        bench.send("apple")
        bench.run()

    with pytest.raises(OperatorError, match=r"aligned = False cannot use context\.state"):
        run()


def test_task_that_is_not_aligned_any_more_does_not_forget_its_state() -> None:
    bench = Bench(CountEach, key=first_letter).open()
    bench.send("apple")
    bench.send(epoch=2)
    bench.run()

    with pytest.raises(OperatorError, match=r"aligned = False cannot use context\.state"):
        Bench(Unaligned, key=first_letter, epoch=2, resume=bench.snapshot(1)).open()


class WhereAmI(Task):
    """Says at which key and namespace it is; leaves others behind."""

    def where(self) -> tuple[Any, Any, int]:
        state = self.context.state
        return state.key, state.namespace, state.time_ms

    def on_start(self, start_time_ms: int) -> None:
        self.context.state.value("x")

    def on_next(self, message: Message) -> None:
        self.context.output(Message(self.where(), message.timestamp))
        self.context.state.namespace = "window"

    def on_watermark(self, watermark_ms: int) -> None:
        self.context.output(Message(self.where(), watermark_ms))


def test_state_is_nowhere_in_particular_between_records() -> None:
    """Where the last record has left it would be somewhere else after a restart."""
    bench = Bench(WhereAmI, key=first_letter).open()

    bench.send(Message("apple", 7), Message("berry", 8), watermark_ms=5)
    bench.run()

    assert bench.target.values == [("a", None, 7), ("b", None, 8), (NO_KEY, None, MIN_MS)]


class Holding(ReminderByWall):
    waits = True

    def on_key_timer(self, timer: KeyTimer) -> Iterator[Message]:
        self.waits = False
        return super().on_key_timer(timer)

    @property
    def hold_ms(self) -> int:
        return 0 if self.waits else MAX_MS


@pytest.mark.parametrize(("make", "fires"), [(ReminderByWall, 0), (Holding, 1)])
def test_timers_on_wall_time_do_not_fire_behind_the_end(make: type[Task], fires: int) -> None:
    """When the clock is at the end the last epoch may end: what came then would be lost."""
    bench = Bench(make, key=first_letter).open()
    bench.send("b")
    bench.send(watermark_ms=MAX_MS)
    bench.run()

    ended = bench.runner.clock().clock_ms == MAX_MS
    bench.pass_time(50)
    bench.run()

    assert ended is (fires == 0)
    assert [value for value in bench.target.values if value != "watermark"] == [
        ("b", 1_000_010)
    ] * fires
    assert bench.runner.clock().clock_ms == MAX_MS


def test_state_is_closed_though_the_task_could_not_be_made() -> None:
    bench = Bench(CountEach, key=first_letter).open()
    bench.send("apple")
    bench.send(epoch=2)
    bench.run()

    class Unmakeable(Task):
        def __init__(self, context: TaskContext) -> None:
            super().__init__(context)
            states.append(context.state)
            raise ValueError("no")

    states: list[KeyedState] = []
    again = Bench(Unmakeable, key=first_letter, epoch=2, resume=bench.snapshot(1))
    with pytest.raises(OperatorError, match="no"):
        again.open()

    again.runner.stop(completed=False)

    count = states[0].value("count", coder="int", default=0)
    states[0].key = "a"
    assert count.get() == 0


class Restless(Task):
    fired = 0

    def on_next(self, message: Message) -> None:
        self.context.state.timers.processing_time(self.context.now_ms())
        self.context.output(message)

    def on_key_timer(self, timer: KeyTimer) -> None:
        self.fired += 1
        assert self.fired < 10, "nothing else has its turn"
        self.context.state.timers.processing_time(self.context.now_ms())


def test_timer_that_sets_itself_again_lets_records_through() -> None:
    bench = Bench(Restless, key=first_letter).open()

    bench.send("apple")
    bench.run()
    bench.send("berry")
    bench.send("cherry", epoch=2)
    bench.run()
    bench.pass_time(1)

    assert bench.target.values == ["apple", "berry", "cherry"]
    assert [each.epoch for each in bench.runner.snapshots] == [1]
    assert bench.runner.task is not None
    assert 2 <= bench.runner.task.fired <= 6  # type: ignore[attr-defined]
