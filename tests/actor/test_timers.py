"""The timer thread, without actors."""

import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from gearpy.actor.timers import TimerThread
from gearpy.errors import ConfigError
from tests.actor.build import WAIT_S, Log, drained, taken
from tests.eventually import eventually


@pytest.fixture
def timers() -> Iterator[TimerThread]:
    timers = TimerThread()
    yield timers
    timers.close()


def test_calls_come_in_order_of_time_not_of_scheduling(timers: TimerThread, log: Log) -> None:
    timers.call_later(60_000, lambda: log.put("late"))
    timers.call_later(500, lambda: log.put("soon"))
    timers.call_later(0, lambda: log.put("now"))

    assert taken(log, 2) == ["now", "soon"]
    assert drained(log) == []


def test_no_call_comes_early(timers: TimerThread, log: Log) -> None:
    begin_s = time.monotonic()

    timers.call_later(20, lambda: log.put(time.monotonic()))

    assert taken(log, 1)[0] - begin_s >= 0.02


def test_repeated_calls_go_on_until_cancelled(timers: TimerThread, log: Log) -> None:
    ticks: SimpleQueue[int] = SimpleQueue()

    def tick() -> None:
        ticks.put(1)
        if ticks.qsize() == 3:
            timer.cancel()
            timers.call_later(10, lambda: log.put("after"))

    timer = timers.call_every(1, tick)

    assert taken(log, 1) == ["after"]
    assert ticks.qsize() == 3


def test_beats_of_one_length_come_together_however_they_began(timers: TimerThread) -> None:
    for _ in range(3):
        timers.call_every(20, lambda: None)
        threading.Event().wait(0.003)

    def is_one_beat() -> bool:
        due = {due_s for due_s, _, _ in [*timers._heap]}  # noqa: SLF001 - nobody else can see it
        return len(due) == 1

    eventually(is_one_beat)


def test_cancelled_calls_are_not_made(timers: TimerThread, log: Log) -> None:
    is_open = threading.Event()
    timers.call_later(0, lambda: is_open.wait(WAIT_S))  # No call is made meanwhile.
    cancelled = [timers.call_later(1, lambda: log.put("no")) for _ in range(500)]
    for timer in cancelled:
        timer.cancel()
        timer.cancel()
    timers.call_later(2, lambda: log.put("yes"))
    is_open.set()

    assert taken(log, 1) == ["yes"]
    assert drained(log) == []


def test_failing_call_does_not_end_the_others(timers: TimerThread, log: Log) -> None:
    def fail() -> None:
        raise SystemExit(1)

    timers.call_later(0, fail)
    timers.call_later(1, lambda: log.put("still here"))

    assert taken(log, 1) == ["still here"]


def test_closed_timers_call_no_more() -> None:
    timers, called = TimerThread("gearpy-test-timers"), threading.Event()
    timers.call_later(60_000, called.set)
    thread = next(t for t in threading.enumerate() if t.name == "gearpy-test-timers")

    timers.close()
    timers.call_later(0, called.set)
    thread.join(WAIT_S)

    assert not thread.is_alive()
    assert not called.is_set()


def test_interval_must_be_positive(timers: TimerThread) -> None:
    """It would fill the mailbox as fast as it can."""
    with pytest.raises(ConfigError, match="0 ms"):
        timers.call_every(0, lambda: None)
