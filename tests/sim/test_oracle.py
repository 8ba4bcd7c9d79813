"""Windows and joins of every kind, compared with what they mean, in examples that are drawn.

`bin/bench oracle` runs more of the same. A wrong example is in the text of the failure, made as
small as it becomes; `run_examples(kind, seed, 1)` finds it again.
"""

from dataclasses import replace
from typing import Any

import pytest

from gearpy.core.join.interval import IntervalJoin
from gearpy.core.window.aligned import AlignedPanes
from gearpy.core.window.trigger import EveryCount
from gearpy.core.window.windows import SlidingWindows
from gearpy.ids import MAX_MS
from tests.oracle.duck import by_duckdb, by_numbers
from tests.oracle.examples import KINDS, run_examples
from tests.oracle.joins import JoinPlan, Side, accepted, joined
from tests.oracle.windows import Firing, WindowPlan, WindowReplay

EXAMPLES = 5
SEED = 1


pytestmark = pytest.mark.usefixtures("no_log")


@pytest.mark.parametrize("kind", KINDS)
def test_programs_give_what_they_mean(kind: str) -> None:
    """Results are those of the definition; where order matters, they come to the same."""
    outcome = run_examples(kind, SEED, EXAMPLES)

    assert not outcome.problem, f"seed {SEED}, {kind}: {outcome.problem}"
    assert outcome.done >= EXAMPLES // 2


def first_found(kind: str, *, seed: int = SEED, examples: int = 200) -> str:
    problem = run_examples(kind, seed, examples, shrinks=False).problem
    assert problem, f"none of {examples} examples has found it"
    return problem


def test_a_count_trigger_that_waits_for_one_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EveryCount, "holds", lambda self, pending: pending.records > self.records)

    assert "missing" in first_found("windows", seed=8)


def test_a_window_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    starts_of = SlidingWindows.starts_of
    monkeypatch.setattr(
        SlidingWindows, "starts_of", lambda self, time_ms: starts_of(self, time_ms)[-1:]
    )

    assert "missing" in first_found("windows-parallel", seed=7)


def test_lateness_that_is_too_short_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    expiry_ms = AlignedPanes._expiry_ms  # noqa: SLF001 - the bug is planted there
    monkeypatch.setattr(
        AlignedPanes, "_expiry_ms", lambda self, bounds: (bounds[1] + expiry_ms(self, bounds)) // 2
    )

    assert first_found("windows-crashes", seed=7, examples=60)


def test_panes_that_do_not_come_back_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = AlignedPanes.restore
    monkeypatch.setattr(
        AlignedPanes, "restore", lambda self, clock_ms, _: restore(self, clock_ms, [])
    )

    assert "missing" in first_found("windows-crashes", seed=8, examples=60)


def test_an_interval_that_is_too_short_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    create = IntervalJoin.__init__

    def shorter(self: IntervalJoin, *, after_ms: int, **others: Any) -> None:
        create(self, after_ms=max(0, after_ms - 1), **others)

    monkeypatch.setattr(IntervalJoin, "__init__", shorter)

    assert first_found("joins-duckdb", seed=9, examples=60)


def replayed(plan: WindowPlan, *steps: tuple[str, int] | int) -> list[tuple[Any, ...]]:
    """Return key, number of records, and the rest of each firing; a number is a watermark."""
    replay = WindowReplay(plan)
    fired: list[Firing] = []
    for step in (*steps, MAX_MS):
        if isinstance(step, int):
            fired += replay.on_watermark(step)
        else:
            fired += replay.on_record(*(step[0], {}, step[1]))
    return [(each.key, len(each.arrivals), *each[2:7]) for each in fired]


def test_a_retracting_window_takes_its_result_back() -> None:
    plan = WindowPlan(kind="tumbling", accumulation="retracting", lateness_ms=5)

    assert replayed(plan, ("a", 1), 10, ("a", 2), 15, ("a", 3)) == [
        ("a", 1, 0, 10, 0, "on-time", False),
        ("a", 1, 0, 10, 0, "on-time", True),
        ("a", 2, 0, 10, 1, "late", False),
    ]


def test_sessions_that_were_told_apart_are_retracted_apart() -> None:
    """A record between two sessions makes them one; both results have their own old bounds."""
    plan = WindowPlan(
        kind="session", gap_ms=5, accumulation="retracting", early=("count", 1), lateness_ms=0
    )

    assert replayed(plan, ("a", 0), ("a", 8), ("a", 4)) == [
        ("a", 1, 0, 5, 0, "early", False),
        ("a", 1, 8, 13, 0, "early", False),
        ("a", 1, 0, 5, 0, "early", True),
        ("a", 1, 8, 13, 0, "early", True),
        ("a", 3, 0, 13, 1, "early", False),
        ("a", 3, 0, 13, 1, "early", True),
        ("a", 3, 0, 13, 2, "on-time", False),
    ]


def test_what_touches_a_session_is_another_one() -> None:
    assert replayed(WindowPlan(kind="session", gap_ms=5), ("a", 0), ("a", 5)) == [
        ("a", 1, 0, 5, 0, "on-time", False),
        ("a", 1, 5, 10, 0, "on-time", False),
    ]


def test_late_records_do_not_count_in_joins() -> None:
    plan = JoinPlan(kind="window", how="left", size_ms=10)
    sides = [Side(0, 0, "a", {"id": 0}, 1, 0), Side(1, 1, "a", {"id": 1}, 2, 10)]

    assert joined(plan, accepted(plan, sides)) == [("a", {"id": 0}, None, 0, 10)]


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
@pytest.mark.parametrize("plan", [JoinPlan(kind="interval", after_ms=2), JoinPlan(kind="window")])
def test_both_definitions_of_a_join_agree(plan: JoinPlan, how: Any) -> None:
    plan = replace(plan, how=how)
    times = [(0, "a", 1), (0, "a", 12), (0, "b", 5), (1, "a", 3), (1, "a", 30), (1, "b", 8)]
    sides = [
        Side(number, side, key, {"id": number}, time_ms, 0)
        for number, (side, key, time_ms) in enumerate(times)
    ]

    assert sorted(by_numbers(plan, joined(plan, sides)), key=repr) == sorted(
        by_duckdb(plan, sides), key=repr
    )
