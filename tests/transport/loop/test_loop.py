"""The thread of the event loop, see `gearpy.transport.loop.loop`."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Iterator

import pytest

from gearpy.transport.loop.loop import LoopThread
from tests.transport.build import PATIENCE_S


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    loop = LoopThread("loop-under-test")
    loop.start()
    yield loop
    loop.stop()


def test_a_call_that_takes_too_long_is_cancelled(loop: LoopThread) -> None:
    cancelled = threading.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(concurrent.futures.TimeoutError):
        loop.call(hang(), 0.01)
    assert cancelled.wait(PATIENCE_S)


def test_functions_run_in_the_order_they_were_given(loop: LoopThread) -> None:
    seen: list[int] = []
    done = threading.Event()

    for number in range(100):
        loop.call_soon(seen.append, number)
    loop.call_soon(done.set)

    assert done.wait(PATIENCE_S)
    assert seen == list(range(100))


def test_a_function_that_raises_is_logged_and_the_loop_goes_on(
    loop: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    done = threading.Event()

    loop.call_soon(lambda: 1 // 0)
    loop.call_soon(done.set)

    assert done.wait(PATIENCE_S)
    assert "ZeroDivisionError" in caplog.text


def test_stop_cancels_what_still_runs_and_later_calls_are_refused() -> None:
    loop, cancelled, begun = LoopThread(), threading.Event(), threading.Event()
    before_start = loop.call_soon(print)
    loop.start()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    tasks: list[asyncio.Future[None]] = []
    loop.call_soon(lambda: tasks.append(asyncio.ensure_future(hang())))
    assert begun.wait(PATIENCE_S)
    loop.stop()
    loop.stop()

    assert cancelled.is_set()
    assert (before_start, loop.call_soon(print), loop.running) == (False, False, False)
