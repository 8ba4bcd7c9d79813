"""Values that a store in memory keeps as they are, since nothing in them can change.

They become bytes at the end of an epoch, beside the task, and come back equal after a restart.
"""

from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from operator import attrgetter
from types import NoneType
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from gearpy.core.base.fields import fields_are
from gearpy.wire.values.forms import SerializerForm
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
