"""A slow function of a key, asked once by all who want to know at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gearpy.transport.loop.shared_lookup import SharedLookup


class Asked:
    """A function of a key that notes what it is asked, and waits until it is told to go on."""

    def __init__(self, answer: Callable[[Any], Any] = str) -> None:
        self.keys: list[Any] = []
        self._answer = answer
        self.may_go_on = asyncio.Event()

    async def __call__(self, key: Any) -> Any:
        self.keys.append(key)
        await self.may_go_on.wait()
        return self._answer(key)


def lookup_of(function: Callable[[Any], Awaitable[Any]], **options: Any) -> SharedLookup:
    return SharedLookup(function, **{"size": 10, "ttl_ms": 100, "now_ms": lambda: 0, **options})


async def started(*asks: Any) -> list["asyncio.Task[Any]"]:
    tasks = [asyncio.ensure_future(ask) for ask in asks]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def test_two_hours_that_python_takes_for_equal_are_two_keys() -> None:
    """The hour that the end of summer time repeats; and all NaN are one."""
    hours = [
        datetime(2023, 10, 29, 2, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold) for fold in (0, 1)
    ]

    async def scenario() -> None:
        asked = Asked(lambda key: key.timestamp() if isinstance(key, datetime) else "nan")
        shared = lookup_of(asked)
        keys = [*hours, *hours, float("nan"), float("nan")]
        tasks = await started(*map(shared.ask, keys))
        asked.may_go_on.set()

        times = [hour.timestamp() for hour in hours]
        assert await asyncio.gather(*tasks) == [*times, *times, "nan", "nan"]
        assert len(asked.keys) == 3

    asyncio.run(scenario())


def test_equal_keys_share_one_call() -> None:
    async def scenario() -> None:
        asked = Asked()
        shared = lookup_of(asked)
        tasks = await started(*(shared.ask(key) for key in "aabab"))
        asked.may_go_on.set()

        assert await asyncio.gather(*tasks) == ["a", "a", "b", "a", "b"]
        assert await shared.ask("a") == "a"
        assert asked.keys == ["a", "b"]

    asyncio.run(scenario())


def test_nothing_found_is_an_answer() -> None:
    """It would be looked up again and again otherwise."""

    async def scenario() -> None:
        asked = Asked(lambda _: None)
        shared = lookup_of(asked)
        asked.may_go_on.set()

        assert [await shared.ask("a"), await shared.ask("a")] == [None, None]
        assert asked.keys == ["a"]

    asyncio.run(scenario())


def test_failure_is_shared_and_not_kept() -> None:
    """Who waits would only run into it again, one after the other."""

    def fail(key: str) -> None:
        raise OSError(key)

    async def scenario() -> None:
        asked = Asked(fail)
        shared = lookup_of(asked)
        tasks = await started(shared.ask("a"), shared.ask("a"))
        asked.may_go_on.set()

        errors = await asyncio.gather(*tasks, return_exceptions=True)
        assert [repr(error) for error in errors] == ["OSError('a')"] * 2
        with pytest.raises(OSError, match="a"):
            await shared.ask("a")
        assert asked.keys == ["a", "a"]

    asyncio.run(scenario())


def test_another_goes_on_when_the_one_who_asks_is_cancelled() -> None:
    async def scenario() -> None:
        asked = Asked()
        shared = lookup_of(asked)
        first, *others = await started(*(shared.ask("a") for _ in range(3)))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        asked.may_go_on.set()

        assert await asyncio.gather(*others) == ["a", "a"]
        assert asked.keys == ["a", "a"]

    asyncio.run(scenario())


def test_one_who_waits_may_be_cancelled() -> None:
    answers: list[Callable[[Any], Any]] = [str, {}.__getitem__]
    for answer in answers:

        async def scenario(answer: Callable[[Any], Any] = answer) -> None:
            asked = Asked(answer)
            shared = lookup_of(asked)
            first, second, third = await started(*(shared.ask("a") for _ in range(3)))
            second.cancel()
            asked.may_go_on.set()
            outcomes = await asyncio.gather(first, second, third, return_exceptions=True)

            assert type(outcomes[1]) is asyncio.CancelledError
            assert repr(outcomes[0]) == repr(outcomes[2])

        asyncio.run(scenario())


def test_key_that_cannot_be_hashed_is_an_error() -> None:
    async def scenario() -> None:
        with pytest.raises(TypeError, match="unhashable"):
            await lookup_of(Asked()).ask([])

    asyncio.run(scenario())
