"""The classes that can travel between processes, and their names there.

A class travels as a name, a fingerprint of its form and the values it is taken apart into; never as
code. `RecordRegistry` maps names to classes: to classes that were registered, and to those that are
found at the top of a module, see `class_names`. How instances are taken apart says `forms`.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from gearpy.errors import ConfigError, ProtocolError
from gearpy.wire.values.class_names import (
    PROGRAM,
    ClassPlace,
    class_named,
    full_name,
    is_of_prompt,
    name_of_class,
    place_of_class,
)
from gearpy.wire.values.forms import NotAllowed, RecordType, SerializerForm, form_of

T = TypeVar("T")
_Class = TypeVar("_Class", bound=type)

_HEAP_TYPE: Final = 1 << 9
_NOT_SEEN: Final = object()


class RecordRegistry:
    """The classes that may travel, by class and by name.

    A name means one class. The same class defined again (its module ran once more, or runs
    as ``__main__``) replaces the older definition for decoding; both can be encoded.

    Args:
        finds_classes: also those may travel that were not registered, if their form is known. Off
            where code of users must not run: to find a class, its module is imported.
        is_sealed: instances are not made but kept as the bytes that they were, for those who only
            pass them on.
    """

    def __init__(self, *, finds_classes: bool = True, is_sealed: bool = False) -> None:
        self._finds_classes = finds_classes
        self.is_sealed = is_sealed
        self._by_class: dict[type, RecordType | None] = {}
        self._by_name: dict[str, RecordType] = {}
        self._found: dict[tuple[str, str], tuple[ClassPlace, RecordType]] = {}

    def register(self, cls: type, name: str | None = None) -> None:
        """Let instances of ``cls`` travel under ``name`` (default: its qualified name)."""
        try:
            record = form_of(cls, name or cls.__qualname__)
        except NotAllowed as error:
            raise ConfigError(
                f"{full_name(cls)} cannot be registered as a record: {error}; use "
                "gearpy.register_serializer"
            ) from error
        self.adopt(record)

    def adopt(self, record: RecordType) -> None:
        """Let instances of a class travel in a form of its own."""
        taken = self._by_name.get(record.name)
        if taken is not None:
            modules = {taken.cls.__module__, record.cls.__module__}
            is_same = (
                taken.fields == record.fields
                and type(taken) is type(record)
                and taken.cls.__qualname__ == record.cls.__qualname__
                and (len(modules) == 1 or "__main__" in modules)
            )
            if not is_same:
                raise ConfigError(
                    f"record name {record.name!r} is taken by {full_name(taken.cls)}; "
                    f"register {full_name(record.cls)} with another name=..."
                )
        self._by_class[record.cls] = record
        self._by_name[record.name] = record

    def forget(self, package: str) -> None:
        for cls in [*self._by_class]:
            if cls.__module__.startswith(f"{package}."):
                self._by_class.pop(cls, None)
        for name, record in [*self._by_name.items()]:
            if record.cls.__module__.startswith(f"{package}."):
                self._by_name.pop(name, None)
        for key in [*self._found]:
            if key[0] == package:
                self._found.pop(key, None)

    def of_class(self, cls: type) -> RecordType | None:
        """Return how instances of exactly this class travel, if they do so as a record."""
        known = self._by_class.get(cls, _NOT_SEEN)
        if known is not _NOT_SEEN:
            return known  # type: ignore[return-value] # narrowed by the mark
        try:
            known = self._derived(cls)
        except NotAllowed:
            known = None
        if known is not None or not cls.__flags__ & _HEAP_TYPE:  # Built-in types stay as they are.
            self._by_class[cls] = known
        return known

    def why_not(self, cls: type) -> str:
        """Return why instances of a class cannot travel; empty if they can."""
        try:
            self._derived(cls)
        except NotAllowed as error:
            return str(error)
        return ""

    def find(self, name: str, fingerprint: int) -> RecordType:
        record = self._by_name.get(name) or self._named(name)
        if record.fingerprint != fingerprint:
            raise ProtocolError(
                f"record {name!r} has other fields here, or another form, than where it was made"
            )
        return record

    def _derived(self, cls: type) -> RecordType:
        if not self._finds_classes:
            raise NotAllowed("it was not registered")
        record = form_of(cls, name_of_class(cls))
        place = place_of_class(cls)
        if place is None and is_of_prompt(cls):
            self._by_name[record.name] = record  # No name leads to it; the newest counts.
        elif place is None or (place.cls is not cls and not _same_form(place.cls, record)):
            raise NotAllowed(
                "other processes would not find it by that name: define it at the top of its "
                "module, and not within a function"
            )
        return record

    def _named(self, name: str) -> RecordType:
        key = (PROGRAM.get(), name)
        found = self._found.get(key)
        if found is not None and found[0].is_current:
            return found[1]
        if not self._finds_classes or ":" not in name:
            raise ProtocolError(
                f"record {name!r} is not registered here: import the module that calls "
                "gearpy.register_record or gearpy.register_serializer for it"
            )
        place = class_named(name)
        try:
            record = form_of(place.cls, name)
        except NotAllowed as error:
            raise ProtocolError(f"class {name!r} cannot be received: {error}") from error
        self._found[key] = (place, record)
        return record


#: The registry behind `gearpy.register_record`.
DEFAULT_REGISTRY: Final = RecordRegistry()

#: The registry for values that are only passed on.
SEALED: Final = RecordRegistry(finds_classes=False, is_sealed=True)

#: The registry for values that are only shown: no code of users runs.
NO_CLASSES: Final = RecordRegistry(finds_classes=False)


def register_record(
    cls: _Class, name: str | None = None, *, registry: RecordRegistry = DEFAULT_REGISTRY
) -> _Class:
    """Let instances of a class travel under a name of its own; usable as decorator.

    Classes at the top of a module need none: they travel under the module's name and theirs. One
    given here keeps what was stored readable when the class moves to another module.

    Args:
        cls: a class whose instances are made of values, see ``docs/values.md``.
        name: on the wire and in what is stored; the qualified name of the class if not given.
        registry: where it becomes known.

    Raises:
        ConfigError: its instances are more than their values, or the name is taken.
    """
    registry.register(cls, name)
    return cls


def register_serializer(
    cls: type[T],
    encode: Callable[[T], Any],
    decode: Callable[[Any], T],
    *,
    name: str | None = None,
    registry: RecordRegistry = DEFAULT_REGISTRY,
) -> None:
    """Tell how instances of a class travel between processes and are stored.

    It counts for exactly this class, and before what gearpy would do by itself. Call it at the top
    of a module that the program imports, so that it is known in every process. Gearpump:
    ``gearpump.serializers``.

    Args:
        cls: the class.
        encode: gives bytes, or any other value that can travel.
        decode: makes an equal instance of that.
        name: on the wire and in what is stored; the full name of the class if not given.
        registry: where it becomes known.

    Raises:
        ConfigError: the name is taken by another class.

    Example:
        >>> import gearpy as gp
        >>> from fractions import Fraction
        >>> from gearpy.wire.values.records import RecordRegistry
        >>> gp.register_serializer(
        ...     Fraction, str, Fraction, name="fraction", registry=RecordRegistry()
        ... )
    """
    registry.adopt(SerializerForm(cls, name or name_of_class(cls), encode, decode))


def use_serializer(entry: str) -> None:
    """Register the serializer of a configuration entry, ``module:Class=module:Serializer``.

    An instance of the second class, made without arguments, has ``encode`` and ``decode`` as
    `register_serializer` takes them.

    Raises:
        ConfigError: there is no such class, it cannot be made, or is no serializer.
    """
    name, _, serializer_name = entry.partition("=")
    try:
        cls, kind = class_named(name).cls, class_named(serializer_name).cls
        made: Any = kind()
        register_serializer(cls, made.encode, made.decode)
    except (ProtocolError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"serializers: {entry!r}: {error}: give a class and another one that has encode(value) "
            "and decode(data), and can be made without arguments"
        ) from error


def _same_form(cls: type, record: RecordType) -> bool:
    """Tell whether a class is defined again as it was, as when a cell of a notebook runs twice."""
    try:
        other = form_of(cls, record.name)
    except NotAllowed:
        return False
    return type(other) is type(record) and other.fingerprint == record.fingerprint
