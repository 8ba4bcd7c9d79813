"""Joins beside those of a database, which has all records at once."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.join.sides import LEFT, RIGHT, How
from gearpy.core.window.windows import session, sliding, tumbling
from gearpy.task.joins.streams import JoinSpec, JoinStage
from tests.core.join_oracle import HOWS, STEPS, Step, columns, in_time, without_late
from tests.task.build import a_context

duckdb: Any = pytest.importorskip("duckdb")
pa: Any = pytest.importorskip("pyarrow")

_SQL_OF_HOW = {"inner": "inner", "left": "left", "right": "right", "outer": "full"}
_COLUMNS = "coalesce(l.k, r.k), l.v, r.v"
_TIMES = (
    "least(coalesce(l.t, r.t), coalesce(r.t, l.t)), "
    "greatest(coalesce(l.t, r.t), coalesce(r.t, l.t)) + 1"
)

Rows = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module", name="database")
def _database() -> Any:
    return duckdb.connect()


def queried(database: Any, steps: list[Step], query: str) -> Rows:
    """Return what a query gives of the records of both sides, the tables l and r."""
    records = [given for given, _ in in_time(steps)]
    for side, name in ((LEFT, "l"), (RIGHT, "r")):
        some = [given for given in records if given.side == side]
        arrays = {
            "k": pa.array([given.key for given in some], pa.int64()),
            "v": pa.array([given.value for given in some], pa.string()),
            "t": pa.array([given.time for given in some], pa.int64()),
        }
        database.register(name, pa.table(arrays))
    return Counter(database.execute(query).fetchall())


def streamed(spec: JoinSpec, steps: list[Step]) -> Rows:
    """Return what the stage gives of the same, piece by piece."""
    stage = JoinStage(a_context(), "join", spec)
    stage.restore(None)
    found: Rows = Counter()
    for step in steps:
        is_batch = isinstance(step, list)
        portions = stage.process(*columns(step)) if is_batch else stage.on_watermark(step)  # type: ignore[arg-type]
        for values, _ in portions:
            found.update(map(tuple, values))
    return found


def unlike(steps: list[Step]) -> list[Step]:
    """Return the steps without right records of a key and time that there is one of already."""
    seen = set()
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, int):
            kept.append(step)
            continue
        some = []
        for record in step:
            if record.side == LEFT or record[1::2] not in seen:
                seen.add(record[1::2] if record.side == RIGHT else None)
                some.append(record)
        if some:
            kept.append(some)
    return kept


GOOD = STEPS.map(without_late)


@settings(deadline=None)
@given(GOOD, st.sampled_from(HOWS), st.integers(1, 20), st.integers(-5, 5))
def test_tumbling_windows(
    database: Any, steps: list[Step], how: How, size: int, offset: int
) -> None:
    """An equi-join by key and start of the window."""
    spec = JoinSpec.over(tumbling(size, offset=max(offset, 0)), how=how)
    start = f"t - (((t - {max(offset, 0)}) % {size}) + {size}) % {size} as s"

    rows = queried(
        database,
        steps,
        f"with a as (select *, {start} from l), b as (select *, {start} from r) "  # noqa: S608
        f"select {_COLUMNS}, coalesce(l.s, r.s), coalesce(l.s, r.s) + {size} "
        f"from a l {_SQL_OF_HOW[how]} join b r on l.k = r.k and l.s = r.s",
    )

    assert streamed(spec, steps) == rows


@settings(deadline=None)
@given(GOOD, st.sampled_from(HOWS), st.integers(1, 8), st.integers(0, 20))
def test_sliding_windows(database: Any, steps: list[Step], how: How, every: int, more: int) -> None:
    """The same, with each record in all its windows."""
    size = every + more
    last = f"(t - ((t % {every}) + {every}) % {every})"
    first = f"({last} - (({size} - 1 - (t - {last})) // {every}) * {every})"
    starts = f"unnest(generate_series({first}, {last}, {every})) as s"

    rows = queried(
        database,
        steps,
        f"with a as (select *, {starts} from l), b as (select *, {starts} from r) "  # noqa: S608
        f"select {_COLUMNS}, coalesce(l.s, r.s), coalesce(l.s, r.s) + {size} "
        f"from a l {_SQL_OF_HOW[how]} join b r on l.k = r.k and l.s = r.s",
    )

    assert streamed(JoinSpec.over(sliding(size, every), how=how), steps) == rows


@settings(deadline=None)
@given(GOOD, st.sampled_from(HOWS), st.integers(1, 12))
def test_sessions(database: Any, steps: list[Step], how: How, gap: int) -> None:
    """Gaps are found over both sides."""
    rows = queried(
        database,
        steps,
        f"with u as (select 0 as side, * from l union all select 1, * from r), "  # noqa: S608
        f"m as (select *, t >= lag(t, 1, t - {gap}) over "
        f"(partition by k order by t, side, v) + {gap} as f from u), "
        "n as (select *, sum(f::int) over "
        "(partition by k order by t, side, v rows unbounded preceding) as n from m), "
        f"w as (select k, n, min(t) as s, max(t) + {gap} as e from n group by k, n), "
        "a as (select * from n where side = 0), b as (select * from n where side = 1), "
        f"p as (select coalesce(l.k, r.k) as k, coalesce(l.n, r.n) as n, l.v as lv, r.v as rv "
        f"from a l {_SQL_OF_HOW[how]} join b r on l.k = r.k and l.n = r.n) "
        "select p.k, lv, rv, s, e from p join w on p.k = w.k and p.n = w.n",
    )

    assert streamed(JoinSpec.over(session(gap), how=how), steps) == rows


@settings(deadline=None)
@given(GOOD, st.sampled_from(HOWS), st.integers(0, 30), st.integers(0, 30))
def test_intervals(database: Any, steps: list[Step], how: How, before: int, after: int) -> None:
    """A join by a range."""
    rows = queried(
        database,
        steps,
        f"select {_COLUMNS}, {_TIMES} from l {_SQL_OF_HOW[how]} join r "  # noqa: S608
        f"on l.k = r.k and r.t between l.t - {before} and l.t + {after}",
    )

    assert streamed(JoinSpec.interval(before=before, after=after, how=how), steps) == rows


@settings(deadline=None)
@given(
    GOOD.map(unlike),
    st.sampled_from(["backward", "forward"]),
    st.sampled_from(["left", "inner"]),
    st.one_of(st.none(), st.integers(0, 30)),
)
def test_asof(
    database: Any,
    steps: list[Step],
    direction: Any,
    how: Any,
    tolerance: int | None,
) -> None:
    """The database's own, in both of its directions."""
    sign = ">=" if direction == "backward" else "<="
    near = "true" if tolerance is None else f"abs(l.t - r.t) <= {tolerance}"
    kept = "true" if how == "left" else "rv is not null"

    rows = queried(
        database,
        steps,
        f"with a as (select l.*, case when {near} then r.v end as rv, "  # noqa: S608
        f"case when {near} then r.t end as rt "
        f"from l asof left join r on l.k = r.k and l.t {sign} r.t) "
        "select k, v, rv, least(t, coalesce(rt, t)), greatest(t, coalesce(rt, t)) + 1 "
        f"from a where {kept}",
    )

    assert streamed(JoinSpec.asof(direction=direction, how=how, tolerance=tolerance), steps) == rows
