"""Fields of records: an item of a mapping, an attribute of anything else."""

import math
from collections.abc import Callable, Mapping
from reprlib import repr as short_repr
from typing import Any, Final, TypeAlias

from msgspec import Struct

from gearpy.errors import ConfigError

#: What a field gives for any NaN, so that, as a key, all are one: other NaNs equal nothing.
NAN: Final = math.nan

#: Types of records that are no mappings; to ask takes longer than to read a field.
_WITH_ATTRIBUTES: Final[set[type]] = set()

#: The name of a field, a function of the record, or None for the record itself.
Field: TypeAlias = str | Callable[[Any], Any] | None


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
    """Return a function that reads a field: an item of a mapping, else an attribute.

    Raises:
        ConfigError: this is no name.
    """
    if type(name) is not str or not name:
        raise ConfigError(f"{short_repr(name)} is no name of a field: give text such as 'price'")
    return FieldGetter(name)


def key_getter(*names: str) -> FieldGetter | FieldsGetter:
    """Return a function that reads a key: one field, or several as a tuple.

    Raises:
        ConfigError: there is no name, or one is none.
    """
    if not names:
        raise ConfigError("a key has no fields: name at least one")
    getters = [field_getter(name) for name in names]
    return getters[0] if len(getters) == 1 else FieldsGetter(tuple(names))


def value_getter(of: Field) -> Callable[[Any], Any]:
    """Return a function that reads a field, calls a function, or gives the record itself.

    Raises:
        ConfigError: ``of`` is neither a field nor a function.
    """
    if of is None:
        return _itself
    if isinstance(of, str):
        return field_getter(of)
    if not callable(of):
        raise ConfigError(
            f"{short_repr(of)} tells nothing about a record: give the name of a field, a function "
            "of the record, or leave it out"
        )
    return of


def _field(record: Any, name: str) -> Any:
    try:
        read = getattr if type(record) in _WITH_ATTRIBUTES else _learned
        value = read(record, name)
    except (KeyError, AttributeError):
        raise LookupError(_missing(name, record)) from None
    return NAN if type(value) is float and value != value else value  # noqa: PLR0124


def _learned(record: Any, name: str) -> Any:
    if type(record) is dict or isinstance(record, Mapping):
        return record[name]
    _WITH_ATTRIBUTES.add(type(record))
    return getattr(record, name)


def _itself(record: Any) -> Any:
    return record


def _missing(name: str, record: Any) -> str:
    kind = type(record).__name__
    if isinstance(record, Mapping):
        there = [str(each) for each in record]
    else:
        found: Any = getattr(record, "__dataclass_fields__", None) or getattr(record, "_fields", ())
        there = list(found or getattr(record, "__dict__", None) or ())
    if not there:
        return f"there is no field {name!r}: the record is a {kind} and has no fields"
    return f"there is no field {name!r}: the record, a {kind}, has {', '.join(sorted(there))}"
