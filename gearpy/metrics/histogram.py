"""Distributions with fixed buckets, whose bounds grow by the same factor everywhere.

Bucket ``i`` holds the values above ``2 ** ((i - 1) / 4)`` up to ``2 ** (i / 4)``: a quantile is off
by a tenth at most, whatever is measured, and any two histograms can be added. As there are no
other bounds, a sample travels as numbers of buckets.
"""

from collections.abc import Iterable, Sequence
from math import ceil, log2
from typing import Final

from gearpy.messages.metrics import HistogramSample

#: The lowest bucket holds all values up to a millionth, zero and below; the highest from 2**40 on.
BUCKET_MIN: Final = -80
BUCKET_MAX: Final = 160
_PER_DOUBLING: Final = 4


def bucket_of(value: float) -> int:
    """Return the number of the bucket of a value; that of a NaN is the lowest."""
    if not value > 0.0:
        return BUCKET_MIN
    if value >= _HIGHEST:
        return BUCKET_MAX
    return max(BUCKET_MIN, ceil(_PER_DOUBLING * log2(value)))


class Histogram:
    """Counts values by their bucket. Not shared between threads."""

    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        bucket = bucket_of(value)
        self._counts[bucket] = self._counts.get(bucket, 0) + times
        self._total += value * times

    def sample(self) -> HistogramSample:
        """Return all counts so far. May be called on another thread than `observe`."""
        return HistogramSample(counts=tuple(sorted(self._counts.copy().items())), total=self._total)


def count_of(sample: HistogramSample) -> int:
    return sum(count for _, count in sample.counts)


def mean_of(sample: HistogramSample) -> float | None:
    count = count_of(sample)
    return sample.total / count if count else None


def quantile_of(sample: HistogramSample, share: float) -> float | None:
    """Return the value that a share (0..1) of all values is not above; None if there is none.

    It is the middle of its bucket, on the scale of the bounds.
    """
    count = count_of(sample)
    rank = max(1, ceil(count * share))
    seen = 0
    for bucket, number in sample.counts:
        seen += number
        if seen >= rank:
            return _middle_of(bucket)
    return None


def quantile_ms_of(sample: HistogramSample, share: float) -> float | None:
    seconds = quantile_of(sample, share)
    return None if seconds is None else seconds * 1000


def stddev_of(sample: HistogramSample) -> float | None:
    count = count_of(sample)
    if not count:
        return None
    middles = [(_middle_of(bucket), number) for bucket, number in sample.counts]
    mean = sum(middle * number for middle, number in middles) / count
    variance = sum(number * (middle - mean) ** 2 for middle, number in middles) / count
    return float(variance**0.5)


def merged(samples: Iterable[HistogramSample]) -> HistogramSample:
    counts: dict[int, int] = {}
    total = 0.0
    for sample in samples:
        total += sample.total
        for bucket, count in sample.counts:
            counts[bucket] = counts.get(bucket, 0) + count
    return HistogramSample(counts=tuple(sorted(counts.items())), total=total)


def since(later: HistogramSample, earlier: HistogramSample) -> HistogramSample:
    between = dict(later.counts)
    for bucket, count in earlier.counts:
        between[bucket] = between.get(bucket, 0) - count
    if min(between.values(), default=0) < 0:
        return later
    counts = tuple((bucket, count) for bucket, count in between.items() if count)
    return HistogramSample(counts=counts, total=later.total - earlier.total)


def cumulative(sample: HistogramSample, bounds: Sequence[float]) -> list[int]:
    """Return how many values are not above each bound (ascending); exact for powers of two."""
    numbers = []
    for bound in bounds:
        last = bucket_of(bound)
        numbers.append(sum(count for bucket, count in sample.counts if bucket <= last))
    return numbers


def _middle_of(bucket: int) -> float:
    if bucket <= BUCKET_MIN:
        return 0.0
    return float(2.0 ** ((bucket - 0.5) / _PER_DOUBLING))


_HIGHEST: Final = 2.0 ** ((BUCKET_MAX - 1) / _PER_DOUBLING)
