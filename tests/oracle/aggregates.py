"""What some values come to, computed from all of them at once.

None is left out by all but `count`. NaN counts as less than any number to `max` and `top`, and as
more than any to `min`; all NaN are one value to `distinct`.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

#: Event time and value of each record, in the order in which they came.
_Timed = Sequence[tuple[int, Any]]


def _known(values: _Timed) -> list[Any]:
    return [value for _, value in values if value is not None]


def _numbers(values: _Timed) -> list[Any]:
    return [value for value in _known(values) if not math.isnan(value)]


def _nan_if_any(values: _Timed) -> Any:
    return math.nan if _known(values) else None


def _count(values: _Timed) -> int:
    return len(values)


def _sum(values: _Timed) -> Any:
    known = _known(values)
    return sum(known) if known else None


def _least(values: _Timed) -> Any:
    return min(_numbers(values), default=_nan_if_any(values))


def _greatest(values: _Timed) -> Any:
    return max(_numbers(values), default=_nan_if_any(values))


def _mean(values: _Timed) -> Any:
    known = _known(values)
    return sum(known) / len(known) if known else None


def _first(values: _Timed) -> Any:
    known = [pair for pair in values if pair[1] is not None]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def _last(values: _Timed) -> Any:
    known = [pair for pair in reversed(values) if pair[1] is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _distinct(values: _Timed) -> int:
    return len(set(_numbers(values))) + (len(_numbers(values)) < len(_known(values)))


def _top(values: _Timed) -> list[Any]:
    known = _numbers(values)
    return (sorted(known, reverse=True) + [math.nan] * (len(_known(values)) - len(known)))[:2]


def _variance(values: _Timed) -> Any:
    if len(_known(values)) < 2:
        return None
    if len(_numbers(values)) < len(_known(values)):
        return math.nan
    known = [Fraction(value) for value in _known(values)]
    mean = sum(known) / len(known)
    return float(sum((value - mean) ** 2 for value in known) / (len(known) - 1))


def _stddev(values: _Timed) -> Any:
    variance = _variance(values)
    return None if variance is None else math.sqrt(variance)


def _median(values: _Timed) -> Any:
    numbers = sorted(_numbers(values)) + [math.nan] * (len(_known(values)) - len(_numbers(values)))
    if not numbers:
        return None
    low, high = numbers[(len(numbers) - 1) // 2], numbers[len(numbers) // 2]
    return float(low) if low == high else low + (high - low) / 2


def _counts(values: _Timed) -> list[tuple[Any, int]]:
    numbers = _numbers(values)
    pairs = sorted((-numbers.count(each), each) for each in set(numbers))
    nans = len(_known(values)) - len(numbers)
    pairs += [(-nans, math.nan)] if nans else []
    return [(each, -count) for count, each in sorted(pairs, key=lambda pair: pair[0])]


#: By the name of the function in ``gp.agg``; `top` and `heavy_hitters` are of two.
AGGREGATES: Final[dict[str, Callable[[_Timed], Any]]] = {
    "count": _count,
    "sum": _sum,
    "min": _least,
    "max": _greatest,
    "mean": _mean,
    "first": _first,
    "last": _last,
    "collect": _known,
    "distinct": _distinct,
    "top": _top,
    "variance": _variance,
    "stddev": _stddev,
    "median": _median,
    "mode": lambda values: _counts(values)[0][0] if _known(values) else None,
    "heavy_hitters": lambda values: [
        {"value": value, "count": count} for value, count in _counts(values)[:2]
    ],
    "approx_distinct": _distinct,
    "count_if": lambda values: sum(map(bool, _known(values))),
    "any": lambda values: any(_known(values)),
    "all": lambda values: all(_known(values)),
}


def batch_value(kind: str, of: str | None, rows: Sequence[tuple[int, dict[str, Any]]]) -> Any:
    """Return what an aggregate of a field makes of all rows, which have their event times."""
    values = [(time_ms, row if of is None else row[of]) for time_ms, row in rows]
    return AGGREGATES[kind](values)
