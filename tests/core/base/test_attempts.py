"""Calls: how many at once, how long, how often again."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.attempts import Attempts, CallLimits
from gearpy.errors import ConfigError


def some_attempts(calls: int = 0, **limits: Any) -> Attempts:
    """Return attempts with calls that wait; the values are their numbers."""
    attempts = Attempts(CallLimits(**limits), Random(1))
    attempts.add([(number, number) for number in range(calls)])
    return attempts


def test_no_more_run_than_may() -> None:
    attempts = some_attempts(3, concurrency=2)

    assert [attempts.begin(0), attempts.begin(0)] == [(0, 0), (1, 1)]
    assert attempts.begin(0) is None
    attempts.succeed(0)

    assert attempts.can_begin
    assert attempts.begin(0) == (2, 2)


def test_nothing_begins_where_nothing_waits() -> None:
    attempts = some_attempts()

    assert attempts.begin(0) is None
    assert attempts.wake_ms is None
    assert not attempts.can_begin


def test_failed_call_is_made_again_after_a_pause() -> None:
    attempts = some_attempts(1, retries=2, backoff_ms=100, timeout_ms=None)
    attempts.begin(0)

    assert not attempts.fail(0, 1000)
    first_ms = attempts.wake_ms
    assert first_ms is not None
    assert 1050 <= first_ms <= 1150
    attempts.wake(first_ms - 1)
    assert attempts.begin(first_ms) is None
    attempts.wake(first_ms)
    assert attempts.begin(first_ms) == (0, 0)
    assert not attempts.fail(0, 2000)
    second_ms = attempts.wake_ms
    assert second_ms is not None
    assert 2100 <= second_ms <= 2300
    attempts.wake(second_ms)
    attempts.begin(second_ms)

    assert attempts.fail(0, 3000)
    assert attempts.wake_ms is None


def test_success_forgets_failures() -> None:
    attempts = some_attempts(1, retries=1)
    attempts.begin(0)
    attempts.fail(0, 0)
    attempts.wake(10**6)
    attempts.begin(10**6)
    attempts.succeed(0)

    attempts.add([(0, "again")])
    attempts.begin(10**6)

    assert not attempts.fail(0, 10**6)


def test_without_a_timeout_nothing_is_overdue() -> None:
    attempts = some_attempts(1, timeout_ms=None)
    attempts.begin(0)

    assert attempts.overdue(10**12) == []
    assert attempts.wake_ms is None


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"concurrency": 0}, "concurrency is 0, must be at least 1"),
        ({"concurrency": 1.5}, "concurrency is 1.5, must be at least 1"),
        ({"timeout_ms": 0}, "timeout is 0, must be 1 ms or more"),
        ({"retries": -1}, "retries is -1, must be 0 or more"),
        ({"retries": True}, "retries is True, must be 0 or more"),
        ({"backoff_ms": -1}, "backoff_ms is -1, must be 0 or more"),
        ({"backoff_ms": 5, "backoff_max_ms": 4}, "backoff_max_ms is 4, must be backoff_ms or more"),
    ],
)
def test_wrong_limits_are_refused(limits: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        CallLimits(**limits)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        CallLimits(concurrency=0, retries=-1)

    assert len(caught.value.mistakes) == 2


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 3), st.lists(st.integers(0, 9)))
def test_every_call_is_over_once_and_never_too_many_run(
    seed: int, concurrency: int, retries: int, durations: list[int]
) -> None:
    """Calls of these durations that may fail, or take too long; time goes to where it matters."""
    rng = Random(seed)
    limits = CallLimits(concurrency=concurrency, retries=retries, timeout_ms=6, backoff_ms=4)
    attempts = Attempts(limits, rng)
    attempts.add(list(enumerate(durations)))
    ends: dict[int, int] = {}
    begun = [0] * len(durations)
    over: list[int] = []
    now_ms = 0
    while len(over) < len(durations):
        attempts.wake(now_ms)
        for number in attempts.overdue(now_ms):
            del ends[number]
            over += [number] * attempts.fail(number, now_ms)
        for number in [number for number, end_ms in ends.items() if end_ms <= now_ms]:
            del ends[number]
            if rng.random() < 0.5:
                attempts.succeed(number)
                over.append(number)
            else:
                over += [number] * attempts.fail(number, now_ms)
        while (call := attempts.begin(now_ms)) is not None:
            begun[call[0]] += 1
            ends[call[0]] = now_ms + call[1]
        assert len(ends) <= concurrency
        later = [*ends.values(), *([] if attempts.wake_ms is None else [attempts.wake_ms])]
        now_ms = max(now_ms, min(later, default=now_ms))
    assert sorted(over) == list(range(len(durations)))
    assert all(1 <= times <= 1 + retries for times in begun)
