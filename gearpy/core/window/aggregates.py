"""Aggregates of many records: count, sum, min, max, mean and so on; users know it as ``gp.agg``.

An aggregate makes an accumulator, adds values to it one by one, and makes the result of it. Two
accumulators can be merged, so that parts of a stream may be aggregated apart. All of it is pure,
but for accumulators that grow (lists and sets): the caller of add or merge hands them over.

None is no value: all but `count` leave it out, and the result of no value is None, except where
there is an obvious one. NaN is a value: a sum with it is NaN. `min`, `max` and `top` prefer any
number to it, `distinct` takes all NaN for one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Integral, Number, Rational, Real
from reprlib import repr as short_repr
from typing import Any, Final, Literal, TypeAlias

from gearpy.core.base.copies import own
from gearpy.core.base.fields import NAN, Field, value_getter
from gearpy.core.base.one_key import ORDERED_BY_ZONE, PLAIN, one_if_key
from gearpy.errors import ConfigError

__all__ = [
    "TOP_MAX",
    "Aggregate",
    "Kind",
    "add_up",
    "all",
    "any",
    "check_aggregates",
    "collect",
    "count",
    "custom",
    "distinct",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "stddev",
    "sum",
    "top",
    "variance",
]

Kind: TypeAlias = Literal[
    "count",
    "sum",
    "min",
    "max",
    "mean",
    "first",
    "last",
    "collect",
    "distinct",
    "top",
    "variance",
    "stddev",
    "any",
    "all",
    "custom",
]

#: How many values `top` keeps at most: it looks for a place among them for each value.
TOP_MAX: Final = 10_000

#: Decimals are added up exactly as long as a sum has no more digits than this.
_EXACT: Final = Context(prec=200)


#: A float holds each whole number up to this.
_WHOLE_MAX: Final = 1 << 53
_INT_AND_FLOAT: Final = frozenset({int, float})


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One way to turn many values into one.

    Attributes:
        kind: the name of its operation; a stage may have a quicker way for it.
        of: the value of a record: the name of a field, a function, or None for the record.
        create: makes the accumulator of no values; plain data.
        add: takes a value in, and returns the accumulator. It may change and return the one it
            was given. `first` and `last` take pairs of event time and value.
        merge: joins two accumulators; the values of the second came later. May change the first.
            None: there is no way.
        result: makes the result of an accumulator, which goes on; they share nothing.
        option: of `top` how many, of `variance` and `stddev` the degrees of freedom taken off.
        gives_own: results share no record with the accumulator either, nor does ``add`` change it.
    """

    kind: Kind
    of: Field = None
    create: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any] | None
    result: Callable[[Any], Any]
    option: int = 0
    gives_own: bool = False

    @property
    def is_timed(self) -> bool:
        """Whether it takes pairs of event time and value."""
        return self.kind in {"first", "last"}

    def __str__(self) -> str:
        """Return the text of a plan."""
        name = getattr(self.of, "__name__", "function") if callable(self.of) else self.of
        shown = [str(self.option)] if self.kind == "top" else []
        return f"{self.kind}({', '.join([*shown, *([name] if name else [])])})"


# -- what users call -------------------------------------------------------------------------


def count() -> Aggregate:
    """Count the records.

    Example:
        >>> total = count()
        >>> total.result(total.add(total.create(), "a record"))
        1
    """
    return Aggregate(kind="count", create=int, add=_one_more, merge=_plus, result=itself)


def sum(of: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.sum``
    """Add up numbers or durations. Whole numbers and decimals are exact, whatever their size."""
    return _aggregate("sum", of, _nothing, add_up, add_up)


def min(of: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.min``
    """Find the least value."""
    return _aggregate("min", of, _nothing, _least, _least)


def max(of: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.max``
    """Find the greatest value."""
    return _aggregate("max", of, _nothing, _greatest, _greatest)


def mean(of: Field = None) -> Aggregate:
    """Find the mean of numbers or durations: their exact sum by their number."""
    return _aggregate("mean", of, _nothing, _add_to_mean, _merge_means, _mean)


def first(of: Field = None) -> Aggregate:
    """Find the value with the earliest event time; of several the one that came first."""
    return _aggregate("first", of, _nothing, _earliest, _earliest, _second)


def last(of: Field = None) -> Aggregate:
    """Find the value with the latest event time; of several the one that came last."""
    return _aggregate("last", of, _nothing, _latest, _latest, _second)


def collect(of: Field = None) -> Aggregate:
    """List the values in the order in which they came. All of them are kept in memory."""
    return _aggregate("collect", of, list, _append, _extend, list)


def distinct(of: Field = None) -> Aggregate:
    """Count the different values. One of each is kept in memory."""
    return _aggregate("distinct", of, set, _add_to_set, set.union, len)


def top(n: int, of: Field = None) -> Aggregate:
    """List the ``n`` greatest values, greatest first; of equal ones the earlier.

    Raises:
        ConfigError: ``n`` is no number from 1 to `TOP_MAX`.
    """
    if type(n) is not int or not 1 <= n <= TOP_MAX:
        raise ConfigError(
            f"top({short_repr(n)}): give a whole number from 1 to {TOP_MAX}; use collect() to "
            "keep all values"
        )
    return Aggregate(
        kind="top",
        of=_checked(of),
        create=list,
        add=_Top(n).add,
        merge=_Top(n).merge,
        result=list,
        option=n,
    )


def variance(of: Field = None, *, ddof: int = 1) -> Aggregate:
    """Find the variance of numbers; None of no more than ``ddof`` of them.

    Args:
        of: what of a record.
        ddof: 1 for that of a sample, 0 for that of all there is.

    Raises:
        ConfigError: ``ddof`` is neither.
    """
    return _spread("variance", of, ddof, _Spread(ddof).variance)


def stddev(of: Field = None, *, ddof: int = 1) -> Aggregate:
    """Find the standard deviation of numbers, the square root of `variance`."""
    return _spread("stddev", of, ddof, _Spread(ddof).stddev)


def any(of: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.any``
    """Tell whether some value is true; no value is not."""
    return _aggregate("any", of, bool, _or, _or)


def all(of: Field = None) -> Aggregate:  # noqa: A001 - as in ``agg.all``
    """Tell whether no value is false."""
    return _aggregate("all", of, _true, _and, _and)


def custom(
    create: Callable[[], Any],
    add: Callable[[Any, Any], Any],
    *,
    result: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    of: Field = None,
) -> Aggregate:
    """Aggregate with functions of one's own.

    Args:
        create: makes an accumulator: plain data, which is stored.
        add: returns the accumulator with a value; it may change it if it cannot fail after that.
        result: makes the result of an accumulator, which goes on: they must share nothing that
            changes. If not given, a copy of the accumulator.
        merge: joins two accumulators, for windows that grow together.
        of: what of a record.

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

    return Aggregate(
        kind="custom",
        of=_checked(of),
        create=create,
        add=add_value,
        merge=merge,
        result=result or own,
    )


def check_aggregates(aggregates: Mapping[str, Any]) -> None:
    """Check a set of named aggregates.

    Raises:
        ConfigError: there is none, or something in it is none.
    """
    if not aggregates:
        raise ConfigError("aggregate() has nothing to do: give it such as total=agg.sum('price')")
    mistakes = [
        f"aggregate({name}={short_repr(each)}): give an aggregate, such as agg.sum('price')"
        + (f"; a name of the step comes first: aggregate({each!r}, ...)" if name == "name" else "")
        for name, each in aggregates.items()
        if not isinstance(each, Aggregate)
    ]
    if mistakes:
        raise ConfigError(*mistakes)


# -- accumulators ------------------------------------------------------------------------------


def add_up(total: Any, value: Any) -> Any:
    """Return an exact sum; None on either side is nothing.

    Raises:
        TypeError: the value is no number and no duration.
    """
    if type(value) in _INT_AND_FLOAT and type(total) in _INT_AND_FLOAT:
        return total + value
    if value is None:
        return total
    value = _number(value)
    if total is None:
        return value
    if isinstance(total, Decimal) or isinstance(value, Decimal):
        return _EXACT.add(total, value)
    return total + value


def _number(value: Any) -> Any:
    """Return a number of the language; one of a fixed size would wrap round."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    if isinstance(value, Number | timedelta):
        return value
    raise TypeError(f"{short_repr(value)} cannot be added up: it is no number, and no duration")


def _real(value: Any) -> Any:
    if isinstance(value, Real | Decimal):
        return _number(value)
    raise TypeError(f"{short_repr(value)} has no variance: it is no number")


def _distance(base: Any, number: Any) -> float:
    """Return how far a number is above another one: exactly, but for the last digit."""
    kind, other = type(base), type(number)
    if kind is other and kind is not Decimal:
        return float(number - base)
    whole = base if kind is int else number
    if {kind, other} == _INT_AND_FLOAT and -_WHOLE_MAX <= whole <= _WHOLE_MAX:
        return float(number - base)
    if not (math.isfinite(base) and math.isfinite(number)):
        return float(number) - float(base)
    if isinstance(base, Decimal) and isinstance(number, Decimal):
        return float(_EXACT.subtract(number, base))
    return float(Fraction(number) - Fraction(base))


def _least(kept: Any, value: Any) -> Any:
    if value is None:
        return kept
    # A kept value differs from itself if it is NaN.
    return value if kept is None or _after(kept, value) or kept != kept else kept  # noqa: PLR0124


def _greatest(kept: Any, value: Any) -> Any:
    if value is None:
        return kept
    return value if kept is None or _after(value, kept) or kept != kept else kept  # noqa: PLR0124


def _after(one: Any, other: Any) -> bool:
    if type(one) in ORDERED_BY_ZONE:
        one, other = one_if_key(one), one_if_key(other)
    return bool(one > other)


def _add_to_mean(kept: Any, value: Any) -> Any:
    if value is None:
        return kept
    return (_number(value), 1) if kept is None else (add_up(kept[0], value), kept[1] + 1)


def _merge_means(kept: Any, other: Any) -> Any:
    if kept is None or other is None:
        return kept or other
    return add_up(kept[0], other[0]), kept[1] + other[1]


def _mean(kept: Any) -> Any:
    return None if kept is None else kept[0] / kept[1]


def _earliest(kept: Any, pair: Any) -> Any:
    if pair is None or pair[1] is None:
        return kept
    return pair if kept is None or pair[0] < kept[0] else kept


def _latest(kept: Any, pair: Any) -> Any:
    if pair is None or pair[1] is None:
        return kept
    return pair if kept is None or pair[0] >= kept[0] else kept


def _second(pair: Any) -> Any:
    return None if pair is None else pair[1]


def _append(kept: list[Any], value: Any) -> list[Any]:
    if value is not None:
        kept.append(value)
    return kept


def _extend(kept: list[Any], other: list[Any]) -> list[Any]:
    kept += other
    return kept


def _add_to_set(kept: set[Any], value: Any) -> set[Any]:
    if value is not None:
        kept.add(value if type(value) in PLAIN else one_if_key(value))
    return kept


@dataclass(frozen=True, slots=True)
class _Top:
    """Keeps the greatest values in falling order."""

    n: int

    def add(self, kept: list[Any], value: Any) -> list[Any]:
        if value is None or (len(kept) == self.n and not is_before(value, kept[-1])):
            return kept
        at = falling_place(kept, value)
        return [*kept[:at], value, *kept[at : self.n - 1]] if at < self.n else kept

    def merge(self, kept: list[Any], other: list[Any]) -> list[Any]:
        return sorted([*kept, *other], key=Falling)[: self.n]


@dataclass(frozen=True, slots=True)
class Falling:
    """A value in falling order, NaN behind all others."""

    value: Any

    def __lt__(self, other: "Falling") -> bool:
        return is_before(self.value, other.value)


def is_before(value: Any, other: Any) -> bool:
    return _after(value, other) or bool(other != other and value == value)  # noqa: PLR0124 - NaN


def falling_place(
    kept: Sequence[Any], value: Any, of: Callable[[Any], Any] = lambda each: each
) -> int:
    """Return where a value belongs in falling order, behind equal ones; ``of`` is that of each."""
    low, high = 0, len(kept)
    while low < high:
        middle = (low + high) // 2
        if is_before(value, of(kept[middle])):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True, slots=True)
class _Spread:
    """Number of values, one of them, and of their distances from it mean and sum of squares.

    The distances are exact, so no digits are lost where values are large. The sum is that of the
    squares of how far distances are from their mean. After Welford; parts are joined after Chan.
    """

    ddof: int

    def add(self, kept: Any, value: Any) -> Any:
        if value is None:
            return kept
        is_quick = type(value) in _INT_AND_FLOAT
        number = value if is_quick else _real(value)
        if kept is None:
            return (1, number, 0.0, 0.0 if math.isfinite(number) else NAN)
        n, base, mean, squares = kept
        is_quick = is_quick and type(base) is type(number)
        distance = number - base if is_quick else _distance(base, number)
        step = distance - mean
        mean += step / (n + 1)
        return n + 1, base, mean, squares + step * (distance - mean)

    def merge(self, kept: Any, other: Any) -> Any:
        if kept is None or other is None:
            return kept or other
        n, base, mean, squares = kept
        m, others_base, others_mean, others_squares = other
        step, total = _distance(base, others_base) + (others_mean - mean), n + m
        squares += others_squares + step * step * n * m / total
        return total, base, mean + step * m / total, squares

    def variance(self, kept: Any) -> float | None:
        if kept is None or kept[0] <= self.ddof:
            return None
        n, _, _, squares = kept
        return float(squares / (n - self.ddof))

    def stddev(self, kept: Any) -> float | None:
        variance = self.variance(kept)
        return None if variance is None else math.sqrt(variance)


def _spread(
    kind: Literal["variance", "stddev"], of: Field, ddof: int, result: Callable[[Any], Any]
) -> Aggregate:
    if type(ddof) is not int or ddof not in {0, 1}:
        raise ConfigError(f"{kind}(ddof={short_repr(ddof)}): give 1 for a sample, or 0")
    spread = _Spread(ddof)
    return Aggregate(
        kind=kind,
        of=_checked(of),
        create=_nothing,
        add=spread.add,
        merge=spread.merge,
        result=result,
        option=ddof,
    )


def _aggregate(  # noqa: PLR0917 - read in one line
    kind: Kind,
    of: Field,
    create: Callable[[], Any],
    add: Callable[[Any, Any], Any],
    merge: Callable[[Any, Any], Any],
    result: Callable[[Any], Any] | None = None,
) -> Aggregate:
    return Aggregate(
        kind=kind,
        of=_checked(of),
        create=create,
        add=add,
        merge=merge,
        result=result or itself,
    )


def _checked(of: Field) -> Field:
    value_getter(of)  # Refuses what it cannot be.
    return of


def _nothing() -> None:
    return None


def _true() -> bool:
    return True


def _one_more(total: int, _: Any) -> int:
    return total + 1


def _plus(total: int, other: int) -> int:
    return total + other


def _or(kept: bool, value: Any) -> bool:  # noqa: FBT001 - an accumulator
    return kept or bool(value)


def _and(kept: bool, value: Any) -> bool:  # noqa: FBT001 - an accumulator
    return kept and (value is None or bool(value))


def itself(kept: Any) -> Any:
    return kept
