"""The fields of records by name, as Arrow takes them."""

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from gearpy.columns.values import field_names, has_fields, plain_cells


def is_record(value: Any) -> bool:
    return isinstance(value, Mapping) or has_fields(value)


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
    names = field_names(first)
    if any(record is None for record in records):
        return {
            name: [None if record is None else getattr(record, name) for record in records]
            for name in names
        }
    if isinstance(first, tuple):
        return {name: list(map(itemgetter(at), records)) for at, name in enumerate(names)}
    return {name: list(map(attrgetter(name), records)) for name in names}
