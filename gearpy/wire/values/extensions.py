"""Values beyond plain msgpack: tuples, sets, times, decimals, big ints, paths, numpy, records.

`ValueEncoder` and `ValueDecoder` turn one value of any depth into bytes and back, keeping
its type exactly. Plain are None, bool, int, float, str, bytes, list and dict; bytearray and
memoryview arrive as bytes. There is no pickle: instances of other classes travel as the values that
they are made of, in the ways that `forms` knows.
"""

import datetime as dt
import math
import struct
import uuid
import zoneinfo
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from reprlib import repr as short_repr
from typing import Any, Final

import msgpack

from gearpy.errors import CannotTravel, ProtocolError
from gearpy.messages.late_time import LateTime
from gearpy.wire.values.class_names import full_name
from gearpy.wire.values.forms import NotAllowed
from gearpy.wire.values.numpy_values import decode_array, decode_scalar, encode_array, encode_scalar
from gearpy.wire.values.records import RecordRegistry

#: How deep extension values (a tuple in a set in a record) may nest, both ways.
NESTING_MAX: Final = 64

#: Decoding nonsense can raise these; callers turn them into `ProtocolError`.
MALFORMED: Final = (
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
    OSError,  # A time zone name that is a folder of the time zone database.
    struct.error,
    msgpack.UnpackException,
)

_TUPLE: Final = 1
_SET: Final = 2
_FROZENSET: Final = 3
_DATETIME: Final = 4
_DATE: Final = 5
_TIME: Final = 6
_TIMEDELTA: Final = 7
_DECIMAL: Final = 8
_UUID: Final = 9
_BIG_INT: Final = 10
_RECORD: Final = 11
_NUMPY: Final = 12
_COMPLEX: Final = 13
_ARRAY: Final = 14
_STANDARD: Final = 15

_DATETIME_FIELDS: Final = struct.Struct("<HBBBBBIB")
_DATE_FIELDS: Final = struct.Struct("<HBB")
_TIME_FIELDS: Final = struct.Struct("<BBBIB")
_TIMEDELTA_FIELDS: Final = struct.Struct("<iii")
_COMPLEX_FIELDS: Final = struct.Struct("<dd")
_OFFSET: Final = struct.Struct("<cq")
# First size of a packer's buffer, which doubles as needed; batches are packed at depth 0.
_BATCH_PACKER_BYTES: Final = 65_536
_VALUE_PACKER_BYTES: Final = 1024
#: An encoder that has grown larger than this is not kept.
_KEPT_BYTES_MAX: Final = 2 << 20


class ValueEncoder:
    """Turns values into bytes. Cheap to make, not shared between threads.

    Raises `CannotTravel` for what cannot, naming the class and what to do.
    """

    def __init__(self, registry: RecordRegistry) -> None:
        self._registry = registry
        # None means "strict" and is the only value that takes msgpack's fast path.
        self._unicode_errors: str | None = None
        self._packers: list[msgpack.Packer] = []
        self._depth = 0

    @property
    def is_slow(self) -> bool:
        return self._unicode_errors is not None

    def pack(self, value: Any) -> bytes:
        try:
            try:
                return self.pack_nested(value)
            except UnicodeEncodeError:
                self._unicode_errors, self._packers, self._depth = "surrogatepass", [], 0
                return self.pack_nested(value)
        except (ValueError, OverflowError, AttributeError) as error:
            text = str(error)
            if text == "recursion limit exceeded.":
                text = "recursion limit exceeded: it is nested too deep, or is part of itself"
            raise CannotTravel(text) from error

    def pack_nested(self, value: Any) -> bytes:
        if self._depth >= NESTING_MAX:
            raise CannotTravel(f"it is nested deeper than {NESTING_MAX} levels")
        if self._depth == len(self._packers):
            self._packers.append(
                msgpack.Packer(
                    default=self._extension,
                    strict_types=True,
                    buf_size=_VALUE_PACKER_BYTES if self._packers else _BATCH_PACKER_BYTES,
                    unicode_errors=self._unicode_errors,
                )
            )
        packer = self._packers[self._depth]
        self._depth += 1
        packed: bytes = packer.pack(value)
        self._depth -= 1
        return packed

    def _extension(self, value: Any) -> msgpack.ExtType | int:
        encode = _ENCODERS.get(type(value))
        if encode is not None:
            return encode(self, value)
        record = self._registry.of_class(type(value))
        if record is not None:
            try:
                fields = record.row(value)
            except NotAllowed as error:
                raise _refusal(type(value), str(error)) from error
            packed = self.pack_nested([record.name, record.fingerprint, fields])
            return msgpack.ExtType(_RECORD, packed)
        if (raw := encode_scalar(value)) is not None:
            return msgpack.ExtType(_NUMPY, raw)
        if (parts := encode_array(value)) is not None:
            return msgpack.ExtType(_ARRAY, self.pack_nested(parts))
        raise _refusal(type(value), self._registry.why_not(type(value)))


class EncoderPool:
    """Packs values with encoders that it keeps; new buffers cost more than filling them.

    Runs on: any thread.
    """

    def __init__(self, registry: RecordRegistry) -> None:
        self.registry = registry
        self._idle: list[ValueEncoder] = []  # One operation on a list at a time: needs no lock.

    def pack(self, value: Any) -> bytes:
        try:
            encoder = self._idle.pop()
        except IndexError:
            encoder = ValueEncoder(self.registry)
        packed = encoder.pack(value)  # One that raises is in some middle: it is not kept.
        if len(packed) <= _KEPT_BYTES_MAX and not encoder.is_slow:
            self._idle.append(encoder)
        return packed


class ValueDecoder:
    """Turns bytes back into values. Cheap to make, not shared between threads.

    Raises one of `MALFORMED` or `ProtocolError` for bytes that no encoder makes.
    """

    def __init__(self, registry: RecordRegistry) -> None:
        self.registry = registry
        self._depth = 0

    def unpack(self, data: bytes | memoryview) -> Any:
        """Return the value that was packed; msgpack bounds its elements by the size of ``data``."""
        if self._depth >= NESTING_MAX:
            raise ProtocolError(f"a record is nested deeper than {NESTING_MAX} levels")
        self._depth += 1
        value = msgpack.unpackb(
            data,
            ext_hook=self._extension,
            raw=False,
            strict_map_key=False,
            unicode_errors="surrogatepass",
        )
        self._depth -= 1
        return value

    def _extension(self, code: int, data: bytes) -> Any:
        decode = _DECODERS.get(code)
        if decode is None:
            raise ProtocolError(f"unknown extension type {code} in a record")
        return decode(self, data)


def _refusal(cls: type, why: str) -> CannotTravel:
    return CannotTravel(
        f"it is of class {full_name(cls)}: {why}; or turn it into plain values first, or tell how: "
        f"gearpy.register_serializer({cls.__name__}, encode, decode)"
    )


def located(
    error: CannotTravel, value: Any, registry: RecordRegistry, where: str, *, levels: int = 16
) -> CannotTravel:
    """Return the error with the place of the part that cannot travel, written as an expression.

    Args:
        error: what was raised as the value was encoded.
        where: what to call it, such as "a record".
        levels: how deep to look at most: each level is packed once more, and a value may be nested
            without an end.
    """
    if not levels:
        return CannotTravel(error.reason, f"{where}...")
    for piece, part in _parts(value, registry):
        try:
            ValueEncoder(registry).pack(part)
        except CannotTravel as inner:
            where = where.removeprefix("a ") + piece
            return located(inner, part, registry, where, levels=levels - 1)
        except RecursionError:
            break
    return CannotTravel(error.reason, where)


def _parts(value: Any, registry: RecordRegistry) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        keys = [(f", in the key {short_repr(key)}", key) for key in value]
        return [*keys, *((f"[{short_repr(key)}]", part) for key, part in value.items())]
    if type(value) in {list, tuple, deque}:
        return [(f"[{at}]", part) for at, part in enumerate(value)]
    if type(value) in {set, frozenset}:
        return [(f", in the member {short_repr(part)}", part) for part in value]
    record = registry.of_class(type(value))
    if record is None:
        return ()
    try:
        return record.parts(value)
    except NotAllowed:
        return ()


# -- one pair of functions for each extension type -----------------------------------------


def _nested(code: int) -> Callable[[ValueEncoder, Any], msgpack.ExtType]:
    return lambda encoder, value: msgpack.ExtType(code, encoder.pack_nested(list(value)))


def _list_of(decoder: ValueDecoder, data: bytes) -> list[Any]:
    items = decoder.unpack(data)
    if type(items) is not list:
        raise ProtocolError(f"expected a list in a record, got {type(items).__name__}")
    return items


def _members_of(decoder: ValueDecoder, data: bytes) -> list[Any]:
    """Return the members of a set; with the one NaN that others add, as a second is not equal."""
    return [
        math.nan if type(member) is float and math.isnan(member) else member
        for member in _list_of(decoder, data)
    ]


def _encode_zone(zone: dt.tzinfo | None) -> bytes:
    if zone is None:
        return b""
    if type(zone) is dt.timezone:
        return _OFFSET.pack(b"o", zone.utcoffset(None) // dt.timedelta(microseconds=1))
    if type(zone) is zoneinfo.ZoneInfo and zone.key:
        return b"z" + zone.key.encode()
    raise CannotTravel(
        f"it has the time zone {zone!r}: use datetime.timezone or zoneinfo.ZoneInfo",
    )


def _decode_zone(data: bytes) -> dt.tzinfo | None:
    if not data:
        return None
    if data[:1] == b"o":
        return dt.timezone(dt.timedelta(microseconds=_OFFSET.unpack(data)[1]))
    return zoneinfo.ZoneInfo(data[1:].decode())


def _encode_datetime(_: ValueEncoder, v: dt.datetime) -> msgpack.ExtType:
    fields = _DATETIME_FIELDS.pack(
        v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.fold
    )
    return msgpack.ExtType(_DATETIME, fields + _encode_zone(v.tzinfo))


def _decode_datetime(_: ValueDecoder, data: bytes) -> dt.datetime:
    year, month, day, *clock, fold = _DATETIME_FIELDS.unpack_from(data)
    hour, minute, second, micro = clock
    zone = _decode_zone(data[_DATETIME_FIELDS.size :])
    return dt.datetime(year, month, day, hour, minute, second, micro, zone, fold=fold)


def _encode_time(_: ValueEncoder, v: dt.time) -> msgpack.ExtType:
    fields = _TIME_FIELDS.pack(v.hour, v.minute, v.second, v.microsecond, v.fold)
    return msgpack.ExtType(_TIME, fields + _encode_zone(v.tzinfo))


def _decode_time(_: ValueDecoder, data: bytes) -> dt.time:
    hour, minute, second, micro, fold = _TIME_FIELDS.unpack_from(data)
    return dt.time(hour, minute, second, micro, _decode_zone(data[_TIME_FIELDS.size :]), fold=fold)


def _encode_big_int(_: ValueEncoder, value: int) -> msgpack.ExtType:
    size = value.bit_length() // 8 + 1
    return msgpack.ExtType(_BIG_INT, value.to_bytes(size, "little", signed=True))


def _decode_record(decoder: ValueDecoder, data: bytes) -> Any:
    if decoder.registry.is_sealed:
        return msgpack.ExtType(_RECORD, data)  # Encoders take it as it is.
    name, fingerprint, fields = _list_of(decoder, data)
    record = decoder.registry.find(name, fingerprint)
    return record.build([[field] for field in fields], 1)[0]


#: Classes of the standard library: the name on the wire, what an instance is made of, and how.
_STANDARD_KINDS: Final[dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    PosixPath: ("path", str, PosixPath),
    WindowsPath: ("windows path", str, WindowsPath),
    PurePosixPath: ("pure path", str, PurePosixPath),
    PureWindowsPath: ("pure windows path", str, PureWindowsPath),
    Fraction: ("fraction", Fraction.as_integer_ratio, lambda both: Fraction(*both)),
    range: ("range", lambda each: (each.start, each.stop, each.step), lambda all_: range(*all_)),
    deque: ("deque", lambda each: (list(each), each.maxlen), lambda both: deque(*both)),
    OrderedDict: ("ordered dict", lambda each: list(each.items()), OrderedDict),
    Counter: ("counter", dict, Counter),
}
_STANDARD_NAMED: Final = {name: make for name, _, make in _STANDARD_KINDS.values()}


def _encode_standard(encoder: ValueEncoder, value: Any) -> msgpack.ExtType:
    name, take, _ = _STANDARD_KINDS[type(value)]
    return msgpack.ExtType(_STANDARD, encoder.pack_nested([name, take(value)]))


def _decode_standard(decoder: ValueDecoder, data: bytes) -> Any:
    name, content = _list_of(decoder, data)
    return _STANDARD_NAMED[name](content)


_ENCODERS: Final[dict[type, Callable[[ValueEncoder, Any], msgpack.ExtType | int]]] = {
    tuple: _nested(_TUPLE),
    set: _nested(_SET),
    frozenset: _nested(_FROZENSET),
    dt.datetime: _encode_datetime,
    dt.date: lambda _, v: msgpack.ExtType(_DATE, _DATE_FIELDS.pack(v.year, v.month, v.day)),
    dt.time: _encode_time,
    dt.timedelta: lambda _, v: msgpack.ExtType(
        _TIMEDELTA, _TIMEDELTA_FIELDS.pack(v.days, v.seconds, v.microseconds)
    ),
    Decimal: lambda _, value: msgpack.ExtType(_DECIMAL, str(value).encode()),
    LateTime: lambda _, value: int(value),  # Among values it is a number like others.
    uuid.UUID: lambda _, value: msgpack.ExtType(_UUID, value.bytes),
    int: _encode_big_int,
    complex: lambda _, v: msgpack.ExtType(_COMPLEX, _COMPLEX_FIELDS.pack(v.real, v.imag)),
    **dict.fromkeys(_STANDARD_KINDS, _encode_standard),
}
_DECODERS: Final[dict[int, Callable[[ValueDecoder, bytes], Any]]] = {
    _TUPLE: lambda decoder, data: tuple(_list_of(decoder, data)),
    _SET: lambda decoder, data: set(_members_of(decoder, data)),
    _FROZENSET: lambda decoder, data: frozenset(_members_of(decoder, data)),
    _DATETIME: _decode_datetime,
    _DATE: lambda _, data: dt.date(*_DATE_FIELDS.unpack(data)),
    _TIME: _decode_time,
    _TIMEDELTA: lambda _, data: dt.timedelta(*_TIMEDELTA_FIELDS.unpack(data)),
    _DECIMAL: lambda _, data: Decimal(data.decode()),
    _UUID: lambda _, data: uuid.UUID(bytes=data),
    _BIG_INT: lambda _, data: int.from_bytes(data, "little", signed=True),
    _RECORD: _decode_record,
    _NUMPY: lambda _, data: decode_scalar(data),
    _ARRAY: lambda decoder, data: decode_array(_list_of(decoder, data)),
    _COMPLEX: lambda _, data: complex(*_COMPLEX_FIELDS.unpack(data)),
    _STANDARD: _decode_standard,
}
