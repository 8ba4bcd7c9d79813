"""The records that are largest by something: an aggregate for the stages that fold."""

from operator import itemgetter
from typing import Any, Final

from gearpy.core.base.copies import own
from gearpy.core.base.fields import WITH_ATTRIBUTES, Field, value_getter
from gearpy.core.window.accumulators import (
    TOP_MAX,
    Aggregate,
    Falling,
    falling_place,
    is_before,
)
from gearpy.errors import ConfigError

_VALUE: Final = itemgetter(0)
#: A value, its record, and behind them True if nothing in the record can change.
_FIXED: Final = 3
_QUICK: Final = frozenset({int, float, str})


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
    value_of, name = value_getter(by), by if isinstance(by, str) else ""

    def add(kept: list[Any], record: Any) -> list[Any]:
        """Return a list with the record in its place, the same list if it is not among them."""
        is_plain = name and type(record) in WITH_ATTRIBUTES
        value = (
            getattr(record, name, None) if is_plain else None
        )  # Without the calls of `value_of`.
        if value is None and record is not None:
            value = value_of(record)
        if value is None:
            return kept
        if type(value) in _QUICK and value == value:  # noqa: PLR0124 - not NaN
            # One that is kept may be NaN, which is smaller, so it is not `>`.
            if len(kept) == n and value <= kept[-1][0]:
                return kept
            low, high = 0, len(kept)
            while low < high:
                middle = (low + high) // 2
                if value <= kept[middle][0]:
                    low = middle + 1
                else:
                    high = middle
        elif len(kept) == n and not is_before(value, kept[-1][0]):
            return kept
        else:
            low = falling_place(kept, value, _VALUE)
        pair = (value, record, True) if own(record) is record else (value, record)
        kept = kept.copy() if len(kept) < n else kept[:-1]
        kept.insert(low, pair)
        return kept

    def merge(kept: list[Any], other: list[Any]) -> list[Any]:
        return sorted([*kept, *other], key=lambda pair: Falling(pair[0]))[:n]

    return Aggregate(
        kind="custom", create=list, add=add, merge=merge, result=_records, gives_own=True
    )


def _records(kept: list[Any]) -> list[Any]:
    try:
        return [record for _, record, _ in kept]
    except ValueError:  # Some can change.
        return [pair[1] if len(pair) == _FIXED else own(pair[1]) for pair in kept]
