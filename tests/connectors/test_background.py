"""Sources on threads of their own: `poll` and `from_async`."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

import gearpy as gp
from gearpy.errors import ConfigError, OperatorError
from gearpy.testing import check_source
from tests.eventually import eventually

LAST = 40


def pages(position: int | None) -> tuple[list[int], int]:
    """Pages of seven; behind the last one there is nothing for now."""
    first = position or 0
    found = list(range(first, min(first + 7, LAST)))
    return found, first + len(found)


async def numbers(position: int | None) -> AsyncIterator[tuple[int, int]]:
    for number in range(position or 0, LAST):
        if number % 5 == 0:
            await asyncio.sleep(0)
        yield number, number + 1


def changed_pages(position: dict[str, int] | None) -> tuple[list[int], dict[str, int]]:
    """The same by a position that is changed in place."""
    place = position or {"at": 0}
    found, place["at"] = pages(place["at"])
    return found, place


async def changed_numbers(
    position: dict[str, int] | None,
) -> AsyncIterator[tuple[int, dict[str, int]]]:
    place = position or {"at": 0}
    for number in range(place["at"], LAST):
        place["at"] = number + 1
        yield number, place


def read_all(source: gp.Source[Any], records: int) -> list[Any]:
    """Read so many records by hand, and close."""
    reader = source.open("0", None)
    found: list[Any] = []

    def has_all() -> bool:
        batch = reader.read_batch(3)
        found.extend(batch.values if batch else ())
        return len(found) >= records

    eventually(has_all)
    reader.close()
    return found


@pytest.mark.parametrize(
    "source",
    [
        lambda: gp.poll(pages, every="1ms"),
        lambda: gp.poll(changed_pages, every="1ms"),
        lambda: gp.from_async(numbers),
        lambda: gp.from_async(changed_numbers),
    ],
    ids=["poll", "poll in place", "from_async", "from_async in place"],
)
def test_sources_with_positions_keep_what_gearpy_relies_on(
    source: Callable[[], gp.Source[int]],
) -> None:
    check_source(source, records=LAST)


def test_a_function_without_a_position_is_called_again_and_loses_what_was_on_its_way() -> None:
    source = gp.poll(lambda: [1, 2], every="1ms")

    assert read_all(source, 5)[:5] == [1, 2, 1, 2, 1]
    assert source.replayable is False


def test_event_times_are_those_of_the_records() -> None:
    source = gp.poll(pages, every="1s", timestamp=lambda n: n * 1000, out_of_order="2s")
    reader = source.open("0", None)

    batch = eventually(lambda: reader.read_batch(3))

    assert batch.timestamps[0] == 0
    assert reader.watermark_ms == batch.timestamps[-1] - 2000
    reader.close()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (gp.poll(cast("Any", lambda _: [1]), every="1s"), r"poll.*return \(records, position\)"),
        (gp.poll(lambda: [1 // 0], every="1s"), "ZeroDivisionError"),
        (gp.from_async(cast("Any", lambda: [1])), "write async def, and yield records"),
    ],
)
def test_what_a_function_raises_or_returns_is_told_by_its_name(
    source: gp.Source[Any], text: str
) -> None:
    reader = source.open("0", None)

    def read() -> bool:
        reader.read_batch(3)
        return False

    with pytest.raises(OperatorError, match=text):
        eventually(read)


def test_a_stream_does_not_wait_for_a_thread_that_was_cancelled_or_has_called_exit() -> None:
    async def cancelled() -> AsyncIterator[int]:
        yield 1
        raise asyncio.CancelledError

    with pytest.raises(OperatorError, match="CancelledError"):
        read_all(gp.from_async(cancelled), 2)
    with pytest.raises(SystemExit, match="over"):
        read_all(gp.poll(lambda: sys.exit("over"), every="1s"), 1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gp.poll(cast("Any", [1, 2]), every="1s"), "no function that returns records"),
        (lambda: gp.poll(pages, every="0s"), "every is '0s', must be more than 0"),
        (lambda: gp.from_async(cast("Any", 5)), "no async function"),
    ],
)
def test_mistakes_are_told_when_the_program_is_made(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


def test_a_closed_reader_leaves_no_thread_and_no_generator() -> None:
    ended = threading.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0.001)
        finally:
            ended.set()

    assert read_all(gp.from_async(endless), 3)[:3] == [1, 1, 1]

    eventually(ended.is_set)
    eventually(lambda: not [t for t in threading.enumerate() if "from_async" in t.name])


def test_a_generator_whose_records_wait_keeps_its_loop() -> None:
    """A web socket answers for its life while the stream does not read."""
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.001)

    async def busy() -> AsyncIterator[int]:
        beating = asyncio.ensure_future(beat())
        try:
            for number in range(5_000):
                yield number
        finally:
            beating.cancel()

    reader = gp.from_async(busy).open("0", None)
    eventually(lambda: reader.read_batch(1))
    # It cannot end, as no more than a thousand records wait.
    eventually(lambda: beats > 50)
    found = 1
    while not reader.finished:
        batch = reader.read_batch(1024)
        found += len(batch) if batch else 0
    assert found == 5_000
