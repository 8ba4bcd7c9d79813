"""The fields of records by name, as Arrow takes them."""

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from gearpy.columns.values import field_names, has_fields, plain_cells


def is_record(value: Any) -> bool:
    return isinstance(value, Mapping) or has_fields(value)


def fields_of(records: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the fields of records, or of None, by name; as Arrow takes them."""
    kinds = set(map(type, records))
    has_none = type(None) in kinds
    kinds.discard(type(None))
    if len(kinds) > 1 and not all(issubclass(kind, Mapping) for kind in kinds):
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"records of one type are needed, these are {listed}")
    first = next(record for record in records if record is not None)
    cells: dict[Any, list[Any]] = {}
    if isinstance(first, Mapping):
        is_even = not has_none and set(map(len, records)) == {len(first)}
        if is_even:
            try:  # Those that have the names of the first, and as many, have no others.
                cells = {name: list(map(itemgetter(name), records)) for name in first}
            except KeyError:
                is_even = False
        if not is_even:
            names = dict.fromkeys(name for record in records for name in record or ())
            cells = {
                name: [None if record is None else record.get(name) for record in records]
                for name in names
            }
        for name in cells:
            if not isinstance(name, str):
                raise TypeError(f"{name!r:.100} names a field: only a text can name a column")
    elif has_none:
        cells = {
            name: [None if record is None else getattr(record, name) for record in records]
            for name in field_names(first)
        }
    else:
        is_tuple = isinstance(first, tuple)
        for at, name in enumerate(field_names(first)):
            get = itemgetter(at) if is_tuple else attrgetter(name)
            cells[name] = list(map(get, records))
    return {name: plain_cells(column) for name, column in cells.items()}
