"""Aggregates of many records: count, sum, quantiles and so on; users know it as ``gp.agg``.

``of`` is what of a record: the name of a field, a function of the record, or nothing for the record
itself. ``where`` names a field, or is a function of the record: only records count for which it is
true. The rest is not even asked for the value.

None is no value: all but `count` leave it out, and the result of no value is None, except where
there is an obvious one. NaN is a value: a sum with it is NaN. `min`, `max`, `top`, `arg_min` and
`arg_max` prefer any number to it, `distinct` takes all NaN for one, and to `quantile` it is greater
than all numbers.
"""

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from reprlib import repr as short_repr
from typing import Any, Final, Literal, NoReturn

from gearpy.core.base.copies import own
from gearpy.core.base.fields import Field, value_getter
from gearpy.core.base.one_key import one_if_key, one_key
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.window.accumulators import (
    TOP_MAX,
    Aggregate,
    Best,
    Decayed,
    Kind,
    Spread,
    Taking,
    Top,
    add_count,
    add_to_mean,
    add_to_set,
    add_up,
    append,
    bits_of,
    both,
    decayed_mean,
    earliest,
    either,
    extend,
    greatest,
    itself,
    latest,
    least,
    mean_of,
    merge_counts,
    merge_means,
    nothing,
    one_more,
    one_more_if,
    plus,
    second,
    true,
)
from gearpy.core.window.sketches import (
    Quantiles,
    add_different,
    add_frequent,
    add_number,
    count_different,
    merge_different,
    merge_frequent,
    merge_quantiles,
    most_frequent,
)
from gearpy.core.window.sketches import quantile as quantile_of
from gearpy.errors import ConfigError

__all__ = [
    "all",
    "any",
    "approx_distinct",
    "arg_max",
    "arg_min",
    "collect",
    "count",
    "count_if",
    "custom",
    "distinct",
    "ewma",
    "first",
    "heavy_hitters",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "quantile",
    "stddev",
    "sum",
    "top",
    "variance",
]

#: Names in other libraries, and those of them here.
_ELSEWHERE: Final = {
    "quantile": "percentile percentile_cont quantile_cont approx_quantile approx_percentile",
    "distinct": "nunique n_unique count_distinct unique",
    "approx_distinct": "approx_count_distinct approx_n_unique approx_unique hll uniq",
    "arg_max": "argmax max_by",
    "arg_min": "argmin min_by",
    "mean": "avg average",
    "stddev": "std stdev stddev_samp",
    "variance": "var var_samp",
    "collect": "list collect_list array_agg",
    "heavy_hitters": "most_common top_k topk approx_top_k approx_top_count",
    "ewma": "ema ewm ewm_mean",
    "count_if": "countif count_where",
    "any": "some bool_or",
    "all": "every bool_and",
}
#: Values are counted, beyond some number of different ones, for so many of them at least.
_CAPACITY: Final = 1000
_MEDIAN: Final = 0.5
_PERCENT: Final = 100


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> NoReturn:
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

    known = {other: own for own, others in _ELSEWHERE.items() for other in others.split()}
    nearest = known.get(name) or next(iter(get_close_matches(name, __all__, n=1)), "")
    if name[:1] == "p" and name[1:].isdecimal():
        nearest = f"quantile(0.{name[1:]}, ...)"
    there = f"did you mean {nearest}?" if nearest else f"there are {', '.join(__all__)}"
    hint = "" if name.startswith("_") else f": {there}"
    # With an object of its own the error gets no second advice from Python.
    raise AttributeError(f"gearpy.agg has no aggregate {name!r}{hint}", name=name, obj=None)


def count(*, where: Field = None) -> Aggregate:
    """Count the records.

    Example:
        >>> total = count()
        >>> total.result(total.add(total.create(), "a record"))
        1
    """
    if where is not None:
        return count_if(where)
    return Aggregate(kind="count", create=int, add=one_more, merge=plus, result=itself)


def count_if(of: Field) -> Aggregate:
    """Count the records of which a field or a function is true; the same as ``count(where=of)``.

    Example:
        >>> large = count_if(lambda price: price > 10)
        >>> large.result(large.add(large.create(), True))
        1
    """
    return _aggregate("count_if", of, None, int, one_more_if, plus)


def sum(of: Field = None, *, where: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.sum``
    """Add up numbers or durations. Whole numbers and decimals are exact, whatever their size."""
    return _aggregate("sum", of, where, nothing, add_up, add_up)


def min(of: Field = None, *, where: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.min``
    """Find the least value."""
    return _aggregate("min", of, where, nothing, least, least)


def max(of: Field = None, *, where: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.max``
    """Find the greatest value."""
    return _aggregate("max", of, where, nothing, greatest, greatest)


def mean(of: Field = None, *, where: Field = None) -> Aggregate:
    """Find the mean of numbers or durations: their exact sum by their number."""
    return _aggregate("mean", of, where, nothing, add_to_mean, merge_means, mean_of)


def median(of: Field = None, *, where: Field = None) -> Aggregate:
    """Find the middle of numbers, the same as ``quantile(0.5, of)``.

    Example:
        >>> middle = median()
        >>> kept = middle.create()
        >>> for number in (3, 1, 10):
        ...     kept = middle.add(kept, number)
        >>> middle.result(kept)
        3.0
    """
    return quantile(_MEDIAN, of, where=where)


def quantile(q: float | Sequence[float], of: Field = None, *, where: Field = None) -> Aggregate:
    """Find the number below which a part ``q`` of all numbers is; a float.

    Between two numbers it is in proportion, as with ``quantile_cont`` in SQL and ``quantile`` in
    pandas. Exact up to 1000 numbers of a group. Of more it is at most 0.4 % away, as long as the
    numbers span less than nine powers of ten; of three times as many powers, 1.6 %. The order of
    records makes no difference.

    Args:
        q: from 0 to 1, such as 0.95; or several of them, whose results are a list.
        of: what of a record.
        where: which records count.

    Raises:
        ConfigError: ``q`` is no number from 0 to 1.

    Example:
        >>> tail = quantile([0.5, 0.95])
        >>> kept = tail.create()
        >>> for number in range(101):
        ...     kept = tail.add(kept, number)
        >>> tail.result(kept)
        [50.0, 95.0]
    """
    is_single = not isinstance(q, list | tuple)
    parts: Sequence[Any] = (q,) if is_single else tuple(q)  # type: ignore[arg-type]
    wrong = [each for each in parts if type(each) not in {int, float} or not 0 <= each <= 1]
    if wrong or not parts:
        given: Any = wrong[0] if wrong else q
        is_percent = type(given) in {int, float} and 1 < given <= _PERCENT
        such = f"{given / _PERCENT:g}" if is_percent else "0.95"
        raise ConfigError(
            f"quantile({short_repr(given)}): give a number from 0 to 1 first, such as {such}, or a "
            "list of them"
        )

    def result(kept: Quantiles) -> Any:
        found = [quantile_of(kept, part) for part in parts]
        return found[0] if is_single else found

    return _aggregate(
        "quantile",
        of,
        where,
        list,
        Taking(bits_of, add_number),
        merge_quantiles,
        result,
        option=0 if is_single else len(parts),
        shown=str(q) if is_single else str(list(parts)),
    )


def first(of: Field = None, *, where: Field = None) -> Aggregate:
    """Find the value with the earliest event time; of several the one that came first."""
    return _aggregate("first", of, where, nothing, earliest, earliest, second)


def last(of: Field = None, *, where: Field = None) -> Aggregate:
    """Find the value with the latest event time; of several the one that came last."""
    return _aggregate("last", of, where, nothing, latest, latest, second)


def arg_min(of: Field = None, *, by: Field, where: Field = None) -> Aggregate:
    """Find the value of the record by which ``by`` is least; of several the earliest one.

    Args:
        of: what of that record; the record itself if not given.
        by: what is compared. A record where it is None does not count.
        where: which records count.

    Example:
        >>> cheapest = arg_min("item", by="price")
        >>> str(cheapest)
        'arg_min(item, by=price)'
    """
    return _best("arg_min", of, by, where)


def arg_max(of: Field = None, *, by: Field, where: Field = None) -> Aggregate:
    """Find the value of the record by which ``by`` is greatest; see `arg_min`."""
    return _best("arg_max", of, by, where)


def ewma(of: Field = None, *, half_life: Duration, where: Field = None) -> Aggregate:
    """Find the mean of numbers, of which older ones count less: a time-decayed mean.

    A number counts half as much as one that is newer by the half-life, in event time.

    Args:
        of: what of a record.
        half_life: such as "5m".
        where: which records count.

    Raises:
        ConfigError: the half-life is not understood, or is nothing.
    """
    half_life_ms = duration_ms(half_life)
    if not half_life_ms:
        raise ConfigError(f"ewma(half_life={half_life!r}): give a duration, such as '5m'")
    decayed = Decayed(half_life_ms)
    return _aggregate(
        "ewma",
        of,
        where,
        nothing,
        decayed.add,
        decayed.merge,
        decayed_mean,
        option=half_life_ms,
        shown=str(half_life),
    )


def collect(of: Field = None, *, where: Field = None) -> Aggregate:
    """List the values in the order in which they came. All of them are kept in memory."""
    return _aggregate("collect", of, where, list, append, extend, list)


def distinct(of: Field = None, *, where: Field = None) -> Aggregate:
    """Count the different values. One of each is kept in memory."""
    return _aggregate("distinct", of, where, set, add_to_set, set.union, len)


def approx_distinct(of: Field = None, *, where: Field = None) -> Aggregate:
    """Count the different values, of many about how many, in 4 KiB of memory.

    Exact up to 1000 different values of a group. Of more the standard error is 1.6 %: two of three
    results are closer. The order of records makes no difference. Values are such as keys may be.
    """
    return _aggregate(
        "approx_distinct",
        of,
        where,
        set,
        Taking(one_key, add_different),
        merge_different,
        count_different,
    )


def mode(of: Field = None, *, where: Field = None) -> Aggregate:
    """Find the most frequent value; of equally frequent ones the least.

    One of each different value is kept in memory; `heavy_hitters` keeps no more than some.
    """

    def result(counts: dict[Any, int]) -> Any:
        found = most_frequent(counts, 1)
        return found[0][0] if found else None

    taking = Taking(_hashable, add_count)
    return _aggregate("mode", of, where, dict, taking, merge_counts, result)


def heavy_hitters(k: int, of: Field = None, *, where: Field = None) -> Aggregate:
    """List the ``k`` most frequent values, the most frequent first, and how often there were.

    Each is a dict of "value" and "count". Of equally frequent ones the least comes first.

    Exact up to 2000 different values of a group. Of more, rare ones are forgotten: each count may
    then be too low by a thousandth of the number of values at most, and never is too high. (With
    ``k`` above 100 it is 20 times ``k``, and one in ten times ``k``.)

    Raises:
        ConfigError: ``k`` is no number from 1 to 10,000.
    """
    _check_number("heavy_hitters", k)
    capacity = builtins.max(_CAPACITY, 10 * k)

    def result(kept: tuple[dict[Any, int], int]) -> list[dict[str, Any]]:
        found = most_frequent(kept[0], k)
        return [{"value": value, "count": count} for value, count in found]

    return _aggregate(
        "heavy_hitters",
        of,
        where,
        _no_values,
        Taking(_hashable, partial(add_frequent, capacity=capacity)),
        partial(merge_frequent, capacity=capacity),
        result,
        shown=str(k),
    )


def top(n: int, of: Field = None, *, where: Field = None) -> Aggregate:
    """List the ``n`` greatest values, greatest first; of equal ones the earlier.

    Raises:
        ConfigError: ``n`` is no number from 1 to 10,000.
    """
    _check_number("top", n)
    kept = Top(n)
    return _aggregate("top", of, where, list, kept.add, kept.merge, list, option=n, shown=str(n))


def variance(of: Field = None, *, ddof: int = 1, where: Field = None) -> Aggregate:
    """Find the variance of numbers as a sample; None of no more than ``ddof`` of them.

    Args:
        of: what of a record.
        ddof: 1 for that of a sample, 0 for that of a whole population.
        where: which records count.

    Raises:
        ConfigError: ``ddof`` is neither.
    """
    return _spread("variance", of, where, ddof, Spread(ddof).variance)


def stddev(of: Field = None, *, ddof: int = 1, where: Field = None) -> Aggregate:
    """Find the standard deviation of numbers, the square root of `variance`."""
    return _spread("stddev", of, where, ddof, Spread(ddof).stddev)


def any(of: Field = None, *, where: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.any``
    """Tell whether some value is true; no value is not."""
    return _aggregate("any", of, where, bool, either, either)


def all(of: Field = None, *, where: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.all``
    """Tell whether no value is false."""
    return _aggregate("all", of, where, true, both, both)


def custom(
    create: Callable[[], Any],
    add: Callable[[Any, Any], Any],
    *,
    result: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    of: Field = None,
    where: Field = None,
) -> Aggregate:
    """Aggregate with functions of one's own.

    Args:
        create: makes an accumulator: plain data, which is stored.
        add: returns the accumulator with a value; it may change it if it cannot fail after that.
        result: makes the result of an accumulator, which goes on: they must share nothing that
            changes. If not given, a copy of the accumulator.
        merge: joins two accumulators, for windows that grow together.
        of: what of a record.
        where: which records count.

    Example:
        >>> letters = custom(int, lambda kept, text: kept + len(text))
        >>> letters.result(letters.add(letters.add(letters.create(), "abc"), "de"))
        5
    """
    given: dict[str, Any] = {"create": create, "add": add}
    given |= {k: f for k, f in (("result", result), ("merge", merge)) if f is not None}
    for name, function in given.items():
        if not callable(function):
            raise ConfigError(f"custom({name}={short_repr(function)}): give a function")

    def add_value(kept: Any, value: Any) -> Any:
        return kept if value is None else add(kept, value)

    return _aggregate("custom", of, where, create, add_value, merge, result or own)


def _aggregate(  # noqa: PLR0917 - read in one line
    kind: Kind,
    of: Field,
    where: Field,
    create: Callable[[], Any],
    add: Callable[[Any, Any], Any] | Taking,
    merge: Callable[[Any, Any], Any] | None,
    result: Callable[[Any], Any] = itself,
    *,
    by: Field = None,
    option: int = 0,
    shown: str = "",
) -> Aggregate:
    for each in (of, by, where):
        value_getter(each)  # Refuses what it cannot be.
    return Aggregate(
        kind=kind,
        of=of,
        by=by,
        where=where,
        create=create,
        add=add.add if isinstance(add, Taking) else add,
        merge=merge,
        result=result,
        option=option,
        taking=add if isinstance(add, Taking) else None,
        shown=shown,
    )


def _best(kind: Literal["arg_min", "arg_max"], of: Field, by: Field, where: Field) -> Aggregate:
    if by is None:
        raise ConfigError(
            f"{kind}(by=None): say what is compared, such as {kind}('item', by='price')"
        )
    add = Best(is_max=kind == "arg_max").add

    def result(kept: Any) -> Any:
        return None if kept is None else kept[1][1]

    return _aggregate(kind, of, where, nothing, add, add, result, by=by)


def _spread(
    kind: Literal["variance", "stddev"],
    of: Field,
    where: Field,
    ddof: int,
    result: Callable[[Any], Any],
) -> Aggregate:
    if type(ddof) is not int or ddof not in {0, 1}:
        raise ConfigError(f"{kind}(ddof={short_repr(ddof)}): give 1 for a sample, or 0")
    spread = Spread(ddof)
    return _aggregate(kind, of, where, nothing, spread.add, spread.merge, result, option=ddof)


def _check_number(kind: str, n: Any) -> None:
    if type(n) is not int or not 1 <= n <= TOP_MAX:
        instead = "collect() to keep" if kind == "top" else "mode() or distinct() to look at"
        raise ConfigError(
            f"{kind}({short_repr(n)}): give a whole number from 1 to {TOP_MAX}; use {instead} "
            "all values"
        )


def _hashable(value: Any) -> Any:
    value = one_if_key(value)
    hash(value)
    return value


def _no_values() -> tuple[dict[Any, int], int]:
    return {}, 0
