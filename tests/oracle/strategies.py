"""Streams and programs of any kind, drawn by Hypothesis."""

import math
from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle.aggregates import AGGREGATES
from tests.oracle.joins import JoinPlan
from tests.oracle.programs import JoinProgram, WindowProgram
from tests.oracle.streams import End, Idle, Promise, Records, Row, Step, Tick
from tests.oracle.windows import Condition, WindowPlan

_TICK_MS: Final = 10_000
_STEPS_MAX: Final = 24
_ROWS_MAX: Final = 4
_PACE_MS: Final = 3  # Event time goes on so far with each step.
_LARGE: Final = 1 << 61  # Some of them come to more than Arrow's integers hold.
_BACK_MS: Final = 14  # A record may be so much older.


#: What a record has besides its number and its time; the last is how much time goes on.
_FIELDS: Final = st.tuples(
    st.sampled_from("abc"),
    st.integers(0, 1),
    st.none() | st.integers(-3, 9) | st.sampled_from([_LARGE, -_LARGE]),
    st.none() | st.integers(-4, 9).map(lambda n: n / 2) | st.just(math.nan),
)
_DRIFT: Final = st.integers(-_BACK_MS, 2 * _PACE_MS)
_SOME: Final = st.lists(st.tuples(_FIELDS, _DRIFT), min_size=1, max_size=_ROWS_MAX)


def _row(number: int, time_ms: int, fields: tuple[Any, ...]) -> Row:
    k, g, v, x = fields
    return {"id": number, "k": k, "g": g, "v": v, "x": x, "t": time_ms}


@st.composite
def scripts(draw: st.DrawFn, *, sources: int, ticks: bool, idles: bool) -> list[Step]:
    """Draw what some sources give, promise, and leave, in one order, with an end."""
    kinds = ["records"] * 5 + ["promise"] * 3 + ["tick"] * (2 * ticks) + ["idle"] * idles
    step = st.tuples(st.integers(0, sources - 1), st.sampled_from(kinds), _SOME)
    steps: list[Step] = []
    number, idle = 0, set[int]()
    for at, (source, kind, some) in enumerate(draw(st.lists(step, max_size=_STEPS_MAX))):
        match kind:
            case "records":
                rows = [
                    _row(number + more, at * _PACE_MS + drift_ms, fields)
                    for more, (fields, drift_ms) in enumerate(some)
                ]
                number += len(rows)
                idle.discard(source)
                steps.append(Records(source, tuple(rows)))
            case "promise" if source not in idle:
                steps.append(Promise(source, at * _PACE_MS + some[0][1]))
            case "tick":
                steps.append(Tick(_TICK_MS))
            case "idle":
                idle.add(source)
                steps.append(Idle(source))
    return [*steps, *(End(source) for source in range(sources))]


_PART: Final = st.lists(st.tuples(st.integers(0, 2), _SOME), max_size=_STEPS_MAX // 2)


@st.composite
def partitions(
    draw: st.DrawFn, *, count: int, first: int = 0, may_be_late: bool = False
) -> list[list[Step]]:
    """Draw what each of some partitions gives; its promises are kept unless some may be late."""
    number, parts = first, list[list[Step]]()
    for _ in range(count):
        steps: list[Step] = []
        promised_ms = -_BACK_MS
        for at, (kind, some) in enumerate(draw(_PART)):
            if kind == 0:
                promised_ms = max(promised_ms, at * _PACE_MS + some[0][1])
                steps.append(Promise(0, promised_ms))
                continue
            times = [at * _PACE_MS + drift_ms for _, drift_ms in some]
            if not may_be_late:
                times = [max(time_ms, promised_ms) for time_ms in times]
            rows = [
                _row(number + more, times[more], fields) for more, (fields, _) in enumerate(some)
            ]
            number += len(rows)
            steps.append(Records(0, tuple(rows)))
        parts.append(steps)
    return parts


def _conditions(*, wall: bool, has_wall: bool) -> st.SearchStrategy[Condition]:
    """Draw a trigger of windows by wall or event time, that itself may ask for wall time."""
    counts = st.integers(1, 4).map(lambda n: ("count", n))
    events = st.integers(2, 12).map(lambda ms: ("event", ms))
    walls = st.integers(0, 2).map(lambda n: ("wall", n * _TICK_MS + 3_000))
    if wall:
        events = st.integers(0, 2).map(lambda n: ("event", n * _TICK_MS + 4_000))
    leaves = [counts, events, *[walls] * has_wall]
    several = st.lists(st.one_of(leaves), min_size=1, max_size=2)
    return st.one_of(
        *leaves, st.tuples(st.sampled_from(["any", "all"]), several).map(lambda of: (of[0], *of[1]))
    )


@st.composite
def window_plans(draw: st.DrawFn, *, clocks: tuple[str, ...], has_wall: bool) -> WindowPlan:
    kind: Any = draw(st.sampled_from(["tumbling", "sliding", "session", "count", "global"]))
    policy: Any = draw(st.sampled_from(["drop", "restamp", "side"]))
    if kind == "count":
        return WindowPlan(kind=kind, records=draw(st.integers(1, 4)), policy=policy)
    clock: Any = draw(st.sampled_from(clocks))
    wall = clock == "processing"
    sizes = _wall_sizes(draw) if wall else _event_sizes(draw)
    conditions = _conditions(wall=wall, has_wall=has_wall)
    early = draw(st.none() | conditions)
    is_bare = early is not None and draw(st.booleans())
    has_late = kind != "global" and not wall
    return WindowPlan(
        kind=kind,
        clock=clock,
        early=early,
        late=draw(st.none() | conditions) if not is_bare else None,
        is_bare=is_bare,
        accumulation=draw(st.sampled_from(["discarding", "accumulating", "retracting"])),
        lateness_ms=draw(st.sampled_from([0, 0, 4, 9, 25])) if has_late else 0,
        policy=policy,
        **sizes,
    )


def _event_sizes(draw: st.DrawFn) -> dict[str, int]:
    every_ms = draw(st.integers(2, 8))
    return {
        "size_ms": every_ms + draw(st.integers(0, 12)),
        "every_ms": every_ms,
        "offset_ms": draw(st.integers(0, 5)),
        "gap_ms": draw(st.integers(1, 8)),
    }


def _wall_sizes(draw: st.DrawFn) -> dict[str, int]:
    """Draw sizes that set boundaries apart from the times of records and triggers."""
    every_ms = draw(st.integers(1, 3)) * _TICK_MS
    return {
        "size_ms": every_ms + draw(st.integers(0, 2)) * _TICK_MS,
        "every_ms": every_ms,
        "offset_ms": 5_000,
        "gap_ms": draw(st.integers(0, 2)) * _TICK_MS + 7_000,
    }


@st.composite
def window_programs(
    draw: st.DrawFn,
    *,
    clocks: tuple[str, ...] = ("event",),
    has_wall: bool = True,
    has_order: bool = True,
    sources: int = 2,
) -> WindowProgram:
    plan = draw(window_plans(clocks=clocks, has_wall=has_wall))
    key: Any = draw(st.sampled_from(["none", "function", "name", "names"]))
    value: Any = draw(
        st.sampled_from(["count", "reduce", "fold", "single", "aggregate", "aggregate"])
    )
    return WindowProgram(
        plan=plan,
        key=key,
        change=draw(st.sampled_from(["none", "none", "map", "filter", "flat_map"])),
        value=value,
        aggregates=draw(_aggregates(value, is_merged=plan.kind == "session" or not has_order)),
        columns=draw(st.booleans()),
        parallelism=1 if key == "none" else draw(st.integers(1, 3)),
        sources=draw(st.integers(1, sources)),
    )


@st.composite
def _aggregates(
    draw: st.DrawFn, value: str, *, is_merged: bool
) -> tuple[tuple[str, str, str | None], ...]:
    if value == "single":
        kind = draw(st.sampled_from(["sum", "min", "max", "mean"]))
        return (("only", kind, draw(st.sampled_from(["v", "x"]))),)
    if value != "aggregate":
        return ()
    kinds = draw(st.lists(st.sampled_from(list(AGGREGATES)), min_size=1, max_size=4, unique=True))
    parted = {"first", "last", "collect"} if is_merged else set[str]()
    return tuple(
        (f"{kind}_of", kind, "t" if kind in parted else draw(st.sampled_from(["v", "x", "t"])))
        for kind in kinds
        if not (kind == "collect" and is_merged)
    ) or (("n", "count", None),)


@st.composite
def join_plans(draw: st.DrawFn, *, latest: bool = True) -> JoinPlan:
    kinds = ["window", "window", "cogroup", "interval", "asof", *["latest"] * latest]
    kind: Any = draw(st.sampled_from(kinds))
    hows = ["left", "inner"] if kind in {"asof", "latest"} else ["inner", "left", "right", "outer"]
    return JoinPlan(
        kind=kind,
        how=draw(st.sampled_from(hows)),
        windows=draw(st.sampled_from(["tumbling", "sliding", "session", "global"])),
        before_ms=draw(st.integers(0, 8)),
        after_ms=draw(st.integers(0, 8)),
        direction=draw(st.sampled_from(["backward", "forward", "nearest"])),
        tolerance_ms=draw(st.none() | st.integers(0, 10)),
        **_event_sizes(draw),
    )


@st.composite
def join_programs(draw: st.DrawFn, *, latest: bool = True) -> JoinProgram:
    return JoinProgram(
        plan=draw(join_plans(latest=latest)),
        key=draw(st.sampled_from(["function", "name", "names"])),
        combines=draw(st.booleans()),
        columns=draw(st.booleans()),
        parallelism=draw(st.integers(1, 3)),
        partitions=draw(st.integers(1, 2)),
    )
