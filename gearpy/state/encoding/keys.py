"""Keys as bytes: equal keys give equal bytes, whatever their types, and bytes give a key back.

``1``, ``1.0``, ``True`` and ``Decimal(1)`` are one key, as they are for a dict and for the
partitioner. What comes back is an equal key in its plainest form: an int for these four, a tuple
for a NamedTuple, UTC for a time with a zone. Bytes of text, bytes, and ints of 64 bits are in the
order of what they stand for.
"""

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Rational, Real
from reprlib import repr as short_repr
from typing import Any, Final
from uuid import UUID

from gearpy.core.base.fields import keys_of
from gearpy.core.base.one_key import check_decimal, check_key
from gearpy.core.base.stable_hash import KEY_GROUPS, is_numpy_bool, key_group
from gearpy.errors import ConfigError, ProtocolError
from gearpy.wire.values.forms import NotAllowed
from gearpy.wire.values.records import DEFAULT_REGISTRY, RecordRegistry


class _NoKey:
    """Stands for the task as a whole, where state is not kept for a key."""

    def __repr__(self) -> str:
        return "NO_KEY"

    def __bool__(self) -> bool:
        return False


#: The key under which a task keeps what belongs to no key. None is a key like any other.
NO_KEY: Final = _NoKey()

#: Where `NO_KEY` belongs: it stays with its task, whatever key groups that has.
TASK_GROUP: Final = KEY_GROUPS

_INT: Final = struct.Struct(">BQ")
_FLOAT: Final = struct.Struct(">Bd")
_LENGTH: Final = struct.Struct(">I")
_FINGERPRINT: Final = struct.Struct(">I")
_INT_TAG: Final = ord("i")
_FLOAT_TAG: Final = ord("f")
_HALF: Final = 1 << 63
_NAN: Final = math.nan
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 -- only for other naive times
_MICROSECOND: Final = timedelta(microseconds=1)
_MINUTE_US: Final = 60_000_000
_DAY_MINUTES: Final = 1440
_MIN_US: Final = (datetime.min - _EPOCH) // _MICROSECOND  # noqa: DTZ901 -- the ends of UTC
_MAX_US: Final = (datetime.max - _EPOCH) // _MICROSECOND  # noqa: DTZ901 -- the same

#: What decoding other bytes can raise.
_MALFORMED: Final = (ValueError, TypeError, LookupError, ArithmeticError, struct.error)


def encode_key(key: Any) -> bytes:
    """Return a key as bytes; none for `NO_KEY`.

    Raises:
        ConfigError: it can be no key, or could not be given back.

    Example:
        >>> encode_key(1) == encode_key(1.0) == encode_key(True)
        True
        >>> decode_key(encode_key(("ada", 2.0)))
        ('ada', 2)
    """
    kind = type(key)
    if kind is str:  # The most frequent key by far.
        text: bytes = key.encode("utf-8", "surrogatepass")
        return b"s" + text
    if kind is int and -_HALF <= key < _HALF:
        return _INT.pack(_INT_TAG, key + _HALF)
    if key is NO_KEY:
        return b""
    return (_EXACT.get(kind) or _encoder_of(key))(key)


def encode_keys(keys: list[Any]) -> list[bytes]:
    is_frequent = set(map(type, keys)) <= _FREQUENT
    return list(map(_KNOWN.__getitem__ if is_frequent else encode_key, keys))


def encoded_keys(
    key: Callable[[Any], Any], records: list[Any]
) -> tuple[list[bytes] | None, Callable[[Any], Any]]:
    """Do as `keys_of`, with the keys as bytes; what is to be asked for each gives keys."""
    return keys_of(key, records, encode_keys)


class _Known(dict[Any, bytes]):
    """Keys that have come lately as bytes. Several threads may use it."""

    def __missing__(self, key: Any) -> bytes:
        if len(self) >= _KNOWN_MAX:
            self.clear()
        encoded = encode_key(key)
        if len(encoded) <= _KNOWN_BYTES_MAX:
            self[key] = encoded
        return encoded


_FREQUENT: Final = frozenset({str, int})
_KNOWN_MAX: Final = 1 << 14
_KNOWN_BYTES_MAX: Final = 256
_KNOWN: Final = _Known()


def decode_key(data: bytes, registry: RecordRegistry = DEFAULT_REGISTRY) -> Any:
    """Return a key equal to the one that was made into ``data``.

    Args:
        data: the bytes.
        registry: has the classes of keys.
    """
    if not data:
        return NO_KEY
    try:
        decode = _DECODERS.get(data[0])
        return _NESTED[data[0]](data[1:], registry) if decode is None else decode(data[1:])
    except _MALFORMED as error:
        raise ProtocolError(f"malformed key {short_repr(data)}: {error}") from error


def group_of(data: bytes) -> int:
    return key_group(decode_key(data)) if data else TASK_GROUP


# -- numbers -------------------------------------------------------------------------------


def _of_int(value: int) -> bytes:
    if -_HALF <= value < _HALF:
        return _INT.pack(_INT_TAG, value + _HALF)
    return b"j" + value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _of_float(value: float) -> bytes:
    if value.is_integer():
        return _of_int(int(value))
    return _FLOAT.pack(_FLOAT_TAG, _NAN if math.isnan(value) else value)


def _of_exact(value: Decimal | Rational) -> bytes:
    """Encode a number that may be equal to an int or a float, and is neither."""
    if isinstance(value, Decimal):
        check_decimal(value)
        if not value.is_finite():
            return _of_float(_NAN if value.is_nan() else float(value))
    numerator, denominator = Fraction(value).as_integer_ratio()
    if denominator == 1:
        return _of_int(numerator)
    with suppress(OverflowError):
        if Fraction(nearest := numerator / denominator) == value:
            return _of_float(nearest)
    return b"q" + _joined((_of_int(numerator), _of_int(denominator)))


def _ratio(data: bytes) -> Decimal | Fraction:
    numerator, denominator = map(decode_key, parts_of(data))
    rest, times = denominator, {2: 0, 5: 0}
    for factor in times:
        while rest % factor == 0:
            rest //= factor
            times[factor] += 1
    if rest != 1:
        return Fraction(numerator, denominator)
    places = max(times.values())
    digits = abs(numerator) * 10**places // denominator
    return Decimal((numerator < 0, Decimal(digits).as_tuple().digits, -places))


# -- times ---------------------------------------------------------------------------------


def _of_datetime(value: datetime) -> bytes:
    offset = value.utcoffset()
    if offset is None:
        return b"d" + _of_int((value.replace(tzinfo=None, fold=0) - _EPOCH) // _MICROSECOND)
    since_us = (value.replace(tzinfo=None, fold=0) - _EPOCH - offset) // _MICROSECOND
    if not _MIN_US <= since_us <= _MAX_US:
        raise ConfigError(f"state cannot be kept for {value!r}: it is no time in UTC")
    return b"D" + _of_int(since_us)


def _of_time(value: time) -> bytes:
    offset = value.utcoffset()
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    since_us = seconds * 1_000_000 + value.microsecond
    if offset is None:
        return b"h" + _of_int(since_us)
    return b"H" + _of_int(since_us - offset // _MICROSECOND)


def _time_with_zone(since_us: int) -> time:
    # Times with a zone can be before or after the day in UTC; another zone puts them into it.
    # It has whole minutes, as only by these times with zones are compared.
    minutes, within_us = divmod(since_us, _MINUTE_US)
    inside = min(max(minutes, 0), _DAY_MINUTES - 1)
    zone = timezone(timedelta(minutes=inside - minutes))
    since = timedelta(microseconds=inside * _MINUTE_US + within_us)
    return (_EPOCH + since).time().replace(tzinfo=zone)


# -- what is made of several ---------------------------------------------------------------


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def parts_of(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
        if end > len(data):
            raise ProtocolError(f"malformed key: {end - len(data)} bytes are missing")
        yield data[at + _LENGTH.size : end]
        at = end


def _of_tuple(value: tuple[Any, ...]) -> bytes:
    return b"t" + _joined(map(encode_key, value))


def _of_frozenset(value: frozenset[Any]) -> bytes:
    return b"z" + _joined(sorted(map(encode_key, value)))


def _of_record(value: Any) -> bytes:
    """Encode an instance of a registered dataclass or enum."""
    kind = type(value)
    record = DEFAULT_REGISTRY.of_class(kind)
    if record is None:
        instead = "the name" if isinstance(value, Enum) else "a tuple of its fields"
        raise ConfigError(
            f"state cannot be kept for keys of class {kind.__qualname__}: "
            f"{DEFAULT_REGISTRY.why_not(kind)}; or choose {instead} as the key"
        )
    try:
        parts = [encode_key(part) for part in record.row(value)]
    except NotAllowed as error:
        raise ConfigError(
            f"state cannot be kept for a key of class {kind.__qualname__}: {error}"
        ) from error
    head = (record.name.encode(), _FINGERPRINT.pack(record.fingerprint))
    return b"r" + _joined((*head, *parts))


def _record(data: bytes, registry: RecordRegistry) -> Any:
    name, fingerprint, *values = parts_of(data)
    record = registry.find(name.decode(), _FINGERPRINT.unpack(fingerprint)[0])
    return record.build([[decode_key(value, registry)] for value in values], 1)[0]


# -- one pair of functions for each kind ---------------------------------------------------

_EXACT: Final[dict[type, Callable[[Any], bytes]]] = {
    int: _of_int,
    bool: lambda value: _of_int(int(value)),
    float: _of_float,
    bytes: lambda value: b"b" + value,
    tuple: _of_tuple,
    frozenset: _of_frozenset,
    type(None): lambda _: b"n",
    Decimal: _of_exact,
    Fraction: _of_exact,
    datetime: _of_datetime,
    date: lambda value: b"a" + _of_int(value.toordinal()),
    time: _of_time,
    timedelta: lambda value: b"e" + _of_int(value // _MICROSECOND),
    UUID: lambda value: b"u" + value.bytes,
}

# For subclasses and numbers of other packages, in the order of `gearpy.core.base.stable_hash`.
_BY_ABC: Final[tuple[tuple[type, Callable[[Any], bytes]], ...]] = (
    (str, lambda value: encode_key(str.__str__(value))),
    (bytes, lambda value: b"b" + bytes(value)),
    (Integral, lambda value: _of_int(int(value))),
    (Rational, _of_exact),
    (Real, lambda value: _of_float(float(value))),
    (Enum, _of_record),
    (tuple, _of_tuple),
    (frozenset, _of_frozenset),
    (Decimal, _of_exact),
    (datetime, _of_datetime),
    (date, _EXACT[date]),
    (time, _of_time),
    (timedelta, _EXACT[timedelta]),
    (UUID, _EXACT[UUID]),
)

_DECODERS: Final[dict[int, Callable[[bytes], Any]]] = {
    ord("n"): lambda _: None,
    _INT_TAG: lambda data: int.from_bytes(data, "big") - _HALF,
    ord("j"): lambda data: int.from_bytes(data, "big", signed=True),
    # One object for all: a tuple that holds it is then equal to another one.
    _FLOAT_TAG: lambda data: _NAN if (value := struct.unpack(">d", data)[0]) != value else value,
    ord("q"): _ratio,
    ord("s"): lambda data: data.decode("utf-8", "surrogatepass"),
    ord("b"): bytes,
    ord("d"): lambda data: _EPOCH + timedelta(microseconds=decode_key(data)),
    ord("D"): lambda data: (_EPOCH + timedelta(microseconds=decode_key(data))).replace(tzinfo=UTC),
    ord("a"): lambda data: date.fromordinal(decode_key(data)),
    ord("h"): lambda data: (_EPOCH + timedelta(microseconds=decode_key(data))).time(),
    ord("H"): lambda data: _time_with_zone(decode_key(data)),
    ord("e"): lambda data: timedelta(microseconds=decode_key(data)),
    ord("u"): lambda data: UUID(bytes=data),
}
_NESTED: Final[dict[int, Callable[[bytes, RecordRegistry], Any]]] = {
    ord("t"): lambda data, known: tuple(decode_key(part, known) for part in parts_of(data)),
    ord("z"): lambda data, known: frozenset(decode_key(part, known) for part in parts_of(data)),
    ord("r"): _record,
}


def _encoder_of(key: Any) -> Callable[[Any], bytes]:
    check_key(key)
    if hasattr(type(key), "__dataclass_params__"):
        return _of_record
    if is_numpy_bool(key):
        return _EXACT[bool]
    for kind, encoder in _BY_ABC:
        if isinstance(key, kind):
            return encoder
    raise ConfigError(
        f"state cannot be kept for a key of type {type(key).__qualname__}: {short_repr(key)}: "
        "choose its name or its value as the key"
    )
