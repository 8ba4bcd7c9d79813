"""Sketches beside exact answers, in any order and in any parts."""

import math
import statistics
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.sketches import BUCKETS_MAX, EXACT_MAX, float_bits, float_of
from gearpy.errors import ConfigError

PARTS = [0, 0.001, 0.25, 0.5, 0.95, 0.999, 1]
_CHANCE = Random(7)
#: Numbers by what they are like; more of each than are kept as they are.
NUMBERS: dict[str, list[float]] = {
    "latencies": [_CHANCE.lognormvariate(3, 1.5) for _ in range(4000)],
    "whole": [_CHANCE.randrange(100_000) for _ in range(4000)],
    "both signs": [_CHANCE.gauss(0, 100) for _ in range(4000)],
    "wide": [_CHANCE.choice((-1, 1)) * 10 ** _CHANCE.uniform(-300, 300) for _ in range(9000)],
    "few different": [_CHANCE.choice((0.0, -0.0, 1.5, math.inf)) for _ in range(4000)],
}


def kept_of(aggregate: Aggregate, values: list[Any]) -> Any:
    kept = aggregate.create()
    for value in values:
        kept = aggregate.add(kept, value)
    return kept


def merged(aggregate: Aggregate, values: list[Any], chance: Random) -> Any:
    """Return what comes of values in another order, and of parts that are merged by chance."""
    shuffled = chance.sample(values, len(values))
    cuts = sorted(chance.sample(range(len(values)), min(len(values), 6)))
    parts = [
        kept_of(aggregate, shuffled[start:end])
        for start, end in zip([0, *cuts], [*cuts, len(values)], strict=True)
    ]
    assert aggregate.merge is not None
    while len(parts) > 1:
        other = parts.pop(chance.randrange(len(parts)))
        at = chance.randrange(len(parts))
        parts[at] = aggregate.merge(parts[at], other)
    return parts[0]


@pytest.mark.parametrize("name", NUMBERS)
def test_quantiles_of_many_are_close_and_the_same_in_any_order(name: str) -> None:
    values = NUMBERS[name]
    aggregate = agg.quantile(PARTS)
    kept = kept_of(aggregate, values)

    for seed in range(5):
        assert merged(aggregate, values, Random(seed)) == kept, "an answer of the values alone"

    coarse, counts = kept
    assert len(counts) <= BUCKETS_MAX
    assert (coarse > 0) is (name == "wide")
    error = 2.0 ** (coarse - 8)
    assert error == 1 / 256 or name == "wide"
    query = "select unnest(quantile_cont(v, ?)) from (select unnest(?) as v)"
    for part, found in zip(PARTS, aggregate.result(kept), strict=True):
        ((exact,),) = duckdb.execute(query, [[part], [float(each) for each in values]]).fetchall()
        assert found == pytest.approx(exact, rel=error), part


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30), st.floats(0, 1))
def test_quantiles_of_few_are_exact(values: list[float], part: float) -> None:
    """Property: in proportion between two of them, as in SQL."""
    ((wanted,),) = duckdb.execute(
        "select quantile_cont(v, ?) from (select unnest(?) as v)", [part, values]
    ).fetchall()

    found = agg.quantile(part).result(kept_of(agg.quantile(part), values))

    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12 * max(map(abs, values)))
    middle = agg.median().result(kept_of(agg.median(), values))
    assert middle == pytest.approx(statistics.median(values), rel=1e-12)


@given(st.floats(), st.floats())
def test_bits_of_floats_are_in_their_order(one: float, other: float) -> None:
    """Property: zero has one sign, and NaN is behind all."""
    if one == one and other == other:  # noqa: PLR0124 - NaN
        assert (float_bits(one) < float_bits(other)) is (one < other)
        assert float_of(float_bits(one)) == one
    else:
        assert float_bits(math.nan) >= float_bits(one)


def test_nan_is_greater_than_all_numbers() -> None:
    for values in ([math.nan, 1, 2], [math.nan] * 800 + [1.0, 2.0] * 800):
        assert math.isnan(agg.quantile(1).result(kept_of(agg.quantile(1), values)))
        found = agg.quantile(0).result(kept_of(agg.quantile(0), values))
        assert found == pytest.approx(1, rel=1 / 256)


@pytest.mark.parametrize("q", [1.5, -0.1, "0.5", True, math.nan, [], [0.5, 2]])
def test_what_is_no_part_is_refused(q: Any) -> None:
    with pytest.raises(ConfigError, match="give a number from 0 to 1 first, such as"):
        agg.quantile(q)
    with pytest.raises(ConfigError, match=r"such as 0[.]99, or"):
        agg.quantile(99, "ms")


@pytest.mark.parametrize("different", [EXACT_MAX, EXACT_MAX + 1, 3000, 60_000])
def test_about_how_many_values_there_are(different: int) -> None:
    aggregate = agg.approx_distinct()
    values = [f"user-{each}" for each in range(different)]
    kept = kept_of(aggregate, values + values[:100])

    for seed in range(3):
        assert merged(aggregate, values, Random(seed)) == kept, "an answer of the values alone"

    found = aggregate.result(kept)
    assert found == (different if different == EXACT_MAX else pytest.approx(different, rel=0.05))


def test_error_of_the_number_of_values_is_what_the_docs_say() -> None:
    aggregate = agg.approx_distinct()
    starts = range(0, 300_000, 10_000)
    found = [aggregate.result(kept_of(aggregate, [*range(at, at + 5000)])) for at in starts]
    errors = [each / 5000 - 1 for each in found]

    assert math.sqrt(statistics.mean(error * error for error in errors)) < 0.016 * 1.4
    assert abs(statistics.mean(errors)) < 0.016 * 3 / math.sqrt(30)


def test_equal_values_are_one_however_they_are_written() -> None:
    aggregate = agg.approx_distinct()
    numbers = [*range(-3000, 3000)]
    alike = [make(each) for each in numbers for make in (int, float, Decimal, Fraction)]

    assert kept_of(aggregate, alike) == kept_of(aggregate, numbers)
    halves = [each + 0.5 for each in numbers]
    assert kept_of(aggregate, [Decimal(each) for each in halves]) == kept_of(aggregate, halves)
    pairs = [(each, f"{each}") for each in numbers]
    found = aggregate.result(kept_of(aggregate, pairs))
    assert found == pytest.approx(len(pairs), rel=0.05)


@pytest.mark.parametrize("k", [1, 5, 300])
def test_frequent_values_of_many_different_ones(k: int) -> None:
    """Each count is at most by a thousandth of all too low, and never too high."""
    chance = Random(k)
    values = [int(chance.paretovariate(0.25)) for _ in range(40_000)]
    chance.shuffle(values)
    aggregate, counts = agg.heavy_hitters(k), Counter(values)
    assert len(counts) > 2 * max(1000, 10 * k)
    bound = len(values) / max(1000, 10 * k)

    for kept in (kept_of(aggregate, values), merged(aggregate, values, chance)):
        found = [(each["value"], each["count"]) for each in aggregate.result(kept)]
        assert len(found) == k
        assert all(counts[value] - bound <= count <= counts[value] for value, count in found)
        assert [count for _, count in found] == sorted((n for _, n in found), reverse=True)
        missing = {each for each, n in counts.items() if n > found[-1][1] + bound}
        assert missing <= {value for value, _ in found}


@given(st.lists(st.one_of(st.integers(0, 5), st.text("ab", max_size=1), st.none())))
def test_most_frequent_of_few_values(values: list[Any]) -> None:
    """Property: as `Counter` has it; of equally frequent ones the same in any order."""
    counts = Counter(value for value in values if value is not None)
    found = agg.heavy_hitters(3).result(kept_of(agg.heavy_hitters(3), values))
    mode = agg.mode().result(kept_of(agg.mode(), values))

    assert [each["count"] for each in found] == [n for _, n in counts.most_common(3)]
    assert all(counts[each["value"]] == each["count"] for each in found)
    assert mode == (found[0]["value"] if found else None)
    for seed in range(3):
        assert agg.mode().result(merged(agg.mode(), values, Random(seed))) == mode


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.tuples(st.integers(0, 4), st.text()))))
def test_value_where_another_one_is_greatest(pairs: list[Any]) -> None:
    """Property: of equal ones the earliest, then the one that came first; None is left out."""
    there = [(time, at, *pair) for at, (time, pair) in enumerate(pairs) if pair is not None]
    least = min(there, key=lambda each: (each[2], each[0], each[1]), default=None)
    most = min(there, key=lambda each: (-each[2], each[0], each[1]), default=None)

    for aggregate, wanted in ((agg.arg_min(by="x"), least), (agg.arg_max(by="x"), most)):
        assert aggregate.result(kept_of(aggregate, pairs)) == (wanted and wanted[3])


@given(st.lists(st.tuples(st.integers(0, 100), st.floats(-1e6, 1e6)), min_size=1, max_size=20))
def test_older_values_count_less(pairs: list[tuple[int, float]]) -> None:
    newest = max(time for time, _ in pairs)
    weights = [0.5 ** ((newest - time) / 10) for time, _ in pairs]
    wanted = math.fsum(w * x for w, (_, x) in zip(weights, pairs, strict=True)) / math.fsum(weights)
    aggregate = agg.ewma(half_life="10ms")

    found = aggregate.result(kept_of(aggregate, pairs))

    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-6)


def test_unknown_names_are_told_with_what_was_meant() -> None:
    for name, meant in {"percentile": "quantile", "medain": "median", "argmax": "arg_max"}.items():
        with pytest.raises(AttributeError, match=f"no aggregate '{name}': did you mean {meant}"):
            getattr(agg, name)
    with pytest.raises(AttributeError, match=r"did you mean quantile\(0.95, ...\)"):
        agg.p95  # noqa: B018 - it is what fails
    assert dir(agg) == sorted(agg.__all__)
