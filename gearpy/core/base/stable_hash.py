"""The hash that routes keys: alike in every process, run and version of Python.

Python's own hash of text differs from process to process, and a key routed by it would
meet the state of another key after a restart. Never change what a value hashes to: kept
state is found by it.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Rational, Real
from reprlib import repr as short_repr
from typing import Any, Final
from uuid import UUID
from zlib import crc32

from gearpy.errors import ConfigError

#: How many key groups there are where nothing else was said. More parallelism than this is
#: of no use; few groups for each task make some tasks carry more than others.
KEY_GROUPS: Final = 1024

_MASK: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio; spreads neighbours apart.
HALF: Final = 32
_WORD: Final = 8  # The language's hash of a number fits that many bytes.
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 -- only subtracted from other naive times
_DAY_US: Final = 86_400_000_000

# One seed for every kind of value, so that `None` and an empty tuple differ.
_NONE, _NAN, TUPLE, _SET, _DATE, _TIME, _DELTA, _ENUM, _CLASS = range(1, 10)

_ADVICE: Final = {
    "list": "make it a tuple",
    "set": "make it a frozenset",
    "bytearray": "make it bytes",
    "dict": "choose the fields that make the key, as a tuple",
    "datetime64": "make it a datetime, as by value.astype('datetime64[us]').item()",
    "timedelta64": "make it a timedelta, as by value.astype('timedelta64[us]').item()",
}
_ADVICE_OTHERWISE: Final = (
    "choose a key of text, numbers, bytes, dates, tuples of them or a frozen dataclass, "
    "or a partitioner that needs no key, such as shuffle"
)


def stable_hash(value: Any) -> int:
    """Return 64 bits that depend on the value only.

    Equal values hash alike, as with `hash`: ``1``, ``1.0``, ``True`` and ``Decimal(1)`` do.
    Tuples, frozensets and frozen dataclasses may hold any of the values allowed.

    Raises:
        ConfigError: such a value can be no key, because it can change or has no fixed form.
    """
    if type(value) is str:  # The most frequent key by far.
        spread = crc32(value.encode("utf-8", "surrogatepass")) * GOLDEN
        return (spread ^ spread >> HALF) & _MASK
    hasher = _EXACT.get(type(value)) or _hasher_of(value)
    return hasher(value)


def is_numpy_bool(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ in {"bool", "bool_"}


def key_group(key: Any, key_groups: int = KEY_GROUPS) -> int:
    return stable_hash(key) % key_groups


def task_of_group(group: int, *, parallelism: int, key_groups: int = KEY_GROUPS) -> int:
    """Return the index of the task that owns a key group.

    Every task owns one contiguous range, and ranges differ by at most one group.
    """
    return group * parallelism // key_groups


def _spread(word: int) -> int:
    spread = word * GOLDEN
    return (spread ^ spread >> HALF) & _MASK


def _fold(seed: int, hashes: Iterable[int]) -> int:
    state = seed
    for each in hashes:
        state = _spread(state ^ each) + 1 & _MASK
    return _spread(state)


def _of_text(value: str) -> int:
    return _spread(crc32(value.encode("utf-8", "surrogatepass")))


def _of_bytes(value: bytes) -> int:
    return _spread(crc32(value))


def _of_number(value: Any) -> int:
    # Unlike that of text, the language defines the hash of a number (library reference,
    # "Hashing of numeric types"), alike for equal numbers of all types.
    return _spread(crc32(hash(value).to_bytes(_WORD, "little", signed=True)))


def _of_float(value: float) -> int:
    return _of_number(value) if value == value else _spread(_NAN)  # noqa: PLR0124 -- NaN


def _of_decimal(value: Decimal) -> int:
    return _spread(_NAN) if value.is_nan() else _of_number(value)


def _of_tuple(value: tuple[Any, ...]) -> int:
    return _fold(TUPLE, map(stable_hash, value))


def _of_frozenset(value: frozenset[Any]) -> int:
    # Addition does not mind the order, which differs from process to process.
    return _fold(_SET, (len(value), sum(map(stable_hash, value)) & _MASK))


def _of_date(value: date) -> int:
    return _fold(_DATE, (value.toordinal(),))


def _of_datetime(value: datetime) -> int:
    offset = value.utcoffset() or timedelta()
    return _of_delta(value.replace(tzinfo=None, fold=0) - _EPOCH - offset)


def _of_time(value: time) -> int:
    offset = value.utcoffset() or timedelta()
    minutes = value.hour * 60 + value.minute
    passed = timedelta(minutes=minutes, seconds=value.second, microseconds=value.microsecond)
    return _fold(_TIME, (_of_delta(passed - offset),))


def _of_delta(value: timedelta) -> int:
    within_day_us = value.seconds * 1_000_000 + value.microseconds
    return _fold(_DELTA, (_of_number(value.days * _DAY_US + within_day_us),))


def _of_enum(value: Enum) -> int:
    return _fold(_ENUM, (_of_text(type(value).__qualname__), _of_text(str(value.name))))


def _of_dataclass(value: Any) -> int:
    compared = (getattr(value, each.name) for each in fields(value) if each.compare)
    return _fold(_CLASS, map(stable_hash, compared))


_EXACT: Final[dict[type, Callable[[Any], int]]] = {
    int: _of_number,
    bool: _of_number,
    float: _of_float,
    bytes: _of_bytes,
    tuple: _of_tuple,
    frozenset: _of_frozenset,
    type(None): lambda _: _spread(_NONE),
    Decimal: _of_decimal,
    Fraction: _of_number,
    datetime: _of_datetime,
    date: _of_date,
    time: _of_time,
    timedelta: _of_delta,
    UUID: lambda value: _of_bytes(value.bytes),
}

# For subclasses and numbers of other packages; an Enum that is text or a number comes first
# as that, because it equals it, and a datetime is a date.
_BY_ABC: Final[tuple[tuple[type, Callable[[Any], int]], ...]] = (
    (str, lambda value: _of_text(str.__str__(value))),
    (bytes, _of_bytes),
    (Integral, lambda value: _of_number(int(value))),
    (Rational, _of_number),
    (Real, lambda value: _of_float(float(value))),
    (Enum, _of_enum),
    (tuple, _of_tuple),
    (frozenset, _of_frozenset),
    (Decimal, _of_decimal),
    (datetime, _of_datetime),
    (date, _of_date),
    (time, _of_time),
    (timedelta, _of_delta),
    (UUID, lambda value: _of_bytes(value.bytes)),
)


def _hasher_of(value: Any) -> Callable[[Any], int]:
    declared = getattr(type(value), "__dataclass_params__", None)
    if declared is not None and declared.frozen:
        return _of_dataclass
    if is_numpy_bool(value):
        return _of_number
    for kind, hasher in _BY_ABC:
        # A timedelta of NumPy says of itself that it is a whole number.
        if isinstance(value, kind) and type(value).__name__ not in _ADVICE:
            return hasher
    advice = "declare the dataclass with frozen=True" if declared else _ADVICE_OTHERWISE
    raise ConfigError(
        f"a key of type {type(value).__qualname__} cannot be partitioned: "
        f"{short_repr(value)}: {_ADVICE.get(type(value).__name__, advice)}"
    )
