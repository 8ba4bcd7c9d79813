"""Copies of records: only the parts that somebody else could change are copied.

A record that two hold, such as two steps behind one, or a join and the step behind it, is copied
for one of them. Immutable values are not copied: numbers, texts, times, and tuples,
NamedTuples and frozen dataclasses of such. Each type is examined only once.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import chain
from operator import attrgetter, is_
from pathlib import PurePath
from reprlib import repr as short_repr
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any, Final, TypeAlias
from uuid import UUID

from gearpy.core.base.fields import fields_are

_Copier: TypeAlias = Callable[[Any], Any]

#: Types whose instances never change. Others are added here as they are met.
ATOMS: Final[set[type]] = {
    *(NoneType, bool, int, float, complex, str, bytes, Decimal, Fraction, UUID),
    *(date, datetime, time, timedelta, timezone, range, slice, type, type(Ellipsis)),
    *(frozenset, FunctionType, BuiltinFunctionType, ModuleType),
}
#: Their subclasses do not change either: an Enum has its values once, a path is a text, and
#: classes are shared.
_ATOM_BASES: Final = (Enum, PurePath, type)
#: Packages whose values do not change, but for these.
_ATOM_PACKAGES: Final = frozenset({"pyarrow", "zoneinfo", "gearpy.messages.table"})
_COPIERS: dict[type, _Copier] = {}
#: Of types of frozen dataclasses with slots, and of such structs: whether all fields are atoms.
_FROZEN_SLOTS: dict[type, Callable[[Any], bool]] = {}


def own_each(values: list[Any]) -> list[Any]:
    """Return copies that share no mutable parts with the values; immutable values as they are.

    Raises `TypeError` if one can change, and cannot be copied.
    """
    if type(values) is not list:
        return values
    kinds = set(map(type, values))
    if kinds <= ATOMS:
        return values
    if len(kinds) == 1:  # Most often they are; then all are read in one go.
        kind = kinds.pop()
        if kind is dict and _are_atoms(chain.from_iterable(map(dict.values, values))):
            return list(map(dict.copy, values))
        if _have_atoms(kind, values):
            return values
    elif all(_is_tuple(kind) or kind in _FROZEN_SLOTS for kind in kinds) and all(
        _have_atoms(kind, [value for value in values if type(value) is kind]) for kind in kinds
    ):
        return values
    try:
        return list(map(_own, values))
    except RecursionError:
        return list(map(own, values))


def own(value: Any) -> Any:
    """Return a copy that shares no mutable parts with the value; an immutable value as it is.

    Raises:
        TypeError: it can change, and cannot be copied.
    """
    try:
        return _own(value)
    except RecursionError:  # It is in itself.
        return _deep(value)


def _are_atoms(values: Iterable[Any]) -> bool:
    return ATOMS.issuperset(map(type, values))


def _have_atoms(kind: type, values: list[Any]) -> bool:
    if _is_tuple(kind):
        return _are_atoms(chain.from_iterable(values))
    try:
        has_atoms = _FROZEN_SLOTS.get(kind)
        return has_atoms is not None and all(map(has_atoms, values))
    except AttributeError:  # One was never set.
        return False


def _own(value: Any) -> Any:
    kind = type(value)
    return value if kind in ATOMS else (_COPIERS.get(kind) or _copier_of(kind))(value)


def _own_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    mine = value.copy()
    if not _are_atoms(mine.values()):
        for key, item in mine.items():
            if type(item) not in ATOMS:
                mine[key] = _own(item)
    return mine


def _own_list(value: list[Any]) -> list[Any]:
    kinds = set(map(type, value))
    if kinds <= ATOMS or (len(kinds) == 1 and _have_atoms(kinds.pop(), value)):
        return value.copy()
    return list(map(_own, value))


def _own_tuple(value: tuple[Any, ...]) -> tuple[Any, ...]:
    if _are_atoms(value):
        return value
    mine = list(map(_own, value))
    return value if _are_same(mine, value) else tuple.__new__(type(value), mine)


def _dataclass_copier(kind: Any) -> _Copier:
    is_frozen = kind.__dataclass_params__.frozen
    names = [field.name for field in dataclasses.fields(kind)]
    get = attrgetter(*names, "__class__")  # One name more makes it return a tuple always.
    has_atoms = fields_are(names, ATOMS)

    def own_instance(value: Any) -> Any:
        state = value.__dict__
        if is_frozen and _are_atoms(state.values()):
            return value
        mine = _own_dict(state)
        if is_frozen and _are_same(mine.values(), state.values()):
            return value
        made = object.__new__(kind)
        made.__dict__.update(mine)
        return made

    def own_slots(value: Any) -> Any:
        try:
            if is_frozen and has_atoms(value):
                return value
            items = get(value)[:-1]
        except AttributeError:  # One was never set.
            return _deep(value)
        mine = list(map(_own, items))
        if is_frozen and _are_same(mine, items):
            return value
        made = object.__new__(kind)
        for name, item in zip(names, mine, strict=True):
            object.__setattr__(made, name, item)
        return made

    if kind.__dictoffset__:
        return own_instance
    if is_frozen:
        _FROZEN_SLOTS[kind] = has_atoms
    return own_slots


def _frozen_struct_copier(kind: Any) -> _Copier:
    get = attrgetter(*kind.__struct_fields__, "__class__")
    _FROZEN_SLOTS[kind] = fields_are(kind.__struct_fields__, ATOMS)

    def own_struct(value: Any) -> Any:
        try:
            items = get(value)
        except AttributeError:  # One was never set.
            return _deep(value)
        return value if _are_same([*map(_own, items)], items) else _deep(value)

    return own_struct


def _are_same(mine: Collection[Any], others: Collection[Any]) -> bool:
    return all(map(is_, mine, others))


def _deep(value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception as error:
        raise TypeError(
            f"{short_repr(value)} goes to several steps, or is kept by one while others get it; it "
            f"can change, and {type(value).__name__} cannot be copied ({error}): map it to plain "
            "data before, or give the class a __deepcopy__"
        ) from error


def _copier_of(kind: Any) -> _Copier:
    module = kind.__module__
    is_atom = issubclass(kind, _ATOM_BASES)
    is_atom = is_atom or not _ATOM_PACKAGES.isdisjoint((module, module.partition(".")[0]))
    # Numbers of numpy, which need not be installed.
    if is_atom or (module == "numpy" and any(e.__name__ == "generic" for e in kind.__mro__)):
        ATOMS.add(kind)
        return _itself
    config = getattr(kind, "__struct_config__", None)  # A struct of msgspec has one.
    if getattr(config, "frozen", False) and not kind.__dictoffset__:
        copier = _frozen_struct_copier(kind)
    elif hasattr(kind, "__deepcopy__") or kind.__reduce_ex__ is not object.__reduce_ex__:
        copier = _deep  # It knows best.
    elif _is_tuple(kind):
        copier = _own_tuple
    elif kind.__bases__ == (object,) and dataclasses.is_dataclass(kind):
        copier = _dataclass_copier(kind)
    else:
        copier = _EXACT.get(kind, _deep)
    _COPIERS[kind] = copier
    return copier


def _is_tuple(kind: Any) -> bool:
    return kind is tuple or (
        issubclass(kind, tuple) and hasattr(kind, "_fields") and not kind.__dictoffset__
    )


def _itself(value: Any) -> Any:
    return value


_EXACT: Final[dict[type, _Copier]] = {
    dict: _own_dict,
    list: _own_list,
    set: set.copy,
    bytearray: bytearray.copy,
}
