"""Which record classes can travel between processes, and how they are taken apart.

A record class is a dataclass or a NamedTuple. It travels as a name, a fingerprint of its
field names and its field values; never as code. `RecordRegistry` maps names to classes.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, TypeVar
from zlib import crc32

from gearpy.errors import ConfigError, ProtocolError

__all__ = ["DEFAULT_REGISTRY", "RecordRegistry", "RecordType", "register_record"]

_Class = TypeVar("_Class", bound=type)


@dataclasses.dataclass(frozen=True, slots=True)
class RecordType:
    """One registered class: its name on the wire and how to take values apart and back together.

    Values are rebuilt without calling ``__init__`` or ``__post_init__``, as they were when
    they were sent; validation and defaults ran where they were made.
    """

    cls: type
    name: str
    fields: tuple[str, ...]
    fingerprint: int  # Of the field names, so that two versions of a class do not mix.

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return one list of values for each field."""
        return [list(map(attrgetter(field), values)) for field in self.fields]

    def build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        """Return ``count`` instances whose fields are the given columns."""
        if len(columns) != len(self.fields):
            raise ProtocolError(
                f"record {self.name!r} has {len(self.fields)} fields, got {len(columns)}"
            )
        if issubclass(self.cls, tuple):
            rows = zip(*columns, strict=True) if columns else repeat((), count)
            return list(map(tuple.__new__, repeat(self.cls, count), rows))
        made = list(map(object.__new__, repeat(self.cls, count)))
        for field, column in zip(self.fields, columns, strict=True):
            # A deque without room is the fastest way to exhaust an iterator.
            deque(map(object.__setattr__, made, repeat(field), column), maxlen=0)
        return made


class RecordRegistry:
    """The record classes that may travel, by class and by name.

    A name means one class. The same class defined again (its module ran once more, or runs
    as ``__main__``) replaces the older definition for decoding; both can be encoded.
    """

    def __init__(self) -> None:
        self._by_class: dict[type, RecordType] = {}
        self._by_name: dict[str, RecordType] = {}

    def register(self, cls: type, name: str | None = None) -> None:
        """Let instances of ``cls`` travel under ``name`` (default: its qualified name).

        Raises:
            ConfigError: it is no dataclass or NamedTuple, or the name is taken.
        """
        record = _record_type(cls, name or cls.__qualname__)
        taken = self._by_name.get(record.name)
        if taken is not None and not _same_definition(taken, record):
            raise ConfigError(
                f"record name {record.name!r} is taken by {_full_name(taken.cls)}; "
                f"register {_full_name(cls)} with another name=..."
            )
        self._by_class[cls] = record
        self._by_name[record.name] = record

    def of_class(self, cls: type) -> RecordType | None:
        """Return how instances of exactly this class travel, if they can."""
        return self._by_class.get(cls)

    def find(self, name: str, fingerprint: int) -> RecordType:
        """Return the class that travels under this name.

        Raises:
            ProtocolError: there is none here, or its fields are not those of the sender.
        """
        record = self._by_name.get(name)
        if record is None:
            raise ProtocolError(
                f"record {name!r} is not registered here: import the module that calls "
                "gearpy.register_record for it"
            )
        if record.fingerprint != fingerprint:
            raise ProtocolError(f"record {name!r} has other fields here than at its sender")
        return record


#: The registry behind `gearpy.register_record`.
DEFAULT_REGISTRY: Final = RecordRegistry()


def register_record(
    cls: _Class, name: str | None = None, *, registry: RecordRegistry = DEFAULT_REGISTRY
) -> _Class:
    """Let instances of a dataclass or NamedTuple travel between processes; usable as decorator."""
    registry.register(cls, name)
    return cls


def _record_type(cls: type, name: str) -> RecordType:
    """Return the record type of a class, or raise `ConfigError`."""
    fields = _field_names(cls)
    return RecordType(cls, name, fields, crc32("\0".join(fields).encode()))


def _field_names(cls: type) -> tuple[str, ...]:
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return tuple(cls._fields)
    if dataclasses.is_dataclass(cls) and _can_be_made_bare(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    raise ConfigError(
        f"{_full_name(cls)} cannot be registered as a record: only dataclasses and NamedTuples can"
    )


def _can_be_made_bare(cls: type) -> bool:
    """Tell whether instances can be made without ``__init__`` (false for subclasses of dict...)."""
    make: Callable[[type], object] = object.__new__
    try:
        make(cls)
    except TypeError:
        return False
    return True


def _same_definition(old: RecordType, new: RecordType) -> bool:
    modules = {old.cls.__module__, new.cls.__module__}
    return (
        old.fields == new.fields
        and old.cls.__qualname__ == new.cls.__qualname__
        and (len(modules) == 1 or "__main__" in modules)
    )


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
