"""Fields of records: an item of a mapping, else an attribute; and functions made of names."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from reprlib import repr as short_repr
from typing import Any, Final, TypeAlias

from msgspec import Struct

from gearpy.errors import ConfigError

#: A field gives it for any NaN, so that all are one key: other NaNs equal nothing.
NAN: Final = math.nan

#: Types of records that are no mappings; to ask takes longer than to read a field.
WITH_ATTRIBUTES: Final[set[type]] = set()

#: The name of a field, a function of the record, or None for the record itself.
Field: TypeAlias = str | Callable[[Any], Any] | None


class Computed(ABC):
    """What is computed of a record, and can be called with one: an expression.

    Loops over rows call `row`'s function, which is quicker.
    """

    @abstractmethod
    def __call__(self, record: Any) -> Any:
        """Return the value for one record."""

    @abstractmethod
    def row(self) -> Callable[[Any], Any]:
        """Return a function of a record that does the same."""


class FieldGetter(Struct, frozen=True):
    """Returns one field of a record. Loops that know the name read it without a call.

    Raises:
        LookupError: the record has no such field; names those it has.
    """

    name: str

    def __call__(self, record: Any) -> Any:
        return _field(record, self.name)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)


class FieldsGetter(Struct, frozen=True):
    """Returns several fields of a record as a tuple. Raises as `FieldGetter` does."""

    names: tuple[str, ...]

    def __call__(self, record: Any) -> tuple[Any, ...]:
        return tuple([_field(record, name) for name in self.names])


def field_getter(name: str) -> FieldGetter:
    """Return a function that reads a field: an item of a mapping, else an attribute."""
    if type(name) is not str or not name:
        raise ConfigError(f"{short_repr(name)} is no name of a field: give text such as 'price'")
    return FieldGetter(name)


def key_getter(*names: str) -> FieldGetter | FieldsGetter:
    """Return a function that reads a key: one field, or several as a tuple."""
    if not names:
        raise ConfigError("a key has no fields: name at least one")
    getters = [field_getter(name) for name in names]
    return getters[0] if len(getters) == 1 else FieldsGetter(tuple(names))


def value_getter(of: Field) -> Callable[[Any], Any]:
    """Return a function that reads a field, calls a function, or gives the record itself."""
    if of is None:
        return _itself
    if isinstance(of, str):
        return field_getter(of)
    if not callable(of):
        raise ConfigError(
            f"{short_repr(of)} tells nothing about a record: give the name of a field, a function "
            "of the record, or leave it out"
        )
    return of.row() if isinstance(of, Computed) else of


def compiled(lines: Sequence[str], names: Mapping[str, Any], *, what: str) -> Callable[..., Any]:
    """Return the function that lines of source define as ``made``.

    The lines are made of fixed words, numbers, and names of fields in quotes as `repr` makes them.
    """
    scope = dict(names)
    code = compile("\n".join(lines) + "\n", f"<gearpy {what}>", "exec")
    exec(code, scope)  # noqa: S102 - see above
    made: Callable[..., Any] = scope["made"]
    return made


def indented(lines: Sequence[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def fields_are(names: Iterable[str], types: Collection[type]) -> Callable[[Any], bool]:
    """Return a function that tells whether all these attributes of a value are of some types.

    It is made for the names, and so takes a third of the time of a loop. It raises
    `AttributeError` if the value lacks one.
    """
    tests = [f"type(value.{name}) in types" for name in names]
    assert all(name.isidentifier() for name in names), "fields are declared in Python"
    source = f"def made(value): return {' and '.join(tests) or 'True'}"
    return compiled([source], {"types": types}, what="fields")


def keys_of(
    key: Callable[[Any], Any],
    records: list[Any],
    into: Callable[[list[Any]], list[Any]] | None = None,
) -> tuple[list[Any] | None, Callable[[Any], Any]]:
    """Return the keys of all records, or None where one has none; and what is to be asked then.

    Asked for each record, in order, that gives its key, or raises. What users wrote is called once
    for a record. Fields of records of one class are read without a call for each.

    Args:
        into: makes of the keys what is wanted; raises if one can be none.
    """
    found: list[Any] = []
    error: Exception | None = None
    if isinstance(key, FieldGetter | FieldsGetter):
        fields = _fields_of(key, records)
        if fields is None:
            return None, key
        found = fields
    else:
        try:
            found += map(key, records)
        except Exception as raised:  # noqa: BLE001 - asked for each, it will say so again
            error = raised
    # `map` takes a `StopIteration` of what users wrote for its own end.
    if len(found) < len(records):
        return None, _again(found, error, key)
    if into is None:
        return found, key
    try:
        return into(found), key
    except Exception:  # noqa: BLE001 - the same
        return None, _again(found, None, key)


def _again(
    found: list[Any], error: Exception | None, key: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    known, errors = iter(found), iter([] if error is None else [error])

    def again(record: Any) -> Any:
        for each in known:
            return each
        for raised in errors:
            raise raised
        return key(record)

    return again


def _fields_of(key: FieldGetter | FieldsGetter, records: list[Any]) -> list[Any] | None:
    names, kinds = key.names, set(map(type, records))
    is_single = type(key) is FieldGetter
    if len(kinds) == 1 and (is_single or len(names) > 1):  # Of one name it is no tuple.
        read: Any = None
        if kinds == {dict}:
            read = itemgetter(*names)
        elif kinds <= WITH_ATTRIBUTES and "." not in "".join(names):
            read = attrgetter(*names)
        if read is not None:
            try:
                found = list(map(read, records))
            except Exception:  # noqa: BLE001 - the same
                return None
            parts = found if is_single else chain.from_iterable(found)
            if float not in set(map(type, parts)):  # None is NaN.
                return found
    try:
        return [key(record) for record in records]
    except Exception:  # noqa: BLE001 - the same
        return None


def _itself(record: Any) -> Any:
    return record


def names_of_key(parts: Sequence[Any]) -> list[str]:
    """Return the names of the columns of a key; it has several parts if it is a tuple."""
    return ["key"] if len(parts) == 1 else [f"key_{at + 1}" for at in range(len(parts))]


def fields_of_pair(record: Any) -> dict[str, Any] | None:
    """Return the columns of a pair of key and value, as a result without windows is.

    Its value has a column for each of its fields if it is a dict. None: this is no pair.
    """
    if type(record) is not tuple or len(record) != 2:  # noqa: PLR2004
        return None
    key, value = record
    parts = key if type(key) is tuple else (key,)
    fields = dict(zip(names_of_key(parts), parts, strict=True))
    if type(value) is dict and not fields.keys() & value.keys():
        return {**fields, **value}
    return {**fields, "value": value}


def rows_of_pairs(values: Sequence[Any]) -> Sequence[Any]:
    """Return pairs of key and value as dicts of their columns; other values stay as they are."""
    rows = list(map(fields_of_pair, values)) if values and type(values[0]) is tuple else [None]
    return values if None in rows else rows


def _field(record: Any, name: str) -> Any:
    kind = type(record)
    try:
        if kind in WITH_ATTRIBUTES:
            value = getattr(record, name)
        elif kind is dict or isinstance(record, Mapping):
            value = record[name]
        elif (pair := fields_of_pair(record)) is not None:
            value = (record := pair)[name]
        else:
            if kind is not tuple:  # Some of them are pairs.
                WITH_ATTRIBUTES.add(kind)
            value = getattr(record, name)
    except (KeyError, AttributeError):
        if isinstance(record, Mapping):
            there = [str(each) for each in record]
        else:
            found: Any = getattr(record, "__dataclass_fields__", None)
            found = found or getattr(record, "_fields", ()) or getattr(record, "__dict__", None)
            there = list(found or ())
        missing = f"there is no field {name!r}: the record"
        if not there:
            raise LookupError(f"{missing} is a {kind.__name__} and has no fields") from None
        known = ", ".join(sorted(there))
        raise LookupError(f"{missing}, a {kind.__name__}, has {known}") from None
    return NAN if type(value) is float and value != value else value  # noqa: PLR0124
