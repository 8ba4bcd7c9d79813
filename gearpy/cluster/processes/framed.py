"""Bodies behind their length, as they go through pipes and sockets of this machine."""

import struct
from collections.abc import Callable
from typing import Final

from gearpy.errors import ProtocolError

_LENGTH: Final = struct.Struct(">I")
_BYTES_MAX: Final = 0xFFFF_FFFF


def framed(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def read_framed(read: Callable[[int], bytes], bytes_max: int = _BYTES_MAX) -> bytes:
    """Return the next body.

    Raises:
        EOFError: the other side has ended before it.
        ProtocolError: it is too large.
    """
    (length,) = _LENGTH.unpack(_read_all(read, _LENGTH.size))
    if length > bytes_max:
        raise ProtocolError(f"{length} bytes in one message, at most {bytes_max}")
    return _read_all(read, length)


def _read_all(read: Callable[[int], bytes], length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        more = read(length - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)
