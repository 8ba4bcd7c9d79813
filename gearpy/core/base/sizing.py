"""Estimates the memory that records take, without touching all of them.

Flow control counts bytes so that big records fill a window before small ones do. An exact
figure would cost more than sending them; a few samples of a batch are enough for a limit.
"""

from collections.abc import Sequence
from itertools import islice
from sys import getsizeof
from typing import Any, Final

from gearpy.messages.table import Table

_SAMPLES: Final = 3
_TIME_BYTES: Final = 8
_ITEMS_MAX: Final = 16
_DEPTH_MAX: Final = 4
#: Have nothing inside; nearly all that records are made of.
_ATOMS: Final = frozenset({str, bytes, int, float, bool, type(None)})


def estimate_bytes(values: Sequence[Any]) -> int:
    """Return about how many bytes the values take together; of a table, with its times, exactly."""
    if type(values) is Table:
        return values.size_bytes + _TIME_BYTES * len(values)
    count = len(values)
    if count <= _SAMPLES:
        return sum(_size(value, _DEPTH_MAX) for value in values)
    picked = (values[0], values[count // 2], values[-1])
    if type(picked[0]) is type(picked[1]) is type(picked[2]) is str:
        return sum(map(getsizeof, picked)) * count // _SAMPLES
    return sum([_size(value, _DEPTH_MAX) for value in picked]) * count // _SAMPLES


def _size(value: Any, depth: int) -> int:
    if type(value) in _ATOMS:
        return getsizeof(value)
    own = getsizeof(value, 64)
    if depth == 0 or isinstance(value, (str, bytes, int, float)):
        return own
    if isinstance(value, dict):
        return (
            own
            + _sampled(value.keys(), len(value), depth)
            + _sampled(value.values(), len(value), depth)
        )
    if isinstance(value, (list, tuple, set, frozenset)):
        return own + _sampled(value, len(value), depth)
    held = list(vars(value).values()) if hasattr(value, "__dict__") else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        held += [getattr(value, name) for name in names if hasattr(value, name)]
    inner = held
    return own + _sampled(inner, len(inner), depth)


def _sampled(items: Any, count: int, depth: int) -> int:
    sample = items if count <= _ITEMS_MAX else [*islice(items, _ITEMS_MAX)]
    if not count:
        return 0
    if _ATOMS.issuperset(map(type, sample)):
        return sum(map(getsizeof, sample)) * count // len(sample)
    return sum([_size(item, depth - 1) for item in sample]) * count // len(sample)
