"""The restart budget: how many in which window, after what pause."""

from itertools import accumulate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.restart import GiveUp, RestartAfter, RestartBudget, RestartPolicy
from gearpy.errors import ConfigError


def a_budget(
    *, max_restarts: int = 3, window_ms: int = 1_000, jitter: float = 0.0
) -> RestartBudget:
    return RestartBudget(
        RestartPolicy(
            max_restarts=max_restarts,
            window_ms=window_ms,
            backoff_ms=100,
            backoff_max_ms=500,
            jitter=jitter,
        )
    )


def test_pauses_grow_up_to_their_maximum() -> None:
    budget = a_budget(max_restarts=5, window_ms=100_000)

    decisions = [budget.on_failure(now_ms, Random(1)) for now_ms in range(5)]

    assert decisions == [RestartAfter(delay_ms) for delay_ms in (100, 200, 400, 500, 500)]


def test_spent_budget_gives_up() -> None:
    """One failure more than allowed ends it. Gearpump: `RestartPolicy.allowRestart`."""
    budget = a_budget(max_restarts=2)

    decisions = [budget.on_failure(now_ms, Random(1)) for now_ms in (0, 1, 2)]

    assert decisions[2] == GiveUp()


def test_quiet_window_restores_budget_and_first_pause() -> None:
    """A failure a week is no reason to give up; Gearpump's whole-life counter would."""
    budget = a_budget(max_restarts=1)

    decisions = [budget.on_failure(now_ms, Random(1)) for now_ms in (0, 999, 1_000, 1_500)]

    assert decisions == [RestartAfter(100), GiveUp(), RestartAfter(100), GiveUp()]


def test_policy_lists_all_mistakes() -> None:
    with pytest.raises(ConfigError) as caught:
        RestartPolicy(
            max_restarts=1, window_ms=0, backoff_ms=2, backoff_max_ms=1, factor=0.5, jitter=2
        )

    assert len(caught.value.mistakes) == 4


@given(
    gaps_ms=st.lists(st.integers(0, 400), max_size=60),
    policy=st.builds(
        RestartPolicy,
        max_restarts=st.integers(0, 5),
        window_ms=st.integers(1, 1_000),
        factor=st.floats(1, 1e9),
        jitter=st.floats(0, 1),
    ),
    rng=st.builds(Random, st.integers()),
)
def test_no_window_holds_more_restarts_than_allowed(
    gaps_ms: list[int], policy: RestartPolicy, rng: Random
) -> None:
    budget = RestartBudget(policy)
    restarts: list[int] = []

    for now_ms in accumulate(gaps_ms):
        decision = budget.on_failure(now_ms, rng)
        recent = [t for t in restarts if t > now_ms - policy.window_ms]
        if isinstance(decision, RestartAfter):
            restarts.append(now_ms)
            assert 0 <= decision.delay_ms <= policy.backoff_max_ms
            assert len(recent) < policy.max_restarts
        else:
            assert len(recent) == policy.max_restarts
