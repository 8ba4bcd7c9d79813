"""Aggregates beside what the standard library says."""

import math
import statistics
from copy import deepcopy
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import TOP_MAX, Aggregate, check_aggregates
from gearpy.errors import ConfigError
from gearpy.wire.values.payload import decode_value, encode_value

INTS = st.lists(st.one_of(st.none(), st.integers()))
FLOATS = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(math.nan)))
DECIMALS = st.lists(st.one_of(st.none(), st.decimals(-(10**20), 10**20, places=9)))
TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=3)))
TIMED = st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers())))
EVERY: list[Aggregate] = [
    agg.count(),
    agg.sum(),
    agg.min(),
    agg.max(),
    agg.mean(),
    agg.collect(),
    agg.distinct(),
    agg.top(3),
    agg.variance(),
    agg.stddev(),
    agg.any(),
    agg.all(),
    agg.count_if(None),
    agg.quantile([0, 0.5, 0.9]),
    agg.approx_distinct(),
    agg.mode(),
    agg.heavy_hitters(2),
    agg.custom(int, lambda kept, value: kept + value, merge=lambda a, b: a + b),
]


def result_of(aggregate: Aggregate, values: list[Any]) -> Any:
    return aggregate.result(accumulated(aggregate, values))


def accumulated(aggregate: Aggregate, values: list[Any]) -> Any:
    kept = aggregate.create()
    for value in values:
        kept = aggregate.add(kept, value)
    return kept


@given(INTS)
def test_results_over_whole_numbers(values: list[int | None]) -> None:
    """Property: those of the language, without None; exactly, whatever the size."""
    there = [value for value in values if value is not None]

    assert result_of(agg.count(), values) == len(values)
    assert result_of(agg.sum(), values) == (sum(there) if there else None)
    assert result_of(agg.min(), values) == min(there, default=None)
    assert result_of(agg.max(), values) == max(there, default=None)
    assert result_of(agg.mean(), values) == (sum(there) / len(there) if there else None)
    assert result_of(agg.collect(), values) == there
    assert result_of(agg.distinct(), values) == len(set(there))
    assert result_of(agg.top(3), values) == sorted(there, reverse=True)[:3]
    assert result_of(agg.any(), values) is any(there)
    assert result_of(agg.all(), values) is all(there)


@given(FLOATS)
def test_results_over_floats(values: list[float | None]) -> None:
    """Property: NaN makes sums NaN, is last in order, and is one value."""
    there = [value for value in values if value is not None]
    numbers = [value for value in there if not math.isnan(value)]
    nans = [value for value in there if math.isnan(value)]

    def check(found: Any, expected: Any) -> None:
        assert found == pytest.approx(expected, nan_ok=True) if there else found is None

    check(result_of(agg.sum(), values), sum(there))
    check(result_of(agg.min(), values), min(numbers or nans, default=None))
    check(result_of(agg.max(), values), max(numbers or nans, default=None))
    assert result_of(agg.distinct(), values) == len(set(numbers)) + bool(nans)
    expected = [*sorted(numbers, reverse=True), *nans][:3]
    assert result_of(agg.top(3), values) == pytest.approx(expected, nan_ok=True)


@given(DECIMALS)
def test_sums_of_decimals_are_exact(values: list[Decimal | None]) -> None:
    """Property: no digit is rounded away, although the language would beyond 28."""
    there = [Fraction(value) for value in values if value is not None]

    assert result_of(agg.sum(), values) == (sum(there) if there else None)


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1))
def test_spread_of_floats(values: list[float | None]) -> None:
    there = [value for value in values if value is not None]

    for ddof, of in ((0, statistics.pvariance), (1, statistics.variance)):
        expected = of(there) if len(there) > ddof else None
        found = result_of(agg.variance(ddof=ddof), values)
        assert found == (None if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-4))
        found = result_of(agg.stddev(ddof=ddof), values)
        assert found == (
            None if expected is None else pytest.approx(math.sqrt(expected), rel=1e-4, abs=1e-2)
        )


@pytest.mark.parametrize(
    "far", [10**9, 1_700_000_000 * 10**9, 1e15, Decimal(10**20), 2**70, Fraction(10**20, 3)]
)
@pytest.mark.parametrize("cut", range(5))
def test_spread_of_large_numbers_keeps_its_digits(far: Any, cut: int) -> None:
    values = [far + value for value in (4, 7, 13, 16)]
    spread = agg.variance()
    assert spread.merge is not None

    parts = accumulated(spread, values[:cut]), accumulated(spread, values[cut:])

    assert spread.result(spread.merge(*parts)) == pytest.approx(30, rel=1e-12)


@given(st.lists(st.integers(-(2**80), 2**80) | st.floats(-1e20, 1e20), min_size=2))
def test_spread_of_whole_numbers_and_fractions(values: list[Any]) -> None:
    exact = float(statistics.variance(map(Fraction, values)))

    assert result_of(agg.variance(), values) == pytest.approx(exact, rel=1e-9)


@given(TIMED)
def test_first_and_last_go_by_time_and_then_by_arrival(pairs: list[tuple[int, int | None]]) -> None:
    there = [(time, at, value) for at, (time, value) in enumerate(pairs) if value is not None]

    assert result_of(agg.first(), pairs) == (min(there)[2] if there else None)
    assert result_of(agg.last(), pairs) == (max(there)[2] if there else None)


@given(st.sampled_from(EVERY), st.one_of(INTS, DECIMALS), st.data())
def test_parts_merge_to_the_whole(aggregate: Aggregate, values: list[Any], data: Any) -> None:
    """Property: wherever values are parted; nobody sees the accumulators of others."""
    cut = data.draw(st.integers(0, len(values)))
    left, right = accumulated(aggregate, values[:cut]), accumulated(aggregate, values[cut:])
    assert aggregate.merge is not None

    merged = aggregate.result(aggregate.merge(left, right))

    whole = result_of(aggregate, values)
    if aggregate.kind in {"variance", "stddev"}:
        assert merged == (None if whole is None else pytest.approx(whole, rel=1e-9))
    else:
        assert merged == whole


@given(TIMED, TIMED)
def test_parts_with_times_merge_to_the_whole(
    left: list[tuple[int, int | None]], right: list[tuple[int, int | None]]
) -> None:
    """Property: of equal times the part that came first has the first, the other the last."""
    for aggregate in (agg.first(), agg.last(), agg.ewma(half_life="4ms")):
        assert aggregate.merge is not None
        merged = aggregate.merge(accumulated(aggregate, left), accumulated(aggregate, right))
        whole = result_of(aggregate, left + right)
        assert aggregate.result(merged) == (pytest.approx(whole) if type(whole) is float else whole)


@given(st.sampled_from(EVERY), INTS, INTS)
def test_result_is_independent_of_its_accumulator(
    aggregate: Aggregate, values: list[Any], more: list[Any]
) -> None:
    """Property: a result that was put out does not change, and the accumulator goes on."""
    kept = accumulated(aggregate, values)
    result = aggregate.result(kept)
    before = deepcopy(result)

    for value in more:
        kept = aggregate.add(kept, value)

    assert result == before
    final = aggregate.result(kept)
    assert final == pytest.approx(result_of(aggregate, values + more), nan_ok=True)


@given(st.sampled_from(EVERY), st.one_of(INTS, DECIMALS))
def test_accumulators_can_be_stored(aggregate: Aggregate, values: list[Any]) -> None:
    """Property: as plain data, and go on when they are read again."""
    kept = accumulated(aggregate, values)

    assert decode_value(encode_value(kept)) == kept


def test_accumulators_of_timed_aggregates_are_plain() -> None:
    kept = accumulated(agg.last(), [(5, "a"), (7, "b")])

    assert msgpack.unpackb(msgpack.packb(kept), use_list=False) == (7, "b")
    assert agg.last().is_timed
    assert not agg.max().is_timed


@given(TEXTS)
def test_order_of_texts(values: list[str | None]) -> None:
    there = [value for value in values if value is not None]

    assert result_of(agg.min(), values) == min(there, default=None)
    assert result_of(agg.max(), values) == max(there, default=None)
    assert result_of(agg.top(2), values) == sorted(there, reverse=True)[:2]


def test_numbers_of_a_fixed_size_do_not_wrap_round() -> None:
    """NumPy's would, in silence."""
    assert result_of(agg.sum(), [np.int8(100), np.int8(100)]) == 200
    assert type(result_of(agg.sum(), [np.float32(1.5)])) is float


@pytest.mark.parametrize("value", ["text", b"raw", [1], date(2020, 1, 1), {"a": 1}])
def test_what_is_no_number_cannot_be_added_up(value: Any) -> None:
    """Texts would be strung together in silence."""
    for aggregate in (agg.sum(), agg.mean()):
        with pytest.raises(TypeError, match="cannot be added up"):
            aggregate.add(aggregate.create(), value)
    with pytest.raises(TypeError, match="is no number"):
        agg.variance().add(None, value)


def test_value_that_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        agg.distinct().add(set(), [1])


@given(st.lists(st.floats(allow_nan=True), max_size=12), st.integers(1, 5))
def test_top_keeps_no_more_than_it_needs(values: list[float], n: int) -> None:
    """Property: memory is bounded by n, and the list that is there is not changed."""
    aggregate = agg.top(n)
    kept: list[float] = []
    for value in values:
        before, copy = kept, list(kept)
        kept = aggregate.add(kept, value)
        assert len(kept) <= n
        assert [*map(repr, before)] == [*map(repr, copy)]


@pytest.mark.parametrize("n", [0, -1, TOP_MAX + 1, 1.5, True, "3"])
def test_top_of_no_number_is_refused(n: Any) -> None:
    with pytest.raises(ConfigError, match=f"whole number from 1 to {TOP_MAX}"):
        agg.top(n)


@pytest.mark.parametrize("ddof", [2, -1, 0.5, None, True])
def test_spread_of_no_kind_is_refused(ddof: Any) -> None:
    with pytest.raises(ConfigError, match="give 1 for a sample, or 0"):
        agg.variance(ddof=ddof)
    with pytest.raises(ConfigError, match="stddev"):
        agg.stddev(ddof=ddof)


def test_value_of_a_record_has_to_be_something() -> None:
    with pytest.raises(ConfigError, match="tells nothing about a record"):
        agg.sum(3)  # type: ignore[arg-type]


def test_custom_aggregate_is_made_of_functions() -> None:
    longest = agg.custom(
        str,
        lambda kept, text: max(kept, text, key=len),
        result=str.upper,
        merge=lambda a, b: max(a, b, key=len),
    )
    plain = agg.custom(list, lambda kept, value: [*kept, value])

    assert result_of(longest, ["a", None, "abc"]) == "ABC"
    assert longest.merge is not None
    assert longest.merge("a", "bc") == "bc"
    assert result_of(plain, [1, None, 2]) == [1, 2]
    assert plain.merge is None


@pytest.mark.parametrize("name", ["create", "add", "result", "merge"])
def test_custom_aggregate_of_no_functions_is_refused(name: str) -> None:
    functions: dict[str, Any] = {"create": list, "add": max, "result": len, "merge": max}

    with pytest.raises(ConfigError, match=rf"custom\({name}=3\): give a function"):
        agg.custom(**(functions | {name: 3}))


def test_set_of_aggregates_is_checked() -> None:
    check_aggregates({"n": agg.count()})
    with pytest.raises(ConfigError, match="nothing to do"):
        check_aggregates({})
    with pytest.raises(ConfigError) as raised:
        check_aggregates({"a": "sum", "n": agg.count(), "b": len})
    assert len(raised.value.mistakes) == 2


def test_aggregates_show_what_they_are() -> None:
    shown = [str(each) for each in (agg.count(), agg.sum("x"), agg.top(3, "x"), agg.max(abs))]

    assert shown == ["count()", "sum(x)", "top(3, x)", "max(abs)"]


@given(st.lists(st.integers(), min_size=1))
def test_infinity_has_no_spread(values: list[int]) -> None:
    assume(len(values) > 1)

    assert math.isnan(result_of(agg.variance(), [*values, math.inf]))
    assert math.isnan(result_of(agg.variance(), [math.inf, *values]))


def test_result_of_a_custom_aggregate_does_not_grow() -> None:
    """Although the function changes what is kept, as it may."""

    def add(kept: dict[str, list[int]], value: int) -> dict[str, list[int]]:
        kept.setdefault("all", []).append(value)
        return kept

    values = agg.custom(dict, add)
    kept = values.add(values.create(), 1)
    shown = values.result(kept)

    values.add(kept, 2)

    assert shown == {"all": [1]}


_PARTS = st.lists(st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.5, math.nan, True]))


@given(parts=st.tuples(_PARTS, _PARTS), n=st.integers(1, 4))
def test_merged_tops_are_those_of_one_after_the_other(
    parts: tuple[list[Any], list[Any]], n: int
) -> None:
    """To the bit: of equal values the first stay first, and NaN is behind all others."""
    top = agg.top(n)
    assert top.merge is not None
    kept = [reduce(top.add, part, top.create()) for part in parts]

    merged = top.merge(*kept)

    expected = reduce(top.add, [*parts[0], *parts[1]], top.create())
    assert list(map(repr, merged)) == list(map(repr, expected))
