"""Coroutines on records: order, back-pressure, event time, restarts, errors."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS
from gearpy.messages.data import Message
from gearpy.messages.late_time import late_time, promise_of
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.asynchronous import AsyncFunction, AsyncStage, lookup_function
from gearpy.testing.driver import TaskDriver
from tests.task.stage_build import results_of


async def sleep_for(duration_ms: int) -> int:
    await asyncio.sleep(duration_ms / 1000)
    return duration_ms


async def take_an_hour(_: Any) -> None:
    await asyncio.sleep(3600)


async def at_once(value: Any) -> Any:
    return value


def a_driver(
    function: Callable[[Any], Awaitable[Any]] = sleep_for,
    *,
    behind: Stage | None = None,
    resume: Any = None,
    **options: Any,
) -> TaskDriver:
    def make(context: TaskContext) -> ChainTask:
        stages = [AsyncStage(context, "fetch", AsyncFunction(function, **options))]
        return ChainTask(context, lambda _: [*stages, *([behind] if behind else [])])

    return TaskDriver(make, resume=resume)


def values_of(driver: TaskDriver) -> list[Any]:
    """Return the values that came out since the last time."""
    return [message.value for message in driver.take()]


# -- results -----------------------------------------------------------------------------------


def test_results_keep_the_order_of_their_records() -> None:
    driver = a_driver()

    driver.send_all(*map(Message, [30, 10, 20]))
    driver.advance("25ms")
    assert driver.take() == []
    driver.advance("10ms")

    assert values_of(driver) == [30, 10, 20]


def test_results_come_as_they_are_done() -> None:
    driver = a_driver(ordered=False)

    driver.send_all(*map(Message, [30, 10, 20]))
    driver.advance("11ms")
    assert values_of(driver) == [10]
    driver.advance("30ms")

    assert values_of(driver) == [20, 30]


# -- event time --------------------------------------------------------------------------------


def test_records_in_flight_hold_the_clock() -> None:
    driver = a_driver()

    driver.send(10, timestamp=5)
    driver.watermark(100)
    assert (driver.clock.clock_ms, driver.clock.watermark_ms) == (5, 5)
    driver.advance("20ms")

    assert (driver.clock.clock_ms, driver.clock.watermark_ms) == (100, 100)


# -- restarts ----------------------------------------------------------------------------------


def test_records_in_flight_are_called_again_after_a_restart() -> None:
    driver = a_driver()
    driver.send(5, timestamp=1)
    driver.advance("10ms")
    driver.send_all(Message(30, 7), Message(10, 8))
    driver.watermark(100)
    resume = driver.cut()
    driver.advance("50ms")
    assert values_of(driver) == [5, 30, 10]
    driver.stop(completed=False)

    again = a_driver(resume=resume)
    assert (again.clock.clock_ms, again.clock.watermark_ms) == (7, 7)
    again.advance("40ms")

    assert again.take() == [Message(30, 7), Message(10, 8)]
    assert again.clock.watermark_ms == 100


def test_a_late_record_in_flight_is_late_after_a_restart_too() -> None:
    """Else it would take its place by its own time, before records that came in time."""
    driver = a_driver()
    stage: Any = driver.task._stages[0]  # noqa: SLF001
    list(results_of(stage, [5], [late_time(3, promised_ms=9)]))

    restored: Any = a_driver(resume=driver.cut()).task._stages[0]  # noqa: SLF001

    assert promise_of(next(iter(restored._window.held())).time_ms) == 9  # noqa: SLF001
    assert restored._has_late  # noqa: SLF001


def test_restart_at_the_end_of_the_stream_gives_what_was_in_flight() -> None:
    """Nothing comes any more that would tell of the end again."""
    driver = a_driver()
    driver.send(30, timestamp=1)
    driver.end()
    resume = driver.cut()
    driver.stop(completed=False)

    again = a_driver(resume=resume)
    again.advance("40ms")

    assert values_of(again) == [30]
    assert again.clock.clock_ms == MAX_MS


def test_record_that_is_no_plain_data_fails_the_snapshot() -> None:
    driver = a_driver(take_an_hour)
    driver.send(object())

    with pytest.raises(OperatorError, match="operator 'fetch': its snapshot cannot be stored"):
        driver.cut()


def test_stop_cancels_what_is_in_flight() -> None:
    """It would go on in vain."""
    cancelled = []

    async def hang(value: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            cancelled.append(value)

    driver = a_driver(hang, timeout_ms=None)
    driver.send_all(*map(Message, range(3)))
    driver.advance("1ms")

    driver.stop(completed=False)
    driver.advance("1ms")

    assert sorted(cancelled) == [0, 1, 2]


# -- errors ------------------------------------------------------------------------------------


async def fail(value: int) -> int:
    raise ValueError(f"not {value}")


def test_error_that_remains_names_operator_and_record() -> None:
    driver = a_driver(fail)

    with pytest.raises(OperatorError, match="not 7") as caught:
        driver.send(7, timestamp=3)

    error = caught.value
    assert (error.operator, error.record, error.event_time_ms) == ("fetch", "7", 3)
    assert error.cause == "ValueError: not 7"
    assert "test_asynchronous.py" in error.source
    assert "raise ValueError" in error.source_line


def test_timeout_is_such_an_error() -> None:
    driver = a_driver(timeout_ms=20)
    driver.send(1000)

    with pytest.raises(OperatorError, match="TimeoutError: no result within 20 ms"):
        driver.advance("50ms")


# -- wrong use ---------------------------------------------------------------------------------


class Caller:
    async def __call__(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize("function", [at_once, partial(at_once), Caller(), Caller().__call__])
def test_coroutine_functions_are_known(function: Any) -> None:
    assert AsyncFunction(function).function is function


def plain(value: Any) -> Any:
    return value


@pytest.mark.parametrize("function", [plain, partial(plain), len, lambda n: at_once(n + 1), 5])
def test_other_functions_are_refused(function: Any) -> None:
    with pytest.raises(ConfigError, match="is no coroutine function: define it with `async def`"):
        AsyncFunction(function)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        AsyncFunction(plain, concurrency=0, retries=-1)

    assert len(caught.value.mistakes) == 3


# -- lookup ------------------------------------------------------------------------------------


def a_lookup(function: AsyncFunction) -> TaskDriver:
    return TaskDriver(lambda c: ChainTask(c, lambda _: [AsyncStage(c, "look up", function)]))


def test_lookup_asks_once_for_a_key() -> None:
    """Whether records come together or later; a result is the record with what was found."""
    asked = []

    async def name_of(user: int) -> str:
        asked.append(user)
        await asyncio.sleep(0.01)
        return f"user {user}"

    driver = a_lookup(lookup_function(name_of, lambda n: n % 2))
    driver.send_all(*map(Message, range(4)))
    driver.advance("20ms")
    driver.send(4)
    driver.advance("5ms")

    assert asked == [0, 1]
    assert values_of(driver) == [(n, f"user {n % 2}") for n in range(5)]


def test_lookup_combines_as_it_is_told() -> None:
    asked = []

    async def twice(key: int) -> int:
        asked.append(key)
        return key * 2

    driver = a_lookup(lookup_function(twice, lambda n: n, ttl_ms=50, combine=lambda a, b: a + b))
    for _ in range(3):
        driver.send(1)
        driver.advance("30ms")

    assert values_of(driver) == [3, 3, 3]
    assert asked == [1, 1]


def test_each_task_has_a_cache_of_its_own() -> None:
    asked = []

    async def note(key: int) -> int:
        asked.append(key)
        return key

    function = lookup_function(note, lambda n: n)
    for _ in range(2):
        driver = a_lookup(function)
        driver.send(1)
        driver.advance("5ms")

    assert asked == [1, 1]


def test_error_of_a_key_is_one_of_the_record() -> None:
    driver = a_lookup(lookup_function(at_once, lambda record: record["user"]))

    with pytest.raises(OperatorError, match="KeyError: 'user'") as caught:
        driver.send({"name": "a"})

    assert caught.value.record == "{'name': 'a'}"
