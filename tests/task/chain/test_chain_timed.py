"""Stages that wait for wall time, in chains with and without stages that defer."""

import asyncio
from random import Random
from typing import Any

import pytest

from gearpy.ids import MAX_MS
from gearpy.messages.data import Message
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.rejects import Midway
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.fused import FusedStage, RowOperator
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.asynchronous import AsyncFunction, AsyncStage
from gearpy.testing.driver import TaskDriver
from gearpy.transport.loop.virtual_loop import VirtualCoroutines
from gearpy.wire.values.payload import encode_value
from tests.task.build import Bench
from tests.task.stage_build import Delayed, mapped


class Always(Delayed):
    @property
    def wake_ms(self) -> int | None:
        return 0


def delayed(delay_ms: int = 10, *behind: Stage) -> Any:
    return lambda context: ChainTask(context, lambda _: [Delayed(context, delay_ms), *behind])


def values_of(driver: TaskDriver) -> list[Any]:
    """Return the values that came out since the last time."""
    return [message.value for message in driver.take()]


def test_stage_is_called_when_its_time_has_come() -> None:
    driver = TaskDriver(delayed(10, mapped(lambda n: n * 2)))

    driver.send(1, timestamp=5)
    driver.advance("9ms")
    assert driver.take() == []
    driver.advance("1ms")

    assert driver.take() == [Message(2, 5)]


def test_nothing_is_called_at_the_end_of_the_stream() -> None:
    made: list[Always] = []

    def make(context: TaskContext) -> ChainTask:
        made.append(Always(context, 0))
        return ChainTask(context, lambda _: made)

    driver = TaskDriver(make)
    driver.end()
    assert driver.clock.clock_ms == MAX_MS
    calls = len(made[0].called)
    driver.advance("50ms")

    assert len(made[0].called) == calls


async def slow(value: Any) -> Any:
    await asyncio.sleep(0.005)
    return value


@pytest.mark.parametrize("concurrency", [1, 3, 100])
def test_timed_and_deferring_stages_go_together(concurrency: int) -> None:
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
        driver.advance("1ms")
    driver.advance("3s")

    assert values_of(driver) == [n for n in range(30) for _ in range(3)]
    assert driver.clock.watermark_ms == 29
    driver.end()
    driver.advance("20ms")
    assert driver.clock.clock_ms == MAX_MS


class AsyncBench(Bench):
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
