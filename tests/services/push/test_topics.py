"""Who watches the same is sent the same, and it is asked for once; slow viewers get the newest."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from gearpy.errors import ConnectionLost
from gearpy.services.push.frames import HEARTBEAT, HELLO, frame, id_of
from gearpy.services.push.topics import TooManyViewers, Topics
from tests.eventually import DEADLINE_S

_SOON_S = 0.001


class Counter:
    def __init__(self) -> None:
        self.looks = 0
        self.again: list[bool] = []
        self.error: Exception | None = None

    def __call__(self, again: bool) -> bytes | None:  # noqa: FBT001 - topics call it
        self.looks += 1
        self.again.append(again)
        if self.error is not None:
            raise self.error
        return b"%d" % self.looks


async def _next(frames: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(DEADLINE_S):
        return await anext(frames)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110 - what is counted is counted on another thread
            await asyncio.sleep(_SOON_S)


def test_two_viewers_cost_one_look() -> None:
    """The second one gets the newest frame at once; without viewers nobody looks."""
    counter = Counter()

    async def run() -> None:
        topics = Topics(viewers_max=2)
        first = topics.watch([("a", counter, 3600, 1)])
        assert await _next(first) == HELLO
        assert await _next(first) == b"1"
        second = topics.watch([("a", Counter(), 3600, 1)], [b"for you"])
        assert [await _next(second) for _ in range(3)] == [HELLO, b"for you", b"1"]
        with pytest.raises(TooManyViewers):
            topics.watch([("a", counter, 3600, 1)])
        await first.aclose()
        await second.aclose()
        third = topics.watch([("a", counter, 3600, 1)])
        assert [await _next(third) for _ in range(2)] == [HELLO, b"2"]
        topics.close()

    asyncio.run(run())


def test_a_slow_viewer_gets_the_newest_view_and_the_last_lines() -> None:
    view, log = Counter(), Counter()

    async def run() -> None:
        topics = Topics(viewers_max=1)
        frames = topics.watch([("view", view, _SOON_S, 1), ("log", log, _SOON_S, 3)])
        assert await _next(frames) == HELLO
        got = [await _next(frames)]
        await _until(lambda: view.looks > 20 and log.looks > 20)
        got += [await _next(frames) for _ in range(6)]
        numbers = [int(each) for each in got]
        assert max(numbers) >= 15
        topics.close()

    asyncio.run(run())


def test_nothing_new_is_a_heartbeat() -> None:
    async def run() -> None:
        topics = Topics(viewers_max=1, heartbeat_s=_SOON_S)
        frames = topics.watch([("a", lambda _: None, 3600, 1)])
        assert [await _next(frames) for _ in range(3)] == [HELLO, HEARTBEAT, HEARTBEAT]
        topics.close()

    asyncio.run(run())


def test_trouble_is_told_and_its_end_too() -> None:
    """A cluster that is away, since when; and then a view even if it has not changed."""
    counter = Counter()
    counter.error = ConnectionLost("the master is away")

    async def run() -> None:
        topics = Topics(viewers_max=1)
        frames = topics.watch([("a", counter, _SOON_S, 1)])
        assert await _next(frames) == HELLO
        event, data, *_ = (await _next(frames)).decode().splitlines()
        assert event == "event: trouble"
        told = json.loads(data.removeprefix("data: "))
        assert told["error"] == "the master is away"
        assert told["since_ms"] > 0
        counter.error = None
        async with asyncio.timeout(DEADLINE_S):
            while b"trouble" in (await _next(frames)):
                pass
        assert True in counter.again
        topics.close()

    asyncio.run(run())


def test_viewers_end_with_the_services() -> None:
    async def run() -> None:
        topics = Topics(viewers_max=1)
        frames = topics.watch([("a", lambda _: None, 3600, 1)])
        assert await _next(frames) == HELLO
        waiting = asyncio.ensure_future(_next(frames))
        await asyncio.sleep(_SOON_S)
        topics.close()
        with pytest.raises(StopAsyncIteration):
            await waiting

    asyncio.run(run())


def test_events_are_written_by_the_rules() -> None:
    assert frame("view", b"{}", event_id=7) == b"id: 7\nevent: view\ndata: {}\n\n"
    assert frame("log", b"1") == b"event: log\ndata: 1\n\n"
    assert [id_of(each) for each in ("12", None, "", "x", "-1", "1" * 16)] == [12, *[None] * 5]
