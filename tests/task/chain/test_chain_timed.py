"""Stages that wait for wall time, in chains with and without stages that defer."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from gearpy.ids import MAX_MS
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.output import Columns
from gearpy.task.api.rejects import Midway
from gearpy.task.chain.chain import ChainTask, Stage
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.task.stages.asynchronous import AsyncFunction, AsyncStage
from gearpy.testing.driver import TaskDriver
from gearpy.transport.loop.virtual_loop import VirtualCoroutines
from gearpy.wire.values.payload import encode_value
from tests.task.build import TARGET, Bench
from tests.task.stage_build import Delayed, mapped


class Always(Delayed):
    """Wants to be called all the time."""

    @property
    def wake_ms(self) -> int | None:
        """Now."""
        return 0


def delayed(delay_ms: int = 10, *behind: Stage) -> Any:
    """Return what makes a task with such a stage."""
    return lambda context: ChainTask(context, lambda _: [Delayed(context, delay_ms), *behind])


def values_of(driver: TaskDriver) -> list[Any]:
    """Return the values that came out since the last time."""
    return [message.value for message in driver.take()]


# -- wall time ---------------------------------------------------------------------------------


def test_stage_is_called_when_its_time_has_come() -> None:
    """What it yields goes through the stages behind it."""
    driver = TaskDriver(delayed(10, mapped(lambda n: n * 2)))

    driver.send(1, timestamp=5)
    driver.advance(9)
    assert driver.take() == []
    driver.advance(1)

    assert driver.take() == [Message(2, 5)]


def test_time_that_changes_is_looked_at_again() -> None:
    """Nothing is set that would have to be taken back."""
    stages: list[Delayed] = []

    def make(context: TaskContext) -> ChainTask:
        stages.append(Delayed(context))
        return ChainTask(context, lambda _: stages)

    driver = TaskDriver(make)
    driver.send(1)
    driver.advance(5)
    stages[0].waiting.clear()
    driver.advance(100)

    assert stages[0].called == []


def test_stage_that_wants_to_be_called_all_the_time_lets_records_through() -> None:
    """Once in each ms is often enough."""
    made: list[Always] = []

    def make(context: TaskContext) -> ChainTask:
        made.append(Always(context, 0))
        return ChainTask(context, lambda _: made)

    driver = TaskDriver(make)
    driver.send_all(*map(Message, range(50)))
    driver.advance(20)

    assert values_of(driver) == list(range(50))
    assert len(made[0].called) == len(set(made[0].called)) <= 21


def test_stage_is_called_after_a_restart() -> None:
    """As it tells again when it wants to be."""
    driver = TaskDriver(delayed())
    driver.send(1, timestamp=5)
    resume = driver.cut()

    again = TaskDriver(delayed(), resume=resume)
    assert again.take() == []
    again.advance(10)

    assert again.take() == [Message(1, 5)]


def test_nothing_is_called_at_the_end_of_the_stream() -> None:
    """The end may have been stored."""
    made: list[Always] = []

    def make(context: TaskContext) -> ChainTask:
        made.append(Always(context, 0))
        return ChainTask(context, lambda _: made)

    driver = TaskDriver(make)
    driver.end()
    assert driver.clock.clock_ms == MAX_MS
    calls = len(made[0].called)
    driver.advance(50)

    assert len(made[0].called) == calls


def test_what_a_timed_stage_yields_waits_for_credit() -> None:
    """The same back-pressure as for any other output."""
    bench = Bench(delayed()).open()
    for start in range(0, 200, 20):
        bench.send(*range(start, start + 20))
    bench.turn()

    bench.pass_time(10)
    assert bench.runner.is_blocked
    assert sum(len(each.batch) for each in bench.target.queue if hasattr(each, "batch")) <= 50
    for _ in range(300):
        bench.consume(TARGET, 1)
        bench.pass_time(1)
    bench.run()

    assert bench.target.values == list(range(200))


def test_earliest_stage_decides() -> None:
    """Several in a chain each get their time."""

    def make(context: TaskContext) -> ChainTask:
        return ChainTask(context, lambda _: [Delayed(context, 10), Delayed(context, 5)])

    driver = TaskDriver(make)
    driver.send(1)
    driver.advance(14)
    assert driver.take() == []
    driver.advance(2)

    assert values_of(driver) == [1]


# -- behind and before stages that defer -------------------------------------------------------


async def slow(value: Any) -> Any:
    """Take 5 ms."""
    await asyncio.sleep(0.005)
    return value


@pytest.mark.parametrize("concurrency", [1, 3, 100])
def test_timed_and_deferring_stages_go_together(concurrency: int) -> None:
    """Whatever has room; nothing is lost or doubled, order stays."""

    def make(context: TaskContext) -> ChainTask:
        def called(name: str) -> AsyncStage:
            return AsyncStage(context, name, AsyncFunction(slow, concurrency=concurrency))

        explode = FusedStage([RowOperator("flat_map", "explode", lambda n: [n] * 3)], limit=4)
        stages: list[Stage] = [
            Delayed(context, 3),
            called("a"),
            explode,
            Delayed(context, 2),
            called("b"),
        ]
        return ChainTask(context, lambda _: stages)

    driver = TaskDriver(make)
    for value in range(30):
        driver.send(value, timestamp=value)
        driver.watermark(value)
        driver.advance(1)
    driver.advance(3000)

    assert values_of(driver) == [n for n in range(30) for _ in range(3)]
    assert driver.clock.watermark_ms == 29
    driver.end()
    driver.advance(20)
    assert driver.clock.clock_ms == MAX_MS


class AsyncBench(Bench):
    """A bench whose task has an event loop in the bench's time."""

    def __init__(self, make: Any) -> None:
        super().__init__(make)
        self._acts: list[tuple[int, Any]] = []
        self.runner.context.coroutines = VirtualCoroutines(
            lambda: self.now_ms, self._later, Random(1)
        )
        self.open()

    def _later(self, delay_ms: int, act: Any) -> None:
        self._acts.append((self.now_ms + delay_ms, act))

    def pass_all(self, duration_ms: int) -> None:
        """Let time pass, a ms at a time, for the task and for its coroutines."""
        for _ in range(duration_ms):
            self.pass_time(1)
            due = [act for at_ms, act in self._acts if at_ms <= self.now_ms]
            self._acts = [each for each in self._acts if each[0] > self.now_ms]
            for act in due:
                act()
        self.run()


def test_injected_record_goes_on_at_its_place() -> None:
    """It does not wait for room: it could be in the middle of another lane's work."""

    def make(context: TaskContext) -> ChainTask:
        function = AsyncFunction(slow, concurrency=1)
        first, second = (AsyncStage(context, name, function) for name in "ab")
        return ChainTask(context, lambda _: [first, mapped(lambda n: n + 1), second])

    bench = AsyncBench(make)
    for value in (10, 20, 30):
        bench.send(value)
    bench.runner.inject(encode_value(Midway(1, 70)), 5)
    bench.pass_all(100)

    assert sorted(bench.target.values) == [11, 21, 31, 71]


def test_idle_input_is_told_when_nothing_is_in_flight() -> None:
    """Else tasks behind would go on without the records that are about to come."""
    bench = AsyncBench(
        lambda context: ChainTask(
            context, lambda _: [AsyncStage(context, "a", AsyncFunction(slow))]
        )
    )

    bench.send(1, idle=True)
    bench.run()
    assert not bench.target.idle
    bench.pass_all(20)

    assert bench.target.values == [1]
    assert bench.target.idle


class Guarded(Always):
    """Yields records one by one, and must not be called meanwhile."""

    is_busy = False

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Yield them."""
        for value, time in zip(values, timestamps, strict=True):
            self.is_busy = True
            yield [value], [time]
        self.is_busy = False

    def on_time(self, now_ms: int) -> Iterator[Columns]:
        """Yield nothing."""
        assert not self.is_busy
        return iter(super().on_time(now_ms))


def test_stage_in_the_middle_of_its_work_is_not_called() -> None:
    """It waits for room behind it; its time comes when it has ended."""
    made: list[Guarded] = []

    def make(context: TaskContext) -> ChainTask:
        made.append(Guarded(context))
        last = AsyncStage(context, "a", AsyncFunction(slow, concurrency=1))
        return ChainTask(context, lambda _: [*made, last])

    driver = TaskDriver(make)
    driver.send_all(*map(Message, range(5)))
    driver.advance(12)
    assert made[0].is_busy
    assert not any(now_ms > 0 for now_ms in made[0].called)
    driver.advance(50)

    assert values_of(driver) == list(range(5))
    assert made[0].called[-1] > 20
