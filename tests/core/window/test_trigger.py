"""Triggers as people write them; what they do is in `test_panes`."""

from collections.abc import Callable
from typing import Any

import pytest

from gearpy.core.window.trigger import (
    AT_CLOSE,
    EACH_RECORD,
    AfterWatermark,
    AllOf,
    AnyOf,
    EveryCount,
    EveryEvent,
    EveryWall,
    Pending,
    Repeat,
    after_count,
    after_watermark,
    all_of,
    any_of,
    by_wall_time,
    check_trigger,
    delays_of,
    every,
    phases_of,
)
from gearpy.errors import ConfigError


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (every, "not none: write every"),
        (lambda: every("1s", count=3), "not a duration and count"),
        (lambda: every(count=0), "every: count is 0, must be"),
        (lambda: every(count=True), "every: count is True, must be"),
        (lambda: every("0s"), "every is 0 ms, must be"),
        (lambda: every(event="0s"), "every: event is 0 ms, must be"),
        (lambda: after_count(-1), "after_count: count is -1"),
        (any_of, "any_of has no triggers"),
        (all_of, "all_of has no triggers"),
        (lambda: any_of(after_watermark()), "any_of cannot take AfterWatermark"),  # type: ignore[arg-type]
        (lambda: after_watermark(late=3), "after_watermark cannot take 3"),  # type: ignore[arg-type]
        (lambda: check_trigger("1s"), "triggering cannot take '1s'"),
    ],
)
def test_mistakes_say_what_to_write(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


def test_phases_of_triggers() -> None:
    """A repeat alone fires early and late; late is each record where nothing else was said."""
    by_two = every(count=2)

    assert phases_of(AT_CLOSE) == (None, EACH_RECORD)
    assert phases_of(after_watermark(early=by_two)) == (by_two, EACH_RECORD)
    assert phases_of(after_watermark(late=by_two)) == (None, by_two)
    assert phases_of(by_two) == phases_of(after_count(2)) == (by_two, by_two)


PENDING = Pending(records=3, oldest_ms=100, since_ms=5000, event_ms=110, now_ms=5020)


@pytest.mark.parametrize(
    ("trigger", "holds"),
    [
        (every(count=3), True),
        (every(count=4), False),
        (every(event="10ms"), True),
        (every(event="11ms"), False),
        (every("20ms"), True),
        (every("21ms"), False),
        (any_of(every(count=4), every(event="10ms")), True),
        (any_of(every(count=4), every(event="11ms")), False),
        (all_of(every(count=3), every(event="11ms")), False),
        (all_of(every(count=3), any_of(every("21ms"), every(event="10ms"))), True),
    ],
)
def test_when_triggers_hold(trigger: Repeat, holds: bool) -> None:  # noqa: FBT001 - a table
    assert trigger.holds(PENDING) == holds


def test_windows_over_wall_time_have_no_other_clock() -> None:
    trigger = any_of(every(event="3ms"), all_of(every(count=1), every(event="5ms"), every("7ms")))

    assert by_wall_time(trigger) == AnyOf(
        (EveryWall(3), AllOf((EveryCount(1), EveryWall(5), EveryWall(7))))
    )


def test_delays_after_which_triggers_are_asked() -> None:
    trigger = any_of(
        every(event="3ms"),
        all_of(every(count=1), every(event="5ms"), every(event="3ms"), every("7ms")),
    )

    assert delays_of(trigger, EveryEvent) == [3, 5]
    assert delays_of(trigger, EveryWall) == [7]
    assert delays_of(None, EveryWall) == []


def test_triggers_are_values() -> None:
    """Equal ones are one, so that two versions of a program can be compared."""
    assert after_watermark(early=every("1m")) == AfterWatermark(early=EveryWall(60_000))
    assert hash(any_of(every("3ms"))) == hash(any_of(every("3ms")))
