"""An event loop in virtual time: what waits for time or for others goes on, in order."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from typing import Any

import pytest

from gearpy.transport.loop.virtual_loop import VirtualLoop


class Bench:
    def __init__(self) -> None:
        self.now_ms = 0
        self.acts: list[tuple[int, int, Callable[[], object]]] = []
        self.loop = VirtualLoop(lambda: self.now_ms, self._later)
        self._planned = 0

    def _later(self, delay_ms: int, act: Callable[[], object]) -> None:
        self._planned += 1
        heappush(self.acts, (self.now_ms + delay_ms, self._planned, act))

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = self.loop.create_task(coroutine)
        return task

    def run(self, *, acts_max: int = 10_000) -> "Bench":
        for _ in range(acts_max):
            if not self.acts:
                break
            self.now_ms, _, act = heappop(self.acts)
            act()
        return self


def test_what_asyncio_offers_for_waiting_works() -> None:
    async def child(queue: "asyncio.Queue[int]") -> None:
        await asyncio.sleep(0.01)
        queue.put_nowait(1)

    async def everything() -> list[Any]:
        queue: asyncio.Queue[int] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            group.create_task(child(queue))
        found: list[Any] = [await queue.get()]
        try:
            async with asyncio.timeout(0.005):
                await queue.get()
        except TimeoutError:
            found.append("late")
        try:
            await asyncio.wait_for(queue.get(), 0.005)
        except TimeoutError:
            found.append("later")
        found += await asyncio.gather(asyncio.sleep(0, 2), asyncio.to_thread(int, "3"))
        return found

    bench = Bench()
    task = bench.begin(everything())
    bench.run()

    assert task.result() == [1, "late", "later", 2, 3]
    assert bench.now_ms == 20


def test_thread_that_raises_tells_who_awaits_it() -> None:
    async def wrong() -> None:
        await asyncio.to_thread(int, "x")

    bench = Bench()
    task = bench.begin(wrong())
    bench.run()

    with pytest.raises(ValueError, match="invalid literal"):
        task.result()


def test_callbacks_keep_their_order_and_can_be_cancelled() -> None:
    bench, called = Bench(), list[str]()
    for name, delay_s in (("c", 0.002), ("b", 0.001), ("d", 0.002)):
        bench.loop.call_later(delay_s, called.append, name)
    bench.loop.call_later(0.001, called.append, "never").cancel()
    bench.loop.call_soon(called.append, "never").cancel()
    bench.loop.call_soon_threadsafe(called.append, "a")

    bench.run()

    assert called == ["a", "b", "c", "d"]


def test_coroutine_that_never_rests_does_not_stop_time() -> None:
    """A simulation would hang otherwise."""

    async def spin() -> None:
        while asyncio.get_running_loop().time() < 0.003:  # noqa: ASYNC110 - what is tested
            await asyncio.sleep(0)

    bench = Bench()
    bench.begin(spin())

    assert bench.run().now_ms == 3


def test_loop_runs_within_another_one() -> None:
    async def outer() -> int:
        bench = Bench()
        task = bench.begin(asyncio.sleep(1, 5))
        bench.run()
        await asyncio.sleep(0)
        return int(task.result())

    assert asyncio.run(outer()) == 5


def test_input_and_output_are_refused() -> None:
    async def connect() -> None:
        await asyncio.open_connection("localhost", 1)

    bench = Bench()
    task = bench.begin(connect())
    bench.run()

    with pytest.raises(AttributeError, match="no create_connection: no I/O in simulations"):
        task.result()


def test_what_nobody_awaits_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()

    with caplog.at_level(logging.ERROR):
        bench.loop.call_exception_handler({"message": "Task was destroyed but it is pending!"})
        bench.loop.call_exception_handler({"message": "never retrieved", "exception": OSError()})

    assert [record.getMessage() for record in caplog.records] == ["in a coroutine: never retrieved"]
