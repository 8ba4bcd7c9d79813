"""Coroutines of user code: how many, how long, how often; and what a task hears of them."""

import asyncio
import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from gearpy.core.base.attempts import CallLimits
from gearpy.errors import ConfigError
from gearpy.transport.loop.coroutines import (
    NO_COROUTINES,
    AsyncCall,
    CoroutineThread,
    LoopCalls,
    Outcome,
)
from gearpy.transport.loop.virtual_loop import VirtualCoroutines
from tests.eventually import DEADLINE_S


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0
        self._acts: list[tuple[int, int, Callable[[], object]]] = []
        self._planned = 0

    def later(self, delay_ms: int, act: Callable[[], object]) -> None:
        self._planned += 1
        heapq.heappush(self._acts, (self.now_ms + delay_ms, self._planned, act))

    def go_to(self, at_ms: int) -> None:
        while self._acts and self._acts[0][0] <= at_ms:
            self.now_ms, _, act = heapq.heappop(self._acts)
            act()
        self.now_ms = at_ms


class Caller:
    def __init__(self, function: AsyncCall, **limits: Any) -> None:
        self.clock = Clock()
        self.told = 0
        self.virtual = VirtualCoroutines(lambda: self.clock.now_ms, self.clock.later, Random(1))
        self.calls = self.virtual.open(function, CallLimits(**limits), self._on_ready, "fetch")

    def _on_ready(self) -> None:
        self.told += 1

    def start(self, *values: Any) -> None:
        """Call the function with each; the values are the numbers, too."""
        self.calls.start([(value, value) for value in values])

    def outcomes_at(self, at_ms: int) -> list[Any]:
        """Let time pass; return the results that there are, or the errors."""
        self.clock.go_to(at_ms)
        return [each.error or each.result for each in self.calls.take()]


async def sleep_for(duration_ms: int) -> int:
    await asyncio.sleep(duration_ms / 1000)
    return duration_ms


# -- calls -------------------------------------------------------------------------------------


def test_results_come_when_they_are_there() -> None:
    caller = Caller(sleep_for)

    caller.start(20, 10)

    assert caller.outcomes_at(9) == []
    caller.clock.go_to(20)
    assert caller.calls.has_outcomes
    assert caller.calls.take() == [Outcome(10, 10), Outcome(20, 20)]


def test_outcomes_of_one_moment_are_told_once() -> None:
    """A message for each would cost more than the calls."""
    caller = Caller(lambda _: sleep_for(10), concurrency=1000)

    caller.start(*range(1000))
    caller.clock.go_to(10)
    assert caller.told == 1
    caller.calls.take()
    caller.start(1)
    caller.clock.go_to(20)

    assert caller.told == 2


def test_outcomes_are_told_though_the_one_before_was_taken_as_it_came() -> None:
    caller, taken = Caller(sleep_for), list[Outcome]()

    class TakenAtOnce(deque[Outcome]):
        def append(self, outcome: Outcome, /) -> None:
            super().append(outcome)
            if not taken:
                taken.extend(caller.calls.take())

    caller.calls._outcomes = TakenAtOnce()  # noqa: SLF001 - two threads could not be so exact
    caller.start(10, 20)

    caller.clock.go_to(10)
    told = caller.told
    caller.clock.go_to(20)
    assert taken == [Outcome(10, 10)]
    assert caller.told == told + 1
    assert caller.calls.take() == [Outcome(20, 20)]


def test_calls_that_wait_for_nothing_need_one_task() -> None:
    """A loop task for each would be most of their cost."""
    tasks = set()

    async def at_once(value: int) -> int:
        tasks.add(asyncio.current_task())
        return value

    caller = Caller(at_once, concurrency=100)
    caller.start(*range(50))

    assert caller.outcomes_at(0) == list(range(50))
    assert len(tasks) == 1


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [SystemExit, KeyboardInterrupt, BaseException, asyncio.CancelledError, TimeoutError]
)
def test_what_looks_like_an_end_is_an_error_like_any_other(kind: type[BaseException]) -> None:
    """`sys.exit` in a coroutine must not end the loop, nor a cancellation within it the call."""

    async def end(_: int) -> None:
        raise kind

    caller = Caller(end)
    caller.start(1)

    (error,) = caller.outcomes_at(0)
    assert type(error) is kind


def test_function_that_raises_before_it_awaits_has_failed() -> None:
    def wrong(value: int) -> Any:
        raise KeyError(value)

    caller = Caller(wrong)
    caller.start(1)

    (error,) = caller.outcomes_at(0)
    assert type(error) is KeyError


def test_function_that_gives_nothing_to_await_has_failed() -> None:
    caller = Caller(lambda value: value)
    caller.start(1)

    (error,) = caller.outcomes_at(0)
    assert "can't be used in 'await' expression" in str(error)


# -- timeouts ----------------------------------------------------------------------------------


def test_call_that_does_not_listen_holds_nobody_up() -> None:
    async def deaf(value: int) -> int:
        while value == 0:
            try:
                await asyncio.sleep(200 / 1000)
            except asyncio.CancelledError:
                continue
            break
        return value

    caller = Caller(deaf, timeout_ms=50, concurrency=1)
    caller.start(0, 1)

    error, result = caller.outcomes_at(60)
    assert type(error) is TimeoutError
    assert result == 1
    assert caller.outcomes_at(1000) == []


def test_retry_after_a_timeout_has_all_the_time() -> None:
    attempts: list[int] = []

    async def slow_at_first(value: int) -> int:
        attempts.append(value)
        await asyncio.sleep(0.04 if len(attempts) > 1 else 1)
        return value

    caller = Caller(slow_at_first, timeout_ms=50, retries=1, backoff_ms=10)
    caller.start(1)

    assert caller.outcomes_at(200) == [1]


# -- the end -----------------------------------------------------------------------------------


def test_close_cancels_and_nothing_comes_any_more() -> None:
    events = []

    async def note(value: int) -> int:
        try:
            await asyncio.sleep(1)
        finally:
            events.append(value)
        return value

    caller = Caller(note, concurrency=2, timeout_ms=100, retries=3)
    caller.start(1, 2, 3)
    caller.clock.go_to(10)
    caller.calls.close()
    caller.calls.close()

    assert caller.outcomes_at(10_000) == []
    assert sorted(events) == [1, 2]


def test_killed_coroutines_do_nothing_more() -> None:
    caller = Caller(sleep_for)
    caller.start(10)
    caller.clock.go_to(5)

    caller.virtual.kill()

    assert caller.outcomes_at(100) == []


def test_without_a_loop_nothing_can_be_called() -> None:
    with pytest.raises(ConfigError, match="'fetch' is asynchronous"):
        NO_COROUTINES.open(sleep_for, CallLimits(), lambda: None, "fetch")


# -- on a thread -------------------------------------------------------------------------------


@pytest.fixture
def ready() -> threading.Semaphore:
    return threading.Semaphore(0)


@pytest.fixture
def open_calls(ready: threading.Semaphore) -> Iterator[Callable[..., LoopCalls]]:
    thread = CoroutineThread("test-coroutines")
    opened = []

    def begin(function: AsyncCall, **limits: Any) -> LoopCalls:
        calls = thread.open(function, CallLimits(**limits), ready.release, "fetch")
        opened.append(calls)
        return calls

    yield begin
    for calls in opened:
        calls.close()


def take(calls: LoopCalls, ready: threading.Semaphore, outcomes: int) -> list[Outcome]:
    taken: list[Outcome] = []
    while len(taken) < outcomes:
        assert ready.acquire(timeout=DEADLINE_S), "nobody was told"
        taken += calls.take()
    return taken


def test_thread_makes_all_calls(
    open_calls: Callable[..., LoopCalls], ready: threading.Semaphore
) -> None:
    calls = open_calls(lambda n: sleep_for(n % 3), concurrency=50)

    for start in range(0, 5000, 100):
        calls.start([(n, n) for n in range(start, start + 100)])

    taken = take(calls, ready, 5000)
    assert sorted(each.number for each in taken) == list(range(5000))
    assert all(each.result == each.number % 3 for each in taken)


def test_all_calls_share_one_thread_which_is_not_theirs(
    open_calls: Callable[..., LoopCalls], ready: threading.Semaphore
) -> None:
    async def where(_: int) -> tuple[str, int]:
        return threading.current_thread().name, id(asyncio.get_running_loop())

    first, second = open_calls(where), open_calls(where)
    first.start([(0, 0)])
    (one,) = take(first, ready, 1)
    second.start([(0, 0)])
    (other,) = take(second, ready, 1)

    assert one.result == other.result
    assert one.result[0] == "test-coroutines"


def test_loop_ends_with_the_last_calls_and_begins_again(ready: threading.Semaphore) -> None:
    """An executor without such tasks has no such thread; after a restart it has one again."""
    thread = CoroutineThread("test-coroutines-end")
    for _ in range(2):
        calls = thread.open(sleep_for, CallLimits(), ready.release, "fetch")
        (runs,) = (t for t in threading.enumerate() if t.name == "test-coroutines-end")
        calls.start([(1, 1)])
        take(calls, ready, 1)
        calls.close()
        runs.join(DEADLINE_S)

        assert not runs.is_alive()


def test_close_does_not_wait_for_code_that_blocks(ready: threading.Semaphore) -> None:
    release = threading.Event()
    begun = threading.Event()

    async def block(_: int) -> None:
        begun.set()
        release.wait(DEADLINE_S)

    thread = CoroutineThread("test-coroutines-blocked")
    calls = thread.open(block, CallLimits(), ready.release, "fetch")
    calls.start([(0, 0)])
    assert begun.wait(DEADLINE_S)

    calls.close()

    release.set()


def test_code_that_blocks_is_told_of(
    caplog: pytest.LogCaptureFixture,
    open_calls: Callable[..., LoopCalls],
    ready: threading.Semaphore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gearpy.transport.loop.coroutines._BLOCKED_S", -1.0)
    calls = open_calls(sleep_for)

    with caplog.at_level(logging.WARNING):
        calls.start([(0, 0)])
        take(calls, ready, 1)

    assert "calls of 'fetch' had to wait" in caplog.text
