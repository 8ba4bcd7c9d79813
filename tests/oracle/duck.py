"""What joins give, computed by DuckDB.

A result is told by the numbers of its two records. Of records of a side that are the same for an
as-of join, those of one key and time, the one that DuckDB takes is not defined; so the right one is
told by its time there.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import duckdb

from gearpy.ids import MAX_MS, MIN_MS
from tests.oracle.joins import JoinPlan, Side
from tests.oracle.programs import Shown

_TABLE: Final = "CREATE OR REPLACE TABLE {name} (k VARCHAR, id BIGINT, t BIGINT)"

_ALIGNED: Final = """
    SELECT k, id, newest - n * {every} AS first, newest - n * {every} + {size} AS past
    FROM (
        SELECT *, t - (((t - {offset}) % {every}) + {every}) % {every} AS newest FROM {name}
    ), range({most}) AS numbers(n)
    WHERE newest - n * {every} + {size} > t
"""
_SESSIONS: Final = """
    WITH both_sides AS (
        SELECT k, id, t, 'lefts' AS side FROM lefts
        UNION ALL SELECT k, id, t, 'rights' FROM rights
    ), begun AS (
        SELECT *, coalesce(
            t - lag(t) OVER (PARTITION BY k ORDER BY t, id) >= {gap}, true
        )::INTEGER AS begins
        FROM both_sides
    ), numbered AS (
        SELECT *, sum(begins) OVER (PARTITION BY k ORDER BY t, id) AS session FROM begun
    ), bounds AS (
        SELECT k, session, min(t) AS first, max(t) + {gap} AS past FROM numbered GROUP BY ALL
    )
    SELECT k, id, first, past FROM numbered JOIN bounds USING (k, session) WHERE side = '{name}'
"""
_BY_WINDOW: Final = """
    SELECT coalesce(l.k, r.k), l.id, r.id, coalesce(l.first, r.first), coalesce(l.past, r.past)
    FROM ({lefts}) AS l {how} JOIN ({rights}) AS r
    ON l.k = r.k AND l.first = r.first AND l.past = r.past
"""
_COGROUPED: Final = """
    SELECT coalesce(l.k, r.k), coalesce(l.ids, []), coalesce(r.ids, []),
        coalesce(l.first, r.first), coalesce(l.past, r.past)
    FROM (SELECT k, first, past, list(id ORDER BY id) AS ids FROM ({lefts}) GROUP BY ALL) AS l
    FULL JOIN (SELECT k, first, past, list(id ORDER BY id) AS ids FROM ({rights}) GROUP BY ALL) AS r
    ON l.k = r.k AND l.first = r.first AND l.past = r.past
"""
_NEAR: Final = """
    SELECT coalesce(l.k, r.k), l.id, r.id,
        least(coalesce(l.t, r.t), coalesce(r.t, l.t)),
        greatest(coalesce(l.t, r.t), coalesce(r.t, l.t)) + 1
    FROM lefts AS l {how} JOIN rights AS r
    ON l.k = r.k AND r.t >= l.t - {before} AND r.t <= l.t + {after}
"""
_NEAREST: Final = """
    WITH older AS (
        SELECT l.id, r.t FROM lefts AS l ASOF JOIN rights AS r ON l.k = r.k AND l.t >= r.t
    ), newer AS (
        SELECT l.id, r.t FROM lefts AS l ASOF JOIN rights AS r ON l.k = r.k AND l.t <= r.t
    ), found AS (
        SELECT l.k, l.id, l.t, CASE
            WHEN '{direction}' = 'backward' THEN older.t
            WHEN '{direction}' = 'forward' THEN newer.t
            WHEN newer.t - l.t < coalesce(l.t - older.t, 1000000) THEN newer.t
            ELSE older.t
        END AS hit
        FROM lefts AS l LEFT JOIN older ON l.id = older.id LEFT JOIN newer ON l.id = newer.id
    ), close AS (
        SELECT k, id, t, CASE WHEN abs(hit - t) <= {tolerance} THEN hit END AS hit FROM found
    )
    SELECT k, id, hit, least(t, coalesce(hit, t)), greatest(t, coalesce(hit, t)) + 1
    FROM close WHERE hit IS NOT NULL OR '{how}' = 'left'
"""
_HOW: Final = {"inner": "INNER", "left": "LEFT", "right": "RIGHT", "outer": "FULL"}
_ANY_MS: Final = 1_000_000


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def by_duckdb(plan: JoinPlan, sides: Iterable[Side]) -> list[Shown]:
    database = _database()
    for side, name in enumerate(("lefts", "rights")):
        database.execute(_TABLE.format(name=name))
        rows = [
            (_text(each.key), each.row["id"], each.time_ms) for each in sides if each.side == side
        ]
        if rows:
            database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)  # noqa: S608
    found = database.execute(_query(plan)).fetchall()
    return [tuple(tuple(x) if isinstance(x, list) else x for x in each) for each in found]


def by_numbers(plan: JoinPlan, results: Iterable[Sequence[Any]]) -> list[Shown]:
    return [
        (_text(key), *(_told(plan, side, each) for side, each in enumerate(pair)), *bounds)
        for key, *rest in results
        for pair, bounds in [(rest[:2], rest[2:])]
    ]


def _told(plan: JoinPlan, side: int, value: Any) -> Any:
    if plan.kind == "cogroup":
        return tuple(sorted(row["id"] for row in value))
    return value and value["t" if plan.kind == "asof" and side == 1 else "id"]


def _text(key: Any) -> str:
    return repr(key)


def _query(plan: JoinPlan) -> str:
    match plan.kind:
        case "window":
            return _BY_WINDOW.format(how=_HOW[plan.how], **_windowed(plan))
        case "cogroup":
            return _COGROUPED.format(**_windowed(plan))
        case "interval":
            return _NEAR.format(how=_HOW[plan.how], before=plan.before_ms, after=plan.after_ms)
        case "asof":
            tolerance = _ANY_MS if plan.tolerance_ms is None else plan.tolerance_ms
            return _NEAREST.format(direction=plan.direction, how=plan.how, tolerance=tolerance)
        case "latest":
            raise AssertionError("it depends on the order in which records come")


def _windowed(plan: JoinPlan) -> dict[str, str]:
    if plan.windows == "session":
        return {name: _SESSIONS.format(name=name, gap=plan.gap_ms) for name in ("lefts", "rights")}
    if plan.windows == "global":
        bounds = f"{MIN_MS} AS first, {MAX_MS} AS past"
        return {name: f"SELECT k, id, {bounds} FROM {name}" for name in ("lefts", "rights")}  # noqa: S608
    every = plan.size_ms if plan.windows == "tumbling" else plan.every_ms
    most = -(-plan.size_ms // every)
    return {
        name: _ALIGNED.format(
            name=name, every=every, size=plan.size_ms, offset=plan.offset_ms, most=most
        )
        for name in ("lefts", "rights")
    }
