"""Sizes of what is kept in memory, estimated from some of it, as nobody waits for all of it."""

from collections import deque
from collections.abc import Iterable, Sized
from itertools import chain, islice
from typing import Any, Final, Protocol

#: So many collections, and members of each, tell how large the others are.
_SIZED_GROUPS: Final = 8
_SIZED_MEMBERS: Final = 16
_ATOM_BYTES: Final = 8
#: No others: code of users is not called.
_COLLECTIONS: Final = (dict, list, tuple, set, frozenset, deque)
#: How deep collections and objects are looked into.
_DEPTH_MAX: Final = 6


class Members(Sized, Iterable[Any], Protocol):
    """Some values, or a dict with its keys and values."""


def estimated_bytes(groups: Iterable[Members]) -> int:
    """Return the bytes of the members of some collections: how many, times the size of some."""
    members = seen = size = 0
    for place, group in enumerate(groups):
        members += len(group)
        if place < _SIZED_GROUPS:
            sizes = _sizes(group, _DEPTH_MAX)
            seen += len(sizes)
            size += sum(sizes)
    return size * members // seen if seen else 0


def _sizes(group: Members, depth: int) -> list[int]:
    if isinstance(group, dict):
        pairs = islice(group.items(), _SIZED_MEMBERS)
        return [_bytes_of(key, depth) + _bytes_of(value, depth) for key, value in pairs]
    return [_bytes_of(each, depth) for each in islice(group, _SIZED_MEMBERS)]


def _bytes_of(value: Any, depth: int) -> int:
    if type(value) in {bytes, str}:
        return len(value)
    if depth == 0:
        return _ATOM_BYTES
    if isinstance(value, _COLLECTIONS):
        sizes = _sizes(value, depth - 1)
        return sum(sizes) * len(value) // len(sizes) if sizes else 0
    # An object has attributes; a number has none.
    slots = chain.from_iterable(getattr(each, "__slots__", ()) for each in type(value).__mro__)
    named = dict.fromkeys([*getattr(type(value), "__struct_fields__", ()), *slots])
    parts = [getattr(value, name) for name in named if hasattr(value, name)]
    parts += value.__dict__.values() if type(value).__dictoffset__ else ()
    return sum(_bytes_of(each, depth - 1) for each in parts) if parts else _ATOM_BYTES
