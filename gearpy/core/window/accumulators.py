"""What aggregates keep of the values that they take, and how they go on; `aggregates` makes them.

An accumulator is plain data. Two of them can be merged, so that parts of a stream may be aggregated
apart. All of it is pure, but for accumulators that grow (lists, sets and dicts): the caller of add
or merge hands them over.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Integral, Number, Rational, Real
from operator import ne
from reprlib import repr as short_repr
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from gearpy.core.base.fields import NAN, Computed, Field, value_getter
from gearpy.core.base.one_key import ORDERED_BY_ZONE, PLAIN, are_plain, one_if_key
from gearpy.core.window.sketches import float_bits
from gearpy.errors import ConfigError

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
    "count_if",
    "quantile",
    "approx_distinct",
    "mode",
    "heavy_hitters",
    "arg_min",
    "arg_max",
    "ewma",
]

#: How many values `top` keeps at most: it looks for a place among them for each value.
TOP_MAX: Final = 10_000

#: Decimals are added up exactly as long as a sum has no more digits than this.
_EXACT: Final = Context(prec=200)


#: A float holds each whole number up to this.
_WHOLE_MAX: Final = 1 << 53
_INT_AND_FLOAT: Final = frozenset({int, float})
#: Types of values that Python compares as they are.
_QUICK_KINDS: Final = ({int}, {float}, {int, float}, {str})


_TIMED: Final = frozenset({"first", "last", "arg_min", "arg_max", "ewma"})


class Taking(NamedTuple):
    """The two halves of adding a value to an accumulator that changes in place.

    Attributes:
        prepare: makes of a value what ``take`` gets; raises if it is none for this.
        take: adds it, and returns the accumulator. It cannot fail.
    """

    prepare: Callable[[Any], Any]
    take: Callable[[Any, Any], Any]

    def add(self, kept: Any, value: Any) -> Any:
        return kept if value is None else self.take(kept, self.prepare(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One way to turn many values into one.

    Attributes:
        kind: the name of its operation; a stage may have a quicker way for it.
        of: the value of a record: the name of a field, a function, or None for the record.
        by: of `arg_min` and `arg_max`, what is compared: values are pairs of this and ``of``.
        where: which records count: those of which this field or function is true; None: all.
        create: makes the accumulator of no values; plain data.
        add: takes a value in, and returns the accumulator. It may change and return the one it
            was given. Where ``is_timed`` it takes pairs of event time and value.
        merge: joins two accumulators; the values of the second came later. May change the first.
            None: there is no way.
        result: makes the result of an accumulator, which goes on; they share nothing.
        option: of `top` how many, of `variance` and `stddev` the degrees of freedom taken off, of
            `quantile` how many in a list.
        gives_own: results share no record with the accumulator either, nor does ``add`` change it.
        taking: the halves of ``add``, if it changes accumulators in place.
        shown: its other arguments, for people.
    """

    kind: Kind
    of: Field = None
    by: Field = None
    where: Field = None
    create: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any] | None
    result: Callable[[Any], Any]
    option: int = 0
    gives_own: bool = False
    taking: Taking | None = None
    shown: str = ""

    @property
    def is_timed(self) -> bool:
        """Whether it takes pairs of event time and value."""
        return self.kind in _TIMED

    @property
    def is_by(self) -> bool:
        """Whether it takes pairs of what is compared and a value."""
        return self.kind in {"arg_min", "arg_max"}

    @property
    def fields(self) -> tuple[Field, ...]:
        """All that it reads of a record, without what is not used."""
        of = () if self.kind == "count" else (self.of,)
        by = (self.by,) if self.is_by else ()
        return *of, *by, *(() if self.where is None else (self.where,))

    @property
    def value(self) -> Field:
        """What of a record is added: None of one that does not count."""
        if not self.is_by and self.where is None:
            return self.of
        read = value_getter(self.of)
        if self.is_by:
            of, by = read, value_getter(self.by)

            def read(record: Any) -> Any:
                compared = by(record)
                return None if compared is None else (compared, of(record))

        if self.where is None:
            return read
        where = value_getter(self.where)
        return lambda record: read(record) if where(record) else None

    def __str__(self) -> str:
        """Return the text of a plan."""
        named = {"by": self.by if self.is_by else None, "where": self.where}
        parts = [self.shown, _name_of(self.of)]
        parts += [f"{word}={_name_of(of)}" for word, of in named.items() if of is not None]
        return f"{self.kind}({', '.join(filter(None, parts))})"


def _name_of(of: Field) -> str:
    if isinstance(of, Computed):
        return str(of)
    return getattr(of, "__name__", "function") if callable(of) else of or ""


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


def real(value: Any) -> Any:
    if isinstance(value, Real | Decimal):
        return _number(value)
    raise TypeError(
        f"{short_repr(value)} is no number: an aggregate of durations or times takes such as "
        "took.total_seconds()"
        if isinstance(value, timedelta | datetime)
        else f"{short_repr(value)} is no number"
    )


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


def least(kept: Any, value: Any) -> Any:
    if value is None:
        return kept
    # A kept value differs from itself if it is NaN.
    return value if kept is None or _after(kept, value) or kept != kept else kept  # noqa: PLR0124


def greatest(kept: Any, value: Any) -> Any:
    if value is None:
        return kept
    return value if kept is None or _after(value, kept) or kept != kept else kept  # noqa: PLR0124


def _after(one: Any, other: Any) -> bool:
    if type(one) in ORDERED_BY_ZONE and not (type(one) is tuple and are_plain(one)):
        one, other = one_if_key(one), one_if_key(other)
    return bool(one > other)


def add_to_mean(kept: Any, value: Any) -> Any:
    if value is None:
        return kept
    return (_number(value), 1) if kept is None else (add_up(kept[0], value), kept[1] + 1)


def merge_means(kept: Any, other: Any) -> Any:
    if kept is None or other is None:
        return kept or other
    return add_up(kept[0], other[0]), kept[1] + other[1]


def mean_of(kept: Any) -> Any:
    return None if kept is None else kept[0] / kept[1]


def earliest(kept: Any, pair: Any) -> Any:
    if pair is None or pair[1] is None:
        return kept
    return pair if kept is None or pair[0] < kept[0] else kept


def latest(kept: Any, pair: Any) -> Any:
    if pair is None or pair[1] is None:
        return kept
    return pair if kept is None or pair[0] >= kept[0] else kept


def second(pair: Any) -> Any:
    return None if pair is None else pair[1]


def append(kept: list[Any], value: Any) -> list[Any]:
    if value is not None:
        kept.append(value)
    return kept


def extend(kept: list[Any], other: list[Any]) -> list[Any]:
    kept += other
    return kept


def add_to_set(kept: set[Any], value: Any) -> set[Any]:
    if value is not None:
        kept.add(value if type(value) in PLAIN else one_if_key(value))
    return kept


@dataclass(frozen=True, slots=True)
class Top:
    """Keeps the greatest values in falling order."""

    n: int

    def add(self, kept: list[Any], value: Any) -> list[Any]:
        if value is None or (len(kept) == self.n and not is_before(value, kept[-1])):
            return kept
        at = falling_place(kept, value)
        return [*kept[:at], value, *kept[at : self.n - 1]] if at < self.n else kept

    def merge(self, kept: list[Any], other: list[Any]) -> list[Any]:
        values = [*kept, *other]
        kinds = set(map(type, values))
        if kinds in _QUICK_KINDS and not any(map(ne, values, values)):  # None is NaN.
            values.sort(reverse=True)  # Equal ones stay in their order.
        else:
            values.sort(key=Falling)
        return values[: self.n]


@dataclass(frozen=True, slots=True)
class Falling:
    """A value in falling order, NaN behind all others."""

    value: Any

    def __lt__(self, other: "Falling") -> bool:
        return is_before(self.value, other.value)


def is_before(value: Any, other: Any) -> bool:
    return _after(value, other) or bool(other != other and value == value)  # noqa: PLR0124 - NaN


def falling_place(kept: Sequence[Any], value: Any) -> int:
    """Return where a value belongs in falling order, behind equal ones."""
    low, high = 0, len(kept)
    while low < high:
        middle = (low + high) // 2
        if is_before(value, kept[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True, slots=True)
class Spread:
    """Number of values, one of them, and of their distances from it mean and sum of squares.

    The distances are exact, so no digits are lost where values are large. The sum is that of the
    squares of how far distances are from their mean. After Welford; parts are joined after Chan.
    """

    ddof: int

    def add(self, kept: Any, value: Any) -> Any:
        if value is None:
            return kept
        is_quick = type(value) in _INT_AND_FLOAT
        number = value if is_quick else real(value)
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


@dataclass(frozen=True, slots=True)
class Best:
    """The value of the record by which something is least or greatest; of several the earliest.

    An accumulator is the event time of that record and a pair: what was compared, and the value.
    """

    is_max: bool

    def add(self, kept: Any, pair: Any) -> Any:
        if pair is None or pair[1] is None or kept is None:
            return kept if pair is None or pair[1] is None else pair
        new, old = pair[1][0], kept[1][0]
        if self._is_before(new, old):
            return pair
        return pair if pair[0] < kept[0] and not self._is_before(old, new) else kept

    def _is_before(self, one: Any, other: Any) -> bool:
        if one != one or other != other:  # noqa: PLR0124 - NaN comes behind all numbers.
            return bool(one == one)  # noqa: PLR0124 - the same
        return _after(one, other) if self.is_max else _after(other, one)


@dataclass(frozen=True, slots=True)
class Decayed:
    """The newest event time, and the sum of values and of weights as they are at this time.

    A weight halves with each half-life that has passed since the event time of its value.
    """

    half_life_ms: int

    def add(self, kept: Any, pair: Any) -> Any:
        if pair is None or pair[1] is None:
            return kept
        return self.merge(kept, (int(pair[0]), float(real(pair[1])), 1.0))

    def merge(self, kept: Any, other: Any) -> Any:
        if kept is None or other is None:
            return kept or other
        (time, total, weight), (others_time, others_total, others_weight) = kept, other
        newest = max(time, others_time)
        here, there = self.weight(newest - time), self.weight(newest - others_time)
        return newest, total * here + others_total * there, weight * here + others_weight * there

    def weight(self, age_ms: int) -> float:
        return 1.0 if not age_ms else 2.0 ** (-age_ms / self.half_life_ms)


def decayed_mean(kept: Any) -> Any:
    return None if kept is None else kept[1] / kept[2]


def add_count(counts: dict[Any, int], value: Any) -> dict[Any, int]:
    counts[value] = counts.get(value, 0) + 1
    return counts


def merge_counts(counts: dict[Any, int], others: dict[Any, int]) -> dict[Any, int]:
    for value, count in others.items():
        counts[value] = counts.get(value, 0) + count
    return counts


def bits_of(value: Any) -> int:
    return float_bits(float(value if type(value) in _INT_AND_FLOAT else real(value)))


def one_more_if(total: int, value: Any) -> int:
    return total + 1 if value else total


def nothing() -> None:
    return None


def true() -> bool:
    return True


def one_more(total: int, _: Any) -> int:
    return total + 1


def plus(total: int, other: int) -> int:
    return total + other


def either(kept: bool, value: Any) -> bool:  # noqa: FBT001 - an accumulator
    return kept or bool(value)


def both(kept: bool, value: Any) -> bool:  # noqa: FBT001 - an accumulator
    return kept and (value is None or bool(value))


def itself(kept: Any) -> Any:
    return kept
