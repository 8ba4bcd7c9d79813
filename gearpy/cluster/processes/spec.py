"""The instructions to a process that is started: one value on its standard input."""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from gearpy.errors import ProtocolError

T = TypeVar("T")

_LENGTH: Final = struct.Struct(">I")
_BYTES_MAX: Final = 8 << 20  # A launch message fits a control frame, which is smaller.


def encoded_spec(spec: Any) -> bytes:
    body = msgspec.msgpack.encode(spec)
    return _LENGTH.pack(len(body)) + body


def read_spec(read: Callable[[int], bytes], kind: type[T]) -> T:
    """Read a spec with a function that returns up to so many bytes, and none at the end."""
    (length,) = _LENGTH.unpack(_read_all(read, _LENGTH.size))
    if length > _BYTES_MAX:
        raise ProtocolError(f"launch spec of {length} bytes, at most {_BYTES_MAX}")
    try:
        return msgspec.msgpack.decode(_read_all(read, length), type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError("standard input holds no launch spec") from error


def _read_all(read: Callable[[int], bytes], length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = read(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data
