"""Autoscale follows the load, and nothing but the load."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.scaling.autoscale import AppLoad, Autoscale, ScaleDecision, StepLoad
from gearpy.messages.summaries import ScaleBounds
from tests.core.scaling.scaling_build import (
    BOUNDS,
    COOLDOWN_MS,
    COUNT,
    POINT_MS,
    READ,
    WRITE,
    Pipeline,
    a_dag,
    recorded_load,
)

_HOUR_MS = 3_600_000


@given(
    load=st.integers(1, 7),
    seed=st.integers(0, 1000),
    knows_lag=st.booleans(),
    noise=st.floats(0, 0.2),
)
@settings(deadline=None, max_examples=40)
def test_a_load_that_doubles_and_halves_is_followed_within_two_cooldowns(
    *, load: int, seed: int, knows_lag: bool, noise: float
) -> None:
    rate = load * 70.0
    app = Pipeline(tasks=load, seed=seed, knows_lag=knows_lag)
    app.run(2 * COOLDOWN_MS, rate, noise=noise)

    app.run(2 * COOLDOWN_MS, 2 * rate, noise=noise)
    assert 100 * app.tasks > 2 * rate, "it keeps up"
    app.run(4 * COOLDOWN_MS, 2 * rate, noise=noise)
    app.run(2 * COOLDOWN_MS, rate, noise=noise)

    assert app.tasks <= 1.2 * load + 1, "it has shrunk"
    assert 100 * app.tasks > rate


@given(st.floats(20, 900), st.integers(0, 1000), st.floats(0, 0.3))
@settings(deadline=None, max_examples=15)
def test_noise_makes_no_tasks_come_and_go(rate: float, seed: int, noise: float) -> None:
    app = Pipeline(seed=seed)
    app.run(10 * COOLDOWN_MS, rate, noise=noise)  # It finds out how many it needs.
    found = len(app.changes)

    app.run(_HOUR_MS, rate, noise=noise)

    later = [tasks for _, tasks in app.changes[found:]]
    assert len(later) <= 1, f"from {app.changes[:found]} on: {later}"
    assert all(two - one >= COOLDOWN_MS for (one, _), (two, _) in pairwise(app.changes))


@pytest.mark.parametrize("knows_lag", [True, False])
def test_a_recorded_load_is_followed(*, knows_lag: bool) -> None:
    """Ten times as slow as it was, so that there are changes to follow: 36 minutes with a burst."""
    app = Pipeline(knows_lag=knows_lag)
    hours = 0.0
    for rate in recorded_load():
        before = app.now_ms
        app.run(10 * POINT_MS, 0.4 * rate)
        hours += app.tasks * (app.now_ms - before) / _HOUR_MS
    needed = sum(0.4 * rate * 10 * POINT_MS / _HOUR_MS / 70 for rate in recorded_load())

    assert app.waiting < 1, "all that came is done"
    assert all(two - one >= COOLDOWN_MS for (one, _), (two, _) in pairwise(app.changes))
    assert hours < (1.5 if knows_lag else 2) * needed, "tasks that have nothing to do go"
    ways = [two > one for (_, one), (_, two) in pairwise(app.changes) if two != one]
    assert sum(one != two for one, two in pairwise(ways)) <= (7 if knows_lag else 10), (
        "it goes up and down with the load"
    )


def test_with_event_time_one_change_finds_the_tasks_for_a_larger_load() -> None:
    app = Pipeline(tasks=2)
    app.run(2 * COOLDOWN_MS, 120)

    app.run(5 * COOLDOWN_MS, 480)

    assert [tasks for _, tasks in app.changes] == [2, 6, 6], "the others are of executors alone"
    assert app.executors == 8, "all tasks together would keep 5.4 executors busy"


def busy(count: float, *, held_back: float = 0.0, executors: int = 2) -> AppLoad:
    return AppLoad(
        {
            READ: StepLoad(100, 100, 0.1, held_back),
            COUNT: StepLoad(100, 100, count, 0.0),
            WRITE: StepLoad(100, 100, 0.05, 0.0),
        },
        executors,
    )


def decided(scaler: Autoscale, load: AppLoad, *, cooldowns: float = 1.5) -> list[ScaleDecision]:
    times = range(0, int(cooldowns * COOLDOWN_MS) + 1, POINT_MS)
    decisions = [scaler.on_load(load, now_ms, wall_ms=now_ms) for now_ms in times]
    return [each for each in decisions if each is not None]


def a_scaler(tasks: int = 2, bounds: ScaleBounds = BOUNDS, executors: int = 2) -> Autoscale:
    return Autoscale(a_dag(tasks, bounds), executors=executors, cooldown_ms=COOLDOWN_MS, now_ms=0)


def test_a_decision_says_why() -> None:
    scaler = a_scaler()

    (decision,) = decided(scaler, busy(0.95))

    assert decision == ScaleDecision(
        tasks={"count-1": 3},
        executors=3,
        reason="count-1 x2 to x3: work for 1.9, each is to be busy for 70%; "
        "executors x2 to x3: work for 2.0, each is to be busy for 70%",
    )
    step, executors = scaler.shown()
    assert (step.text, step.at_ms) == (decision.reason.partition(";")[0], COOLDOWN_MS)
    assert executors.text == decision.reason.partition("; ")[2]


def test_sources_that_are_held_back_make_it_grow_more() -> None:
    (decision,) = decided(a_scaler(), busy(1.0, held_back=0.5))

    assert decision.tasks == {"count-1": 6}


def test_within_its_aim_nothing_is_done() -> None:
    scaler = a_scaler()

    assert not decided(scaler, busy(0.6), cooldowns=5)
    assert [each.work for each in scaler.shown()] == [pytest.approx(1.2), pytest.approx(1.35)]


def test_bounds_hold() -> None:
    narrow = ScaleBounds(least=2, most=3)

    assert [each.tasks for each in decided(a_scaler(2, narrow), busy(1.0, held_back=0.9))] == [
        {"count-1": 3}
    ]
    assert not [
        each for each in decided(a_scaler(2, narrow), busy(0.01), cooldowns=3) if each.tasks
    ]


def test_tasks_outside_of_the_bounds_come_back_into_them() -> None:
    (decision,) = decided(a_scaler(1, ScaleBounds(least=4, most=4), executors=1), busy(0.1))

    assert decision.tasks == {"count-1": 4}
    assert decision.reason == "count-1 x1 to x4: it is to be from x4 to x4"


def test_a_step_with_one_choice_is_left_alone() -> None:
    assert not a_scaler(2, ScaleBounds(least=2, most=2)).is_on


def test_what_was_measured_before_a_pause_does_not_count() -> None:
    scaler = a_scaler()
    for now_ms in range(0, COOLDOWN_MS, POINT_MS):
        assert scaler.on_load(busy(1.0), now_ms, wall_ms=now_ms) is None
    scaler.on_pause()

    assert scaler.on_load(busy(1.0), COOLDOWN_MS, wall_ms=0) is None


def with_slots(load: AppLoad, free: float | None) -> AppLoad:
    return load._replace(free_slots=free)


def test_where_no_slot_is_free_nothing_is_tried_and_that_is_said() -> None:
    scaler, load = a_scaler(), busy(1.0, held_back=0.5, executors=4)

    assert not decided(scaler, with_slots(load, 0), cooldowns=8)
    assert scaler.shown()[0].text == "no free slot: count-1 x2 would be x6"
    assert scaler.shown()[0].at_ms == COOLDOWN_MS, "when that began"
    [decision] = decided(scaler, with_slots(load, 3), cooldowns=1.1)
    assert decision.tasks == {"count-1": 5}


def test_free_slots_are_asked_for_when_they_matter() -> None:
    content, scaler = a_scaler(), a_scaler()

    assert not decided(content, with_slots(busy(0.6), None), cooldowns=3)
    assert not decided(scaler, with_slots(busy(1.0), None), cooldowns=3)

    assert (content.asks_for_slots, scaler.asks_for_slots) == (False, True)
    assert decided(scaler, with_slots(busy(1.0), 1), cooldowns=1.1)


def test_fewer_tasks_need_no_slots() -> None:
    assert [each.tasks for each in decided(a_scaler(4), with_slots(busy(0.1), None), cooldowns=2)]


def test_a_change_that_failed_is_not_tried_again_soon() -> None:
    scaler = a_scaler()
    scaler.on_trouble("the state cannot be shared\nmore", 0)
    scaler.on_version(a_dag(2), 1)  # The one before is back.

    assert not decided(scaler, busy(1.0), cooldowns=9)
    assert scaler.shown()[0].text == "the state cannot be shared"
    assert decided(scaler, busy(1.0), cooldowns=11)


def test_steps_that_are_not_measured_are_left_alone() -> None:
    nothing = StepLoad(None, None, None, None)

    assert not decided(a_scaler(), AppLoad({READ: nothing, COUNT: nothing}, 2), cooldowns=5)
