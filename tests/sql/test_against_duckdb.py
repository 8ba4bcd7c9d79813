"""Queries made at random answer as DuckDB does, over the same rows with nulls, texts and times."""

import math
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.testing import Simulation
from tests.sql.queries import Maker

_BATCH: Final = 50
_INTS: Final = pa.list_(pa.int64())
_JSON: Final = ("{}", '{"a": 3, "b": {"c": "x"}}', '{"a": "7", "l": [1, "q"]}', '{"b": {"c": 1.5}}')
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def tables(seed: int) -> tuple[pa.Table, pa.Table]:
    """Return ``t`` with nulls in all columns but the number and the time, and ``u`` to join."""
    rng, count = random.Random(seed), 40

    def column(make: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([None if rng.random() < 0.15 else make() for _ in range(count)], kind)

    times = [_START + timedelta(milliseconds=1500 * n + rng.randrange(1000)) for n in range(count)]
    names = ("tea", "Tea", "jam", "bun", "", "a_b")
    t = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "k": column(lambda: rng.choice(names), pa.string()),
            "v": column(lambda: rng.randrange(-3, 10), pa.int64()),
            "f": column(lambda: rng.randrange(40) / 8, pa.float64()),
            "b": column(lambda: rng.random() < 0.5, pa.bool_()),
            "l": column(lambda: [rng.randrange(4) for _ in range(rng.randrange(4))], _INTS),
            "j": column(lambda: rng.choice(_JSON), pa.string()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    u = pa.table(
        {"k": ["tea", "jam", "jam", "west", None], "w": [1, 2, 7, None, 5], "name": [*"abcde"]}
    )
    return t, u


def rows_of(rows: Iterable[Sequence[Any]], *, is_ordered: bool) -> list[tuple[Any, ...]]:
    """Return rows that can be compared: floats to nine digits, times of UTC, sorted if need be."""
    found = [tuple(map(_plain, row)) for row in rows]
    return found if is_ordered else sorted(found, key=repr)


def _plain(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int() | float() if math.isfinite(value):
            return float(f"{value * (1 + 1e-12):.9g}") + 0.0  # What is halfway is so on both sides.
        case Decimal():
            return float(value)
        case datetime():
            return value.astimezone(UTC)
    return value


def check(seeds: range) -> None:
    """Ask the queries of some seeds of one application."""
    t, u = tables(seeds.start)
    database = duckdb.connect()
    database.execute("set timezone = 'UTC'")
    database.register("t", t)
    database.register("u", u)
    app = gp.StreamApp("queries")
    read_t, read_u = app.read(gp.rows(t, time="ts")), app.read(gp.rows(u))
    asked = []
    for seed in seeds:
        query = Maker(seed).query()
        found: list[dict[str, Any]] = []
        app.sql(query.gearpy, t=read_t, u=read_u).write(gp.to_list(found))
        asked.append((seed, query, found))

    Simulation(app).run()

    for seed, query, found in asked:
        wanted = database.execute(query.duckdb).fetchall()
        is_ordered = query.is_ordered
        assert rows_of((row.values() for row in found), is_ordered=is_ordered) == rows_of(  # type: ignore[misc]
            wanted, is_ordered=is_ordered
        ), f"seed {seed}: {query.gearpy}"


@pytest.mark.parametrize("batch", range(4))
def test_queries_answer_as_in_duckdb(batch: int) -> None:
    """Two hundred queries: projections, groups, windows, joins, ranks, unions, orders."""
    check(range(batch * _BATCH, (batch + 1) * _BATCH))


@pytest.mark.long
@pytest.mark.parametrize("batch", [*range(4, 12), *range(100, 200)])
def test_many_queries_answer_as_in_duckdb(batch: int) -> None:
    """Others."""
    check(range(batch * _BATCH, (batch + 1) * _BATCH))
