"""Histograms: every value in the right bucket, sums that add up, quantiles that are near."""

from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.messages.metrics import HistogramSample
from gearpy.metrics.histogram import (
    BUCKET_MAX,
    BUCKET_MIN,
    Histogram,
    bucket_of,
    count_of,
    cumulative,
    mean_of,
    merged,
    quantile_of,
    since,
    stddev_of,
)

SECONDS = st.floats(min_value=2e-6, max_value=1e9)
ANY = st.floats(allow_nan=False)
EMPTY = HistogramSample()


def sampled(values: list[float]) -> HistogramSample:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    return histogram.sample()


def bound_of(bucket: int) -> float:
    return float(2.0 ** (bucket / 4))


@given(ANY)
def test_a_value_lies_within_the_bounds_of_its_bucket(value: float) -> None:
    bucket = bucket_of(value)

    assert BUCKET_MIN <= bucket <= BUCKET_MAX
    assert bucket == BUCKET_MAX or value <= bound_of(bucket) * (1 + 1e-12)
    if bucket > BUCKET_MIN:
        assert value > bound_of(bucket - 1) * (1 - 1e-12)


def test_the_ends_take_all_that_is_beyond() -> None:
    below = [bucket_of(value) for value in (0.0, -1.0, -inf, float("nan"), 1e-300)]

    assert below == [BUCKET_MIN] * len(below)
    assert bucket_of(inf) == bucket_of(1e300) == BUCKET_MAX


@given(st.integers(-20, 39))
def test_powers_of_two_are_bounds(power: int) -> None:
    assert bound_of(bucket_of(2.0**power)) == 2.0**power


@given(st.lists(SECONDS, min_size=1), st.sampled_from([0.0, 0.5, 0.95, 0.99, 1.0]))
def test_a_quantile_is_near_the_value_of_its_rank(values: list[float], share: float) -> None:
    true = sorted(values)[max(1, ceil(len(values) * share)) - 1]

    found = quantile_of(sampled(values), share)

    assert found == pytest.approx(true, rel=0.1)


@given(st.lists(SECONDS), st.lists(SECONDS))
def test_merging_is_the_same_as_counting_together(some: list[float], others: list[float]) -> None:
    together, both = sampled([*some, *others]), merged([sampled(some), sampled(others)])

    assert both.counts == together.counts
    assert both.total == pytest.approx(together.total)
    assert count_of(both) == len(some) + len(others)


@given(st.lists(SECONDS), st.lists(SECONDS))
def test_what_came_between_two_samples_is_what_was_observed(
    first: list[float], then: list[float]
) -> None:
    between = since(sampled([*first, *then]), sampled(first))

    assert between.counts == sampled(then).counts


def test_a_histogram_that_began_anew_counts_as_a_whole() -> None:
    later = sampled([5.0])

    assert since(later, sampled([5.0, 5.0])) == later
    assert since(later, sampled([7.0])) == later
    assert since(EMPTY, EMPTY) == EMPTY


@given(st.lists(st.floats(min_value=0, max_value=2**38)))
def test_cumulative_counts_are_exact_at_powers_of_two(values: list[float]) -> None:
    bounds = [2.0**power for power in range(-19, 39, 3)]

    found = cumulative(sampled(values), bounds)

    assert found == [sum(value <= bound for value in values) for bound in bounds]


@given(SECONDS, st.integers(1, 1000))
def test_one_value_many_times(value: float, times: int) -> None:
    histogram = Histogram()
    histogram.observe(value, times)

    sample = histogram.sample()

    assert count_of(sample) == times
    assert mean_of(sample) == pytest.approx(value)
    assert stddev_of(sample) == pytest.approx(0, abs=value * 1e-9)


def test_nothing_observed_has_no_figures() -> None:
    assert [mean_of(EMPTY), stddev_of(EMPTY), quantile_of(EMPTY, 0.5)] == [None] * 3
