"""Values of records as Arrow takes them, and refused where Arrow would keep a part of them only."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from operator import attrgetter, itemgetter
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

__all__ = [
    "check_cells",
    "check_zone",
    "fields_of",
    "is_record",
    "plain_cells",
    "reason_of",
    "refuse_unknown",
]

_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None), datetime, date, Decimal})
#: Types of which pyarrow cuts no fraction off, so that values need not be looked at.
_WHOLE: Final = frozenset({int, type(None), datetime, date, time, timedelta})
_INT64_END: Final = 1 << 63


def is_record(value: Any) -> bool:
    """Tell whether a value has fields: a mapping, dataclass or NamedTuple."""
    return isinstance(value, Mapping) or _has_fields(value)


def fields_of(records: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the fields of records, or of None, by name; as Arrow takes them.

    Raises:
        TypeError: they are of different types, have no fields, or names that are no text.
    """
    kinds = set(map(type, records)) - {type(None)}
    if len(kinds) > 1 and not all(issubclass(kind, Mapping) for kind in kinds):
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"records of one type are needed, these are {listed}")
    first = next(record for record in records if record is not None)
    fields = _of_mappings if isinstance(first, Mapping) else _of_classes
    return {name: plain_cells(cells) for name, cells in fields(records, first).items()}


def plain_cells(values: list[Any]) -> list[Any]:
    """Return values as Arrow takes them."""
    return values if set(map(type, values)) <= _PLAIN else list(map(_cell, values))


def refuse_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse fields that have no column.

    Raises:
        ValueError: there is one.
    """
    columns = frozenset(known)
    for name in names:
        if name not in columns:
            raise ValueError(
                f"field {name!r} is not in the schema, which has {', '.join(sorted(columns))}: "
                "leave it out, or give a schema with it"
            )


def check_cells(kind: Any, values: Iterable[Any]) -> None:
    """Refuse values of which a column would keep a part only.

    Raises:
        ValueError: there is one.
    """
    if pa.types.is_nested(kind):
        _check_nested(kind, values)
        return
    if pa.types.is_timestamp(kind):
        _check_times(kind, values)
        return
    found = set(map(type, values))
    if (pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and not found <= _WHOLE:
        for value in values:
            if isinstance(value, Real | Decimal) and value % 1 != 0:
                raise ValueError(f"{value!r} is no whole number")
    if pa.types.is_date(kind) and datetime in found:
        raise ValueError("a datetime has more than the date: take .date()")


def check_zone(kind: Any, *, is_aware: bool, shown: object) -> None:
    """Refuse times with a zone for a column of times without one, and the other way round.

    Raises:
        ValueError: they are such times.
    """
    if is_aware and kind.tz is None:
        raise ValueError(
            f"{shown} has a time zone, and the column has none: take "
            ".astimezone(UTC).replace(tzinfo=None), or give a schema with times of UTC"
        )
    if kind.tz is not None and not is_aware:
        raise ValueError(
            f"{shown} has no time zone, and the column has times of UTC: say which it has, as "
            "with .replace(tzinfo=UTC)"
        )


def reason_of(error: Exception, cells: Any) -> str:
    """Return what is wrong with the cells of a column, with the value if Arrow does not tell it."""
    huge = _huge(cells) if isinstance(error, OverflowError) else None
    if huge is None:
        return str(error)
    return f"{huge} has more than 64 bits: map it to a text, or give a schema with decimal(38, 0)"


def _huge(value: Any) -> int | None:
    """Return the first whole number inside of a value that is too large for any column of them."""
    if isinstance(value, int):
        return None if -_INT64_END <= value < _INT64_END else value
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if not isinstance(value, list | tuple):
        return None
    return next((huge for each in value if (huge := _huge(each)) is not None), None)


def _check_times(kind: Any, values: Iterable[Any]) -> None:
    """Refuse times of which Arrow would make others: it counts numbers as microseconds."""
    for value in values:
        if isinstance(value, datetime):
            check_zone(kind, is_aware=value.tzinfo is not None, shown=value)
        elif isinstance(value, Real | Decimal):
            raise ValueError(  # noqa: TRY004 - a value that does not fit, as all others
                f"{value!r} is a number, which is no time as long as nobody knows its unit: map it "
                "to a datetime, ms as in datetime.fromtimestamp(ms / 1000, UTC)"
            )


def _check_nested(kind: Any, values: Iterable[Any]) -> None:
    present = [value for value in values if value is not None]
    if pa.types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        names = [field.name for field in fields]
        for value in present:
            refuse_unknown(value, names)
        for field in fields:
            check_cells(field.type, [value.get(field.name) for value in present])
    elif pa.types.is_map(kind):
        pairs = [pair for value in present for pair in _pairs(value)]
        check_cells(kind.key_type, [key for key, _ in pairs])
        check_cells(kind.item_type, [item for _, item in pairs])
    else:  # A list of any kind.
        check_cells(kind.value_type, [item for value in present for item in value])


def _of_mappings(records: Sequence[Any], first: Mapping[Any, Any]) -> dict[str, list[Any]]:
    try:
        # Those that have the names of the first, and as many, have no others.
        cells = {name: list(map(itemgetter(name), records)) for name in first}
        is_even = set(map(len, records)) == {len(first)}
    except (KeyError, TypeError):
        is_even = False
    if not is_even:
        present = [record for record in records if record is not None]
        names = dict.fromkeys(name for record in present for name in record)
        cells = {
            name: [None if record is None else record.get(name) for record in records]
            for name in names
        }
    for name in cells:
        if not isinstance(name, str):
            raise TypeError(f"{name!r:.100} names a field: only a text can name a column")
    return cells


def _of_classes(records: Sequence[Any], first: Any) -> dict[str, list[Any]]:
    names = _names_of(first)
    if any(record is None for record in records):
        return {
            name: [None if record is None else getattr(record, name) for record in records]
            for name in names
        }
    if isinstance(first, tuple):
        return {name: list(map(itemgetter(at), records)) for at, name in enumerate(names)}
    return {name: list(map(attrgetter(name), records)) for name in names}


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else value


def _has_fields(value: Any) -> bool:
    return (isinstance(value, tuple) and hasattr(value, "_fields")) or (
        dataclasses.is_dataclass(value) and not isinstance(value, type)
    )


def _names_of(record: Any) -> tuple[str, ...]:
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return tuple(record._fields)
    if dataclasses.is_dataclass(record):
        return tuple(field.name for field in dataclasses.fields(record))
    raise TypeError(
        f"{type(record).__name__} has no fields: map it to a dict, dataclass or NamedTuple before"
    )


def _cell(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {key: _cell(item) for key, item in value.items()}
    if _has_fields(value):
        return {name: _cell(getattr(value, name)) for name in _names_of(value)}
    if isinstance(value, tuple):  # It stays one: a pair of a map must be.
        return tuple(map(_cell, value))
    if isinstance(value, list | set | frozenset):
        return list(map(_cell, value))
    return value
