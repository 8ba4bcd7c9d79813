"""The records that are largest by something: an aggregate for the stages that fold."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeAlias

from gearpy.core.base.copies import own
from gearpy.core.base.fields import WITH_ATTRIBUTES, Field, value_getter
from gearpy.core.window.accumulators import (
    TOP_MAX,
    Aggregate,
    falling_place,
    is_before,
)
from gearpy.errors import ConfigError

#: Values in ascending order, of equal ones the last first; their records; and whether anything in
#: these can change.
_Kept: TypeAlias = tuple[list[Any], list[Any], bool]
_QUICK: Final = frozenset({int, float, str})


class Ranking(Protocol):
    """A function of a record, by which it is ranked, that says which column counts first.

    Any two values that it gives can be compared; none is NaN.
    """

    @property
    def fields(self) -> Sequence[tuple[str, bool, bool]]:
        """Its columns, whether the largest comes first, NaN being that, and whether None does."""

    @property
    def column(self) -> str: ...

    @property
    def is_ascending(self) -> bool:
        """The smallest comes first."""

    def number_of(self, ranked: Any) -> int | float | None:
        """Return the number of that column in a value of the function, negated if it ascends.

        None if it has none. What has a larger one is larger.
        """

    def __call__(self, record: Any, /) -> Any: ...


def top_records(n: int, by: Field = None) -> Aggregate:
    """Return the aggregate that lists the ``n`` records that are largest, the largest first.

    Among equal records the first ones win. A record by which there is nothing (None) is left out.

    Args:
        by: the name of a field, a function of the record, or None for the record itself.

    Raises:
        ConfigError: ``n`` is no number from 1 to `TOP_MAX`, or ``by`` tells nothing of a record.
    """
    if type(n) is not int or not 1 <= n <= TOP_MAX:
        raise ConfigError(
            f"top_n: n is {n!r}, must be a whole number from 1 to {TOP_MAX}, such as top_n(10)"
        )
    value_of, name = value_getter(by), by if isinstance(by, str) else ""
    is_total = hasattr(by, "number_of")

    def add(kept: _Kept, record: Any) -> _Kept:
        """Return what is kept with the record in its place, the same if it is not among them."""
        is_plain = name and type(record) in WITH_ATTRIBUTES
        value = (
            getattr(record, name, None) if is_plain else None
        )  # Without the calls of `value_of`.
        if value is None and record is not None:
            value = value_of(record)
        return kept if value is None else put(kept, value, record)

    def put(kept: _Kept, value: Any, record: Any) -> _Kept:
        values, records, may_change = kept
        is_quick = is_total or (type(value) in _QUICK and value == value)  # noqa: PLR0124 - not NaN
        if len(values) == n and (
            value <= values[0] if is_quick else not is_before(value, values[0])
        ):
            return kept
        # One that is kept may be NaN, which is smaller, though Python does not say so.
        if is_quick and values and values[0] == values[0]:
            low = bisect_left(values, value)
        else:
            low = len(values) - falling_place(values[::-1], value)
        start = len(values) == n
        values, records = values[start:], records[start:]
        values.insert(low - start, value)
        records.insert(low - start, record)
        return values, records, may_change or own(record) is not record

    def merge(kept: _Kept, other: _Kept) -> _Kept:
        for value, record in zip(other[0][::-1], other[1][::-1], strict=True):
            kept = put(kept, value, record)
        return kept

    return Aggregate(
        kind="custom",
        create=lambda: ([], [], False),
        add=add,
        merge=merge,
        result=_records,
        gives_own=True,
    )


def _records(kept: _Kept) -> list[Any]:
    _, records, may_change = kept
    return list(map(own, records[::-1])) if may_change else records[::-1]
