"""Coders: turn values into bytes and back; immutable ones may also be kept as objects.

A state names its coder. Values stored with one coder cannot be read with another one.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from operator import attrgetter
from types import NoneType
from typing import Any, Final, Protocol, TypeAlias, cast
from uuid import UUID

import msgpack
import msgspec

from gearpy.core.base.fields import fields_are
from gearpy.errors import ConfigError
from gearpy.wire.values.extensions import EncoderPool
from gearpy.wire.values.forms import SerializerForm
from gearpy.wire.values.payload import decode_value
from gearpy.wire.values.records import DEFAULT_REGISTRY

_Parts: TypeAlias = Callable[[Any], Iterable[Any] | None]

#: Types whose values never change, and are given back with the same type.
_LEAVES: Final[frozenset[type]] = frozenset(
    {NoneType, bool, int, float, str, bytes, Decimal, UUID, timedelta}
)
_ALWAYS_ENCODED: Final[frozenset[type]] = frozenset({bytes, NoneType})
_TIMES: Final = frozenset({date, datetime, time})
#: Deeper values are encoded at once, which says if they are nested too deep.
_DEPTH_MAX: Final = 8


def is_fixed(value: Any, depth: int = _DEPTH_MAX) -> bool:
    """Tell whether a value is an immutable record, tuple, enum member or time of such parts.

    Bytes are not: what a store has as bytes is what a coder has made. Nor is None, which would look
    as if there were no value.
    """
    kind = type(value)
    has_leaves = _has_leaves.get(kind)
    try:
        if has_leaves is not None and has_leaves(value):
            return True
        # How the parts of a type are read is found out once.
        read = _parts_by_type.get(kind) or _parts_by_type.setdefault(kind, _parts_of(kind))
        parts = read(value)
    except AttributeError:  # One was never set, which encoding refuses.
        return False
    if parts is None:
        return False
    if _LEAVES.issuperset(map(type, parts)):
        return True
    for part in parts:  # No generator: there is one for each record.
        if type(part) not in _LEAVES and not (depth > 0 and is_fixed(part, depth - 1)):
            return False
    return True


def _parts_of(kind: Any) -> _Parts:
    form = DEFAULT_REGISTRY.of_class(kind)
    if form is None or isinstance(form, SerializerForm):
        return _unknown
    if issubclass(kind, tuple):
        return _unknown if kind.__dictoffset__ else _itself
    if issubclass(kind, Enum):
        return _unknown if issubclass(kind, Flag) else _no_parts
    if issubclass(kind, msgspec.Struct):
        is_frozen = kind.__struct_config__.frozen
    else:
        is_frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
    if not is_frozen or not form.fields:
        return _unknown
    names = set(form.fields)
    get = attrgetter(*form.fields)

    def attributes(value: Any) -> Iterable[Any] | None:
        # Attributes beside the fields would be lost in a restart, which encoding refuses.
        found = value.__dict__
        return found.values() if found.keys() == names else None

    if kind.__dictoffset__:
        return attributes
    _has_leaves[kind] = fields_are(form.fields, _LEAVES)
    return get if len(names) > 1 else lambda value: (get(value),)


def _itself(value: Any) -> Iterable[Any]:
    return value  # type: ignore[no-any-return]


def _no_parts(_: Any) -> Iterable[Any]:
    return ()


def _unknown(_: Any) -> None:
    return None


def _parts_of_time(value: Any) -> Iterable[Any] | None:
    # A zone comes back as another object, or as its offset.
    return () if getattr(value, "tzinfo", None) is None else None


#: Of types with slots: whether all fields of a value are leaves, as is the rule.
_has_leaves: Final[dict[type, Callable[[Any], bool]]] = {}
_parts_by_type: Final[dict[type, _Parts]] = {
    tuple: _itself,
    **dict.fromkeys(_LEAVES - _ALWAYS_ENCODED, _no_parts),
    **dict.fromkeys(_ALWAYS_ENCODED, _unknown),  # Within others they are leaves.
    **dict.fromkeys(_TIMES, _parts_of_time),
}


class Coder(Protocol):
    """Turns values of one state into bytes and back.

    Example:
        >>> class Upper:
        ...     name = "upper"
        ...
        ...     def encode(self, value: str) -> bytes:
        ...         return value.upper().encode()
        ...
        ...     def decode(self, data: bytes) -> str:
        ...         return data.decode()
        >>> Upper().decode(Upper().encode("ada"))
        'ADA'
    """

    @property
    def name(self) -> str:
        """Names the form of the bytes; kept with them. Change it when the form changes."""
        ...

    def encode(self, value: Any) -> bytes:
        """Return a value as bytes; raises `ConfigError` for one that cannot be kept."""
        ...

    def decode(self, data: bytes) -> Any:
        """Return the value that `encode` made into bytes."""
        ...


#: A coder, or the name of one of gearpy's: "msgpack", "int", "float", "str", "bytes", "json".
CoderLike: TypeAlias = Coder | str

_encoders: Final = EncoderPool(DEFAULT_REGISTRY)


@dataclass(frozen=True, slots=True)
class AtomCoder:
    """A coder that leaves some values as they are until they are stored.

    They are stored as `pack_atom` does it, which `decode` must understand. They must not be able to
    change, and must not be bytes, which are always what `encode` has made.

    Attributes:
        atoms: types of which all values are left.
        keeps: tells of a value of another type whether it is left.
    """

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    atoms: frozenset[type]
    keeps: Callable[[Any], bool] = lambda _: False


def pack_atom(value: Any) -> bytes:
    return _encoders.pack(value)


def atom_packer() -> Callable[[Any], bytes]:
    """Return a faster function for `pack_atom`, for one thread."""
    quick = msgpack.Packer(autoreset=True, strict_types=True).pack

    def pack(value: Any) -> bytes:
        try:
            packed: bytes = quick(value)
        except (TypeError, ValueError, OverflowError):
            return pack_atom(value)
        return packed

    return pack


def atoms_packer() -> Callable[[Collection[Any]], list[bytes]]:
    """Return a much faster function for `pack_atom` of many values, for one thread."""
    quick = msgpack.Packer(autoreset=True, strict_types=True).pack

    def pack_all(values: Collection[Any]) -> list[bytes]:
        try:
            return list(map(quick, values))
        except (TypeError, ValueError, OverflowError):
            return list(map(atom_packer(), values))

    return pack_all


def atoms_of(coder: Coder) -> frozenset[type]:
    return coder.atoms if isinstance(coder, AtomCoder) else frozenset()


def keeps_of(coder: Coder) -> Callable[[Any], bool]:
    return coder.keeps if isinstance(coder, AtomCoder) else lambda _: False


def coder_named(coder: CoderLike) -> Coder:
    """Return a coder of gearpy's by its name, or the coder itself.

    Raises:
        ConfigError: there is none of this name, or it is no coder.
    """
    if isinstance(coder, str):
        if coder not in _CODERS:
            raise ConfigError(f"no coder is named {coder!r}: choose one of {', '.join(_CODERS)}")
        return _CODERS[coder]
    name = getattr(coder, "name", None)
    if not isinstance(name, str) or not hasattr(coder, "encode") or not hasattr(coder, "decode"):
        raise ConfigError(f"{coder!r} is no coder: it needs a name, encode and decode")
    if not isinstance(coder, AtomCoder) and (name in _CODERS or not name or "\0" in name):
        raise ConfigError(f"a coder cannot have the name {name!r}: choose another one")
    return coder


def _only(kind: type, name: str) -> Callable[[Any], bytes]:
    def encode(value: Any) -> bytes:
        if type(value) is not kind:
            raise ConfigError(f"coder {name!r} keeps {kind.__name__} only, not {value!r}")
        return _encoders.pack(value)

    return encode


def _encode_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise ConfigError(f"coder 'bytes' keeps bytes only, not {value!r}")
    return bytes(value)


def _encode_json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"coder 'json' cannot keep {value!r}: {error}") from error


_only_floats: Final = _only(float, "float")


def _encode_float(value: Any) -> bytes:
    return _only_floats(float(value) if type(value) is int else value)


#: Everything that can travel between tasks: plain values and classes known to
#: `gearpy.register_record`.
MSGPACK: Final = AtomCoder(
    "msgpack", _encoders.pack, decode_value, frozenset({int, float, str, bool}), is_fixed
)
#: Whole numbers of any size.
INT: Final = AtomCoder("int", _only(int, "int"), decode_value, frozenset({int}))
#: Numbers; an int becomes a float.
FLOAT: Final = AtomCoder("float", _encode_float, decode_value, frozenset({float}))
#: Text.
STR: Final = AtomCoder("str", _only(str, "str"), decode_value, frozenset({str}))
#: Bytes, as they are.
BYTES: Final = AtomCoder("bytes", _encode_bytes, bytes, frozenset())
#: What JSON can hold, as JSON; tuples become lists.
JSON: Final = AtomCoder("json", _encode_json, json.loads, frozenset())

_CODERS: Final[Mapping[str, Coder]] = {
    each.name: cast("Coder", each) for each in (MSGPACK, INT, FLOAT, STR, BYTES, JSON)
}
