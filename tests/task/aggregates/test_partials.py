"""Partials of aggregates one by one, beside accumulators that rows were added to."""

import math
import statistics
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.task.aggregates.fitting import key_mistake, plain, unfit
from gearpy.task.aggregates.partials import Rows, partial_of

#: A column's type and some of its values.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "small": (pa.int8(), [127, -128, 0, 127, None, 127, 5, 5]),
    "whole": (pa.int64(), [2**63 - 1, -(2**63), 1, 2**63 - 1, None, 2**63 - 1, 3, 3]),
    "unsigned": (pa.uint64(), [2**64 - 1, 0, 1, 2**64 - 1, None, 2**64 - 1, 3, 3]),
    "float": (pa.float64(), [0.5, -1.5, math.inf, 2.5, None, 0.25, 7.0, 7.0]),
    "decimal": (pa.decimal128(9, 2), [*map(Decimal, ("1.50", "-2.25", "0", "9")), None, *(
        Decimal(n) for n in ("3.00", "9999999.99", "0.01"))]),
    "truth": (pa.bool_(), [True, False, True, True, None, False, False, False]),
    "text": (pa.string(), ["b", "a", "", "☃", None, "b", "c", "c"]),
    "took": (pa.duration("ms"), [*(timedelta(milliseconds=n) for n in (5, -5, 0, 9)), None, *(
        timedelta(days=n) for n in (1, 2, 2))]),
    "day": (pa.date32(), [*(date(2026, 1, n) for n in (3, 1, 2, 9)), None, *(
        date(1969, 1, n) for n in (1, 2, 2))]),
    "empty": (pa.null(), [None] * 8),
}  # fmt: skip
GROUPS = [0, 1, 0, 0, 1, 1, 2, 2]
TIMES = [5, 3, 3, 9, 1, 3, 8, 8]
AGGREGATES: list[Aggregate] = [
    agg.sum("c"), agg.mean("c"), agg.min("c"), agg.max("c"), agg.first("c"), agg.last("c"),
    agg.collect("c"), agg.top(2, "c"), agg.distinct("c"), agg.variance("c"), agg.stddev("c"),
    agg.any("c"), agg.all("c"), agg.count_if("c"), agg.quantile([0, 0.3, 1], "c"),
    agg.approx_distinct("c"), agg.mode("c"), agg.ewma("c", half_life="4ms"),
]  # fmt: skip


def accumulators(aggregate: Aggregate, column: pa.Array, times: list[int]) -> list[Any]:
    """Return what an aggregate's partial comes to, for each of the `GROUPS`, in their order."""
    partial, rows = partial_of(aggregate), Rows(pa.array(times, pa.int64()))
    inputs = partial.inputs(column, rows)
    names = [f"v{at}" for at in range(len(inputs))]
    arrays = [pa.array(GROUPS[: len(times)]), *(values for values, _, _ in inputs)]
    table = pa.Table.from_arrays(arrays, ["group", *names])
    asked = [(name, *how) for name, (_, *how) in zip(names, inputs, strict=True)]
    found = table.group_by("group", use_threads=False).aggregate(asked).combine_chunks()
    order = found.column("group").to_pylist()
    computed = [found.column(at).chunk(0) for at in range(1, found.num_columns)]
    finished = partial.accumulators(partial.finish(computed, column, rows))
    return [each for _, each in sorted(zip(order, finished, strict=True), key=lambda p: p[0])]


def added(aggregate: Aggregate, values: list[Any], times: list[int]) -> list[Any]:
    kept: dict[int, Any] = {}
    for group, value, time in zip(GROUPS, values, times, strict=True):
        before = kept.get(group, aggregate.create())
        kept[group] = aggregate.add(before, (time, value) if aggregate.is_timed else value)
    return [kept[group] for group in sorted(kept)]


FITTING = [
    (each, name)
    for each in AGGREGATES
    for name, (kind, _) in COLUMNS.items()
    if unfit(each.kind, kind) is None
]


@pytest.mark.parametrize(
    ("aggregate", "name"), FITTING, ids=[f"{each} of {name}" for each, name in FITTING]
)
def test_partials_are_the_accumulators_of_the_same_values(aggregate: Aggregate, name: str) -> None:
    kind, values = COLUMNS[name]

    found = accumulators(aggregate, pa.array(values, kind), TIMES)

    wanted = added(aggregate, values, TIMES)
    if aggregate.kind in {"variance", "stddev"}:
        shown = [[aggregate.result(each) for each in some] for some in (found, wanted)]
        assert shown[0] == pytest.approx(shown[1], nan_ok=True)
    else:
        assert found == wanted
        assert [*map(type, found)] == [*map(type, wanted)]


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        (pa.int64(), 1_700_000_000 * 10**9),
        (pa.uint64(), 2**64 - 30),
        (pa.float64(), 1e15),
        (pa.decimal128(38, 2), Decimal(10**20)),
        (pa.decimal256(76, 0), 10**14),
    ],
    ids=str,
)
def test_spread_of_large_values_keeps_its_digits(kind: pa.DataType, far: Any) -> None:
    near = [4, 7, 13, 16, 5, 22, 1, 9]
    column = pa.array([far + value for value in near[:6]] + near[6:], kind)
    variance = agg.variance("c")
    assert variance.merge is not None

    first, second, third = accumulators(variance, column, TIMES)

    together = variance.result(variance.merge(first, second))
    assert together == pytest.approx(statistics.variance(near[:6]), rel=1e-12)
    assert variance.result(third) == pytest.approx(32, rel=1e-12)


@pytest.mark.parametrize("widest", [5, 2**62])
def test_ranks_are_in_the_order_of_times_and_then_of_places(widest: int) -> None:
    @given(st.lists(st.integers(-widest, widest), min_size=1, max_size=30))
    def hold(times: list[int]) -> None:
        rows = Rows(pa.array(times, pa.int64()))

        ranks = rows.ranks.to_pylist()

        places = [*range(len(times))]
        by_rank = sorted(places, key=lambda at: ranks[at])
        assert by_rank == sorted(places, key=lambda at: times[at])
        assert rows.of_ranks(pa.array(ranks)).to_pylist() == places

    hold()


PLAIN: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array(["a", None, "a"]).dictionary_encode(), pa.string()),
    (pa.array([1.5, None], pa.float16()), pa.float32()),
    (pa.array([Decimal("1.5"), None], pa.decimal32(5, 1)), pa.decimal128(5, 1)),
    (pa.array([1, None], pa.int16()), pa.int16()),
]


@pytest.mark.parametrize(("column", "kind"), PLAIN, ids=[str(column.type) for column, _ in PLAIN])
def test_column_becomes_one_that_can_be_computed_on(column: pa.Array, kind: pa.DataType) -> None:
    made = plain(column)

    assert made.type == kind
    assert made.to_pylist() == column.to_pylist()
    assert key_mistake(column.type) is None
    assert unfit("min", column.type) is None
