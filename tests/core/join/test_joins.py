"""All joins beside their definition, which looks at all pairs of records; and over restarts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.join.asof import AsOfJoin
from gearpy.core.join.interval import IntervalJoin
from gearpy.core.join.latest import LatestJoin
from gearpy.core.join.session import SessionJoin
from gearpy.core.join.sides import LEFT, RIGHT, Join, Pairing
from gearpy.core.join.window import WindowJoin
from gearpy.core.window.windows import GlobalWindows, SlidingWindows, TumblingWindows
from gearpy.ids import MAX_MS, MIN_MS
from tests.core.join.join_build import STEPS, Step, expected, fed, with_restarts
from tests.core.pieces import tiny_pieces
from tests.oracle.joins import JoinPlan

HOWS = st.sampled_from(["inner", "left", "right", "outer"])
HOWS_OF_LEFT = st.sampled_from(["inner", "left"])
REACHES = st.integers(0, 30)
#: Times may be far apart, so that what is over is forgotten.
FACTORS = st.sampled_from([1, 500])

WINDOWS = st.sampled_from(
    [
        {"windows": "tumbling", "size_ms": 10},
        {"windows": "tumbling", "size_ms": 7, "offset_ms": 3},
        {"windows": "sliding", "size_ms": 10, "every_ms": 5},
        {"windows": "sliding", "size_ms": 10, "every_ms": 3, "offset_ms": 1},
        {"windows": "sliding", "size_ms": 5, "every_ms": 5},
        {"windows": "global"},
        *({"windows": "session", "gap_ms": gap_ms} for gap_ms in (1, 2, 5, 12)),
    ]
)
PLANS = st.one_of(
    st.builds(lambda how, more: JoinPlan(kind="window", how=how, **more), HOWS, WINDOWS),
    st.builds(
        lambda how, before, after, factor: JoinPlan(
            kind="interval", how=how, before_ms=before * factor, after_ms=after * factor
        ),
        HOWS,
        REACHES,
        REACHES,
        FACTORS,
    ),
    st.builds(
        JoinPlan,
        kind=st.just("asof"),
        how=HOWS_OF_LEFT,
        direction=st.sampled_from(["backward", "forward", "nearest"]),
        tolerance_ms=st.one_of(st.none(), REACHES),
    ),
    st.builds(JoinPlan, kind=st.just("latest"), how=HOWS_OF_LEFT),
)


def made(plan: JoinPlan, limit: int = 100) -> Join:
    pairing = Pairing(plan.how, gathers=False, limit=limit)
    match plan.kind, plan.windows:
        case "interval", _:
            return IntervalJoin(
                before_ms=plan.before_ms, after_ms=plan.after_ms, how=plan.how, limit=limit
            )
        case "asof", _:
            assert plan.how in {"left", "inner"}
            return AsOfJoin(
                direction=plan.direction,
                tolerance_ms=plan.tolerance_ms,
                how="left" if plan.how == "left" else "inner",
                limit=limit,
            )
        case "latest", _:
            return LatestJoin(how="left" if plan.how == "left" else "inner")
        case _, "session":
            return SessionJoin(plan.gap_ms, pairing)
        case _, "sliding":
            return WindowJoin(SlidingWindows(plan.size_ms, plan.every_ms, plan.offset_ms), pairing)
        case _:
            tumbling = TumblingWindows(plan.size_ms, plan.offset_ms)
            return WindowJoin(GlobalWindows() if plan.windows == "global" else tumbling, pairing)


def fitted(plan: JoinPlan, steps: list[Step], factor: int) -> list[Step]:
    """Return steps with more time between them; some rows of a table take their key away."""
    return [
        min(step * factor, MAX_MS)
        if isinstance(step, int)
        else [
            each._replace(
                time=each.time * factor,
                value=None
                if plan.kind == "latest" and each.side == RIGHT and int(each.value[1:]) % 3 == 0
                else each.value,
            )
            for each in step
        ]
        for step in steps
    ]


@settings(max_examples=100)
@given(PLANS, STEPS, FACTORS, st.integers(1, 5))
def test_results_are_those_of_the_definition(
    plan: JoinPlan, steps: list[Step], factor: int, limit: int
) -> None:
    """Invariant: each pair once, whatever the order; late are the records that nothing takes."""
    steps = fitted(plan, steps, factor)
    join = made(plan, limit)
    join.resume(MIN_MS)

    run = fed(join, steps, is_promised=plan.kind != "latest")

    assert (run.counted, run.late) == expected(plan, steps)


@settings(max_examples=100)
@given(PLANS, STEPS, FACTORS, st.integers(1, 3))
def test_restarts_change_nothing(
    plan: JoinPlan, steps: list[Step], factor: int, every: int
) -> None:
    """Not even the order; at the end nothing is stored but a table, or the newest of each key.

    Nor does it when others go on in between.
    """
    steps = fitted(plan, steps, factor)
    is_promised = plan.kind != "latest"
    keeps_newest = plan.kind == "asof" and plan.tolerance_ms is None and plan.direction != "forward"
    join = made(plan)
    join.resume(MIN_MS)

    with tiny_pieces():
        run = with_restarts(
            lambda: made(plan, limit=3),
            steps,
            every=every,
            is_all_freed=plan.kind != "latest" and not keeps_newest,
            is_promised=is_promised,
        )

    plain = fed(join, steps, is_promised=is_promised)
    assert (run.by_step, run.late) == (plain.by_step, plain.late)


@pytest.mark.parametrize(
    "plan",
    [
        JoinPlan(kind="window", how="inner", windows="tumbling", size_ms=10),
        JoinPlan(kind="window", how="inner", windows="sliding", size_ms=10, every_ms=5),
        JoinPlan(kind="window", how="inner", windows="session", gap_ms=5),
        JoinPlan(kind="interval", how="inner", before_ms=5, after_ms=5),
        JoinPlan(kind="asof", how="inner", direction="backward"),
        JoinPlan(kind="asof", how="inner", direction="forward", tolerance_ms=5),
    ],
    ids=lambda plan: f"{plan.kind} {plan.windows} {plan.direction}",
)
def test_others_may_go_on_while_much_is_looked_at(plan: JoinPlan) -> None:
    join = made(plan)
    join.resume(MIN_MS)
    _ = list(join.on_records([(LEFT, key, "l") for key in range(20)], [*range(20)]))

    with tiny_pieces():
        portions = list(join.on_watermark(1_000_000))

    assert len(portions) >= 19
    assert not any(rows for rows, _ in portions)


def test_finding_partners_for_many_lets_others_go_on() -> None:
    join = made(JoinPlan(kind="interval", how="left", before_ms=50, after_ms=50))
    join.resume(MIN_MS)
    keys = [*range(20)]
    _ = list(join.on_records([(LEFT, key, "l") for key in keys], keys))
    _ = list(join.on_records([(RIGHT, key, "r") for key in keys[1:]], keys[1:]))
    assert join.hold_ms == 0

    with tiny_pieces():
        portions = list(join.on_records([(RIGHT, 0, "r")], [0]))

    assert [len(rows) for rows, _ in portions].count(0) >= 19
    assert join.hold_ms == MAX_MS
