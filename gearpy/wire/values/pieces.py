"""Values with large bytes in them, encoded: the bytes are copied once, when all is put together."""

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from gearpy.errors import CannotTravel
from gearpy.wire.values.extensions import ValueEncoder
from gearpy.wire.values.payload import encode_value
from gearpy.wire.values.records import DEFAULT_REGISTRY

#: Bytes from this size on are left where they are; msgpack gives them a head of one form.
_LARGE: Final = 1 << 16
_BYTES_MAX: Final = (1 << 32) - 1
#: Large bytes are looked for in containers up to this size, and no deeper; in a list of more, which
#: has a head of 16 bits, if it begins with them.
_ENTRIES_MAX: Final = 64
_LIST_ENTRIES_MAX: Final = (1 << 16) - 1
_DEPTH_MAX: Final = 8
_CONTAINERS: Final = frozenset({dict, list})
#: Heads of msgpack: bytes; maps and arrays of less than 16 entries, and of less than 65,536.
_BYTES_HEAD: Final = struct.Struct(">BI")
_COUNT_HEAD: Final = struct.Struct(">BH")
_BYTES: Final = 0xC6
_SHORT_MAP: Final = 0x80
_SHORT_ARRAY: Final = 0x90
_SHORT: Final = 16
_MAP: Final = 0xDE
_ARRAY: Final = 0xDC


class Pieces:
    """An encoded value in pieces; in another value it stands for its bytes.

    Args:
        pieces: bytes, some of them large.
    """

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))

    def __len__(self) -> int:
        return self.size

    def joined(self) -> bytes:
        """Return the bytes."""
        return b"".join(self.pieces)


def encode_pieces(value: Any) -> bytes | Pieces:
    """Return the bytes of `encode_value`; in pieces if there are large ones in the value.

    Raises:
        CannotTravel: a part of the value cannot.
    """
    if not _has_large(value, _DEPTH_MAX):
        return encode_value(value)
    try:
        return Pieces(_packed(value, ValueEncoder(DEFAULT_REGISTRY).pack, _DEPTH_MAX))
    except CannotTravel:
        return encode_value(_whole(value))  # It tells which part.


def _has_large(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind is bytes:
        return len(value) >= _LARGE
    if kind is Pieces:
        return True
    if not depth or kind not in _CONTAINERS:
        return False
    if len(value) <= _ENTRIES_MAX:
        return any(_has_large(part, depth - 1) for part in _parts(value))
    return kind is list and len(value) <= _LIST_ENTRIES_MAX and _has_large(value[0], depth - 1)


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value


def _packed(value: Any, pack: Callable[[Any], bytes], depth: int) -> list[bytes]:
    if not _has_large(value, depth):
        return [pack(value)]
    if type(value) in _CONTAINERS:
        return _packed_container(value, pack, depth)
    if len(value) > _BYTES_MAX:
        raise CannotTravel(f"{len(value)} bytes are too many in one piece")
    pieces = value.pieces if type(value) is Pieces else [value]
    return [_BYTES_HEAD.pack(_BYTES, len(value)), *pieces]


def _packed_container(value: Any, pack: Callable[[Any], bytes], depth: int) -> list[bytes]:
    is_map, count = type(value) is dict, len(value)
    if count < _SHORT:
        pieces = [bytes(((_SHORT_MAP if is_map else _SHORT_ARRAY) | count,))]
    else:
        pieces = [_COUNT_HEAD.pack(_MAP if is_map else _ARRAY, count)]
    for key, part in value.items() if is_map else enumerate(value):
        if is_map:
            pieces.append(pack(key))
        pieces += _packed(part, pack, depth - 1)
    return pieces


def _whole(value: Any) -> Any:
    """Return the same value with bytes in the place of pieces."""
    if type(value) is Pieces:
        return value.joined()
    if type(value) is dict:
        return {key: _whole(part) for key, part in value.items()}
    return [_whole(part) for part in value] if type(value) is list else value
