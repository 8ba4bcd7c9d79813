"""The records that are largest by something: an aggregate for the stages that fold."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from gearpy.core.base.fields import Field, value_getter
from gearpy.core.window.aggregates import (
    TOP_MAX,
    Aggregate,
    Falling,
    custom,
    falling_place,
    is_before,
)
from gearpy.errors import ConfigError

_VALUE: Final = itemgetter(0)


def top_records(n: int, by: Field = None) -> Aggregate:
    """Return the aggregate that lists the ``n`` records that are largest, the largest first.

    Among equal records the first ones win. A record by which there is nothing (None) is left out.

    Args:
        n: how many.
        by: the name of a field, a function of the record, or None for the record itself.

    Raises:
        ConfigError: ``n`` is no number from 1 to `TOP_MAX`, or ``by`` tells nothing of a record.
    """
    if type(n) is not int or not 1 <= n <= TOP_MAX:
        raise ConfigError(
            f"top_n: n is {n!r}, must be a whole number from 1 to {TOP_MAX}, such as top_n(10)"
        )
    largest = _Largest(n, value_getter(by))
    return custom(list, largest.add, merge=largest.merge, result=_records)


@dataclass(frozen=True, slots=True)
class _Largest:
    """Keeps pairs of a number and its record, in falling order."""

    n: int
    by: Callable[[Any], Any]

    def add(self, kept: list[Any], record: Any) -> list[Any]:
        """Put a record in its place; only that can fail, and before anything has changed."""
        value = self.by(record)
        if value is None or (len(kept) == self.n and not is_before(value, kept[-1][0])):
            return kept
        kept.insert(falling_place(kept, value, _VALUE), (value, record))
        del kept[self.n :]
        return kept

    def merge(self, kept: list[Any], other: list[Any]) -> list[Any]:
        kept[:] = sorted([*kept, *other], key=_falling)[: self.n]
        return kept


def _falling(pair: tuple[Any, Any]) -> Falling:
    return Falling(pair[0])


def _records(kept: list[Any]) -> list[Any]:
    return [record for _, record in kept]
