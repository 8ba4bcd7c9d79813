"""Takes instances of a class apart into columns of plain values, and puts them together again.

There is a form for each kind of class: dataclasses, NamedTuples, attrs classes and msgspec structs
(their fields), enumerations (names of members), pydantic models (what pydantic itself would
store), plain classes (their attributes), and whatever a serializer was given for. Values are
rebuilt as they were when they were sent; but for msgspec structs no code of the class runs.
"""

import dataclasses
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from enum import Enum, Flag
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from types import MemberDescriptorType
from typing import Any, Final
from zlib import crc32

import msgspec

from gearpy.errors import ProtocolError

_HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement.
_POINTER_BYTES: Final = 8
#: A class with one of these stores its instances in its own way, or they are not just data.
_OWN_WAYS: Final = (
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__new__",
)
#: attrs keeps the hash of an instance here; another process has to compute it anew.
_ATTRS_HASH: Final = "_attrs_cached_hash"
#: Attributes that are no data: what typing notes, and what is computed again.
_NO_DATA: Final = frozenset({"__orig_class__"})


class NotAllowed(Exception):
    """Instances of a class cannot travel; the text says why."""


class RecordType(ABC):
    """The form in which instances of a class travel: its name on the wire, and its columns.

    Attributes:
        fields: of the columns; at least one, or nothing would tell how many instances there are.
        fingerprint: of the form and its fields, so that two versions of a class do not mix.
    """

    def __init__(self, cls: type, name: str, fields: tuple[str, ...], fingerprint: int) -> None:
        self.cls = cls
        self.name = name
        self.fields = fields
        self.fingerprint = fingerprint

    @abstractmethod
    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return one list of values for each field."""

    def row(self, value: Any) -> list[Any]:
        """Return the values of the fields of one instance; raises as `columns`."""
        return [column[0] for column in self.columns([value])]

    @abstractmethod
    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        """Return ``count`` instances; there are as many columns as fields."""

    def build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        """Return ``count`` instances that have the given `columns`."""
        if len(columns) != len(self.fields):
            raise ProtocolError(
                f"record {self.name!r} has {len(self.fields)} fields, got {len(columns)}"
            )
        return self._build(columns, count)

    def parts(self, value: Any) -> Iterable[tuple[str, Any]]:
        return [(f".{name}", part) for name, part in zip(self.fields, self.row(value), strict=True)]


def form_of(cls: type, name: str) -> RecordType:
    """Return the form of a class that declares none itself."""
    if issubclass(cls, Generator | Coroutine):
        raise NotAllowed("it runs, and nobody can say how far it is: make a list of what it gives")
    if hasattr(cls, "__del__"):
        raise NotAllowed("it has __del__, which would run for each copy of an instance")
    if issubclass(cls, Enum):
        return _EnumForm(cls, name, ("member",), crc32(b"an enum"))
    if issubclass(cls, msgspec.Struct):
        return _StructForm(
            cls, name, cls.__struct_fields__, crc32("\0".join(cls.__struct_fields__).encode())
        )
    pydantic = sys.modules.get("pydantic")
    is_model = pydantic is not None and issubclass(cls, pydantic.BaseModel)
    if is_model:
        if cls.__pydantic_generic_metadata__["args"]:  # type: ignore[attr-defined]
            raise NotAllowed(
                "it is a generic model with its types filled in, which has no name of its own: "
                "make a subclass of it and use that"
            )
        return _ModelForm(cls, name, ("state",), crc32(b"a pydantic model"))
    fields = _field_names(cls)
    if fields is not None:
        return _FieldsForm(cls, name, fields, crc32("\0".join(fields).encode()))
    _check_plain(cls)
    return _PlainForm(cls, name, ("attributes",), crc32(b"a plain class"))


# -- classes with fields -------------------------------------------------------------------


class _FieldsForm(RecordType):
    """Rebuilds instances without calling ``__init__`` or ``__post_init__``."""

    def __init__(self, cls: type, name: str, fields: tuple[str, ...], fingerprint: int) -> None:
        super().__init__(cls, name, fields, fingerprint)
        self._is_tuple = issubclass(cls, tuple)
        slots = _slots_of(cls)
        self._has_dict = cls.__dictoffset__ != 0
        self._in_dict = 0 if self._is_tuple else sum(field not in slots for field in fields)
        props = getattr(cls, "__attrs_props__", None)
        kind = getattr(getattr(props, "hashability", None), "name", "")
        self._keeps_hash = _ATTRS_HASH in slots or kind == "HASHABLE_CACHED"

        self._fields_of = attrgetter(*fields) if len(fields) > 1 else None

    def row(self, value: Any) -> list[Any]:
        if self._has_dict or self._fields_of is None:
            return super().row(value)
        try:
            return list(self._fields_of(value))
        except AttributeError as error:
            raise NotAllowed(f"it lacks a field: {error}") from error

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        if self._has_dict and max(map(len, map(vars, values))) > self._in_dict:
            self._check_rest(values)
        return _attributes(values, self.fields)

    def _check_rest(self, values: Sequence[Any]) -> None:
        """Refuse attributes beside the fields, unless they can be computed again."""
        for value in values:
            for name in vars(value).keys() - set(self.fields) - _NO_DATA:
                if name != _ATTRS_HASH and not isinstance(
                    getattr(self.cls, name, None), cached_property
                ):
                    raise NotAllowed(
                        f"it has the attribute {name!r} beside its fields, which would be lost: "
                        f"declare {name!r} as a field of the class"
                    )

    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        if self._is_tuple:
            rows = zip(*columns, strict=True) if columns else repeat((), count)
            return list(map(tuple.__new__, repeat(self.cls, count), rows))
        made: list[Any] = list(map(object.__new__, repeat(self.cls, count)))
        for field, column in zip(self.fields, columns, strict=True):
            # A deque without room is the fastest way to exhaust an iterator.
            deque(map(object.__setattr__, made, repeat(field), column), maxlen=0)
        if self._keeps_hash:
            deque(map(object.__setattr__, made, repeat(_ATTRS_HASH), repeat(None)), maxlen=0)
        return made


def _attributes(values: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
    try:
        return [list(map(attrgetter(name), values)) for name in names]
    except AttributeError as error:
        raise NotAllowed(f"it lacks a field: {error}") from error


def _field_names(cls: type) -> tuple[str, ...] | None:
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return tuple(cls._fields)
    make: Callable[[type], object] = object.__new__
    try:
        make(cls)
    except TypeError:  # A subclass of dict, say, cannot be made without its ``__init__``.
        return None
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    if hasattr(cls, "__attrs_attrs__"):
        return tuple(field.name for field in cls.__attrs_attrs__)
    return None


class _StructForm(RecordType):
    """Calls the class, which msgspec offers no way around, and sets fields as they were after."""

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        return _attributes(values, self.fields)

    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        rows = zip(*columns, strict=True) if columns else repeat((), count)
        return list(map(self._made, rows))

    def _made(self, row: tuple[Any, ...]) -> Any:
        made = self.cls(**dict(zip(self.fields, row, strict=True)))
        if hasattr(self.cls, "__post_init__"):
            for field, value in zip(self.fields, row, strict=True):
                msgspec.structs.force_setattr(made, field, value)
        return made


# -- enumerations --------------------------------------------------------------------------


class _EnumForm(RecordType):
    """Members by name, as their values may change; several flags together by their number."""

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        members = self.cls.__members__  # type: ignore[attr-defined] # of every Enum
        if not issubclass(self.cls, Flag):
            return [[value._name_ for value in values]]
        return [[v._name_ if v._name_ in members else v._value_ for v in values]]

    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        return [self._member(each) for each in columns[0]]

    def _member(self, told: Any) -> Any:
        members: Mapping[str, Any] = self.cls.__members__  # type: ignore[attr-defined]
        if type(told) is str and told in members:
            return members[told]
        if type(told) is int and issubclass(self.cls, Flag):
            return self.cls(told)
        raise ProtocolError(f"{self.name!r} has no member {told!r} here")

    def parts(self, value: Any) -> Iterable[tuple[str, Any]]:
        return ()


# -- pydantic ------------------------------------------------------------------------------


class _ModelForm(RecordType):
    """Uses the stored data of a pydantic model; nothing is validated again."""

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        model = sys.modules["pydantic"].BaseModel
        return [[dict(model.__getstate__(value)) for value in values]]

    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        model = sys.modules["pydantic"].BaseModel
        made: list[Any] = list(map(object.__new__, repeat(self.cls, count)))
        for each, state in zip(made, columns[0], strict=True):
            model.__setstate__(each, state)
        return made

    def parts(self, value: Any) -> Iterable[tuple[str, Any]]:
        return [(f".{name}", part) for name, part in vars(value).items()]


# -- plain classes -------------------------------------------------------------------------


class _PlainForm(RecordType):
    """Attributes by name, as far as an instance has them."""

    def __init__(self, cls: type, name: str, fields: tuple[str, ...], fingerprint: int) -> None:
        super().__init__(cls, name, fields, fingerprint)
        self._slots = _slots_of(cls)
        self._has_dict = cls.__dictoffset__ != 0

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        return [list(map(self._attributes, values))]

    def _attributes(self, value: Any) -> dict[str, Any]:
        found = {name: getattr(value, name) for name in self._slots if hasattr(value, name)}
        if self._has_dict:
            found.update((k, v) for k, v in vars(value).items() if k not in _NO_DATA)
        return found

    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        return list(map(self._made, columns[0]))

    def _made(self, attributes: Mapping[str, Any]) -> Any:
        made: Any = object.__new__(self.cls)
        for name, value in attributes.items():
            if name in self._slots:
                object.__setattr__(made, name, value)
            else:
                vars(made)[sys.intern(name)] = value
        return made

    def parts(self, value: Any) -> Iterable[tuple[str, Any]]:
        return [(f".{name}", part) for name, part in self._attributes(value).items()]


def _slots_of(cls: type) -> tuple[str, ...]:
    return tuple(
        name
        for base in cls.__mro__
        for name, each in vars(base).items()
        if type(each) is MemberDescriptorType
    )


def _check_plain(cls: type) -> None:
    top = cls.__module__.partition(".")[0]
    if top in sys.stdlib_module_names or top == "gearpy":
        raise NotAllowed("it is no plain data")
    for base in cls.__mro__[:-1]:
        if not base.__flags__ & _HEAP_TYPE:
            raise NotAllowed(f"it is a kind of {base.__name__}, and not only its attributes")
    for name in _OWN_WAYS:
        if getattr(cls, name, None) is not getattr(object, name, None):
            raise NotAllowed(f"it has {name}, so it may be more than its attributes")
    words = len(_slots_of(cls)) + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    if cls.__basicsize__ > object.__basicsize__ + words * _POINTER_BYTES:
        raise NotAllowed("it is made in another language, and not only its attributes")


# -- serializers ---------------------------------------------------------------------------


class SerializerForm(RecordType):
    """Calls a pair of functions given by the user."""

    def __init__(
        self, cls: type, name: str, encode: Callable[[Any], Any], decode: Callable[[Any], Any]
    ) -> None:
        super().__init__(cls, name, ("value",), crc32(b"a serializer"))
        self._encode = encode
        self._decode = decode

    def columns(self, values: Sequence[Any]) -> list[list[Any]]:
        try:
            return [list(map(self._encode, values))]
        except Exception as error:
            raise NotAllowed(f"its serializer raised {type(error).__name__}: {error}") from error

    def _build(self, columns: Sequence[Sequence[Any]], count: int) -> list[Any]:
        try:
            return list(map(self._decode, columns[0]))
        except Exception as error:
            raise ProtocolError(
                f"the serializer of {self.name!r} raised {type(error).__name__}: {error}"
            ) from error
