"""Monoids: values of state that can be added up piece by piece, in any grouping.

Because ``(a + b) + c`` is ``a + (b + c)``, pieces can be kept apart, by epoch or by time, and put
together later. Gearpump: `Monoid`, `Group` and `Serializer`, and its adapters for Algebird.
"""

# Generic classes here have no slots: Python 3.11 could not make a `UnionMonoid[str]()` with them.

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Monoid(Protocol[T]):
    """Adds values up. Gearpump: `Monoid`.

    `plus` must give the same however the values are grouped. Values that come from different
    senders come in any order; so where the order makes a difference, it is one of many right ones.
    """

    def zero(self) -> T:
        """Return a new value that changes nothing when it is added."""
        ...

    def plus(self, a: T, b: T) -> T:
        """Add ``b`` to ``a``.

        May change ``a`` and return it, which for large values is much cheaper than a copy; never
        changes ``b``, nor returns what shares with ``b`` anything that may still be changed.
        """
        ...


class Group(Monoid[T], Protocol[T]):
    """Adds values, and takes them away again. Gearpump: `Group`."""

    def minus(self, a: T, b: T) -> T:
        """Take ``b``, a part of ``a``, from ``a``. May change ``a``, never ``b``."""
        ...


class Serializer(Protocol[T]):
    """Turns values into bytes and back, for checkpoints. Gearpump: `Serializer`."""

    def to_bytes(self, value: T) -> bytes:
        """Return the value as bytes, all at once: it may change afterwards."""
        ...

    def from_bytes(self, data: bytes) -> T:
        """Return the value of these bytes."""
        ...


@dataclass(frozen=True, slots=True)
class SumGroup:
    """Numbers, or any type with ``+`` and ``-``.

    Of floats the last digits depend on the order in which they come, and what is taken away again
    may leave a trace of them; ints, decimals and fractions are exact.
    """

    start: Any = 0  #: The sum of nothing; ``timedelta()`` for durations.

    def zero(self) -> Any:
        """Return the sum of nothing."""
        return self.start

    def plus(self, a: Any, b: Any) -> Any:
        """Return the sum."""
        return a + b

    def minus(self, a: Any, b: Any) -> Any:
        """Return the difference."""
        return a - b


@dataclass(frozen=True, slots=True)
class MaxMonoid:
    """The largest value; None of nothing."""

    def zero(self) -> Any:
        """Return a bound below every value."""
        return None

    def plus(self, a: Any, b: Any) -> Any:
        """Return the larger one."""
        return a if b is None or (a is not None and a >= b) else b


@dataclass(frozen=True, slots=True)
class MinMonoid:
    """The smallest value; None of nothing."""

    def zero(self) -> Any:
        """Return a bound above every value."""
        return None

    def plus(self, a: Any, b: Any) -> Any:
        """Return the smaller one."""
        return a if b is None or (a is not None and a <= b) else b


@dataclass(frozen=True)
class UnionMonoid(Generic[K]):
    """Sets of values that are equal or not."""

    def zero(self) -> set[K]:
        """Return an empty set."""
        return set()

    def plus(self, a: set[K], b: set[K]) -> set[K]:
        """Put all of ``b`` into ``a``."""
        a |= b
        return a


@dataclass(frozen=True)
class MapMonoid(Generic[K, V]):
    """One value for each key; values of equal keys are added up."""

    values: Monoid[V]

    def zero(self) -> dict[K, V]:
        """Return an empty map."""
        return {}

    def plus(self, a: dict[K, V], b: Mapping[K, V]) -> dict[K, V]:
        """Put all of ``b`` into ``a``."""
        plus, zero = self.values.plus, self.values.zero
        for key, value in b.items():
            a[key] = plus(a[key] if key in a else zero(), value)
        return a


@dataclass(frozen=True)
class MapGroup(Generic[K, V]):
    """One value for each key, to be taken away again; a key whose value is zero is left out.

    Args:
        values: adds up the values of one key, and takes them away.
    """

    values: Group[V]

    def zero(self) -> dict[K, V]:
        """Return an empty map."""
        return {}

    def plus(self, a: dict[K, V], b: Mapping[K, V]) -> dict[K, V]:
        """Put all of ``b`` into ``a``."""
        plus, zero = self.values.plus, self.values.zero
        for key, value in b.items():
            self._put(a, key, plus(a[key] if key in a else zero(), value))
        return a

    def minus(self, a: dict[K, V], b: Mapping[K, V]) -> dict[K, V]:
        """Take all of ``b`` out of ``a``."""
        minus, zero = self.values.minus, self.values.zero
        for key, value in b.items():
            self._put(a, key, minus(a[key] if key in a else zero(), value))
        return a

    def _put(self, a: dict[K, V], key: K, value: V) -> None:
        # Otherwise the keys that a window has ever seen would fill the memory.
        if value == self.values.zero():
            a.pop(key, None)
        else:
            a[key] = value


@dataclass(frozen=True)
class CountsGroup(Generic[K]):
    """The number of times that each key was there: a `MapGroup` of whole numbers, and faster."""

    def zero(self) -> dict[K, int]:
        """Return no counts."""
        return {}

    def plus(self, a: dict[K, int], b: Mapping[K, int]) -> dict[K, int]:
        """Put all counts of ``b`` into ``a``."""
        for key, count in b.items():
            total = a.get(key, 0) + count
            if total:
                a[key] = total
            else:
                a.pop(key, None)
        return a

    def minus(self, a: dict[K, int], b: Mapping[K, int]) -> dict[K, int]:
        """Take all counts of ``b`` out of ``a``."""
        return self.plus(a, {key: -count for key, count in b.items()})
