"""Values with large bytes in them, encoded: the bytes are copied once, when all is put together."""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

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
_LONG_ARRAY: Final = 0xDD
_NONE: Final = b"\xc0"
_SHORT_BYTES: Final = 0xC5
_SHORT_BYTES_MAX: Final = (1 << 16) - 1
#: The head of bytes of each size below 256.
_BYTES_HEADS: Final = [bytes((0xC4, size)) for size in range(256)]


class Scattered:
    """Stands in a value for a list of many small bytes, and has them encoded, but not joined.

    They are joined when they are written: to join them before takes memory for all of them, and six
    times as long, as the memory is new.

    Args:
        items: bytes, or None; nobody changes the list any more.
    """

    __slots__ = ("items", "parts", "size")

    def __init__(self, items: list[bytes | None]) -> None:
        self.items = items
        values: list[bytes] = items  # type: ignore[assignment] # None is an error below.
        try:
            sizes = [*map(len, values)]
            heads = [*map(_BYTES_HEADS.__getitem__, sizes)]
            self.size = sum(sizes) + 2 * len(heads)
        except (TypeError, IndexError):  # Some are None, or not small.
            heads = [_NONE if each is None else _bytes_head(len(each)) for each in items]
            values = [each or b"" for each in items]
            self.size = sum(map(len, heads)) + sum(map(len, values))
        self.parts = [b""] * (2 * len(items))
        self.parts[::2], self.parts[1::2] = heads, values

    def __len__(self) -> int:
        return self.size

    def joined(self) -> bytes:
        """Return the bytes, without the head of the list."""
        return b"".join(self.parts)


def _bytes_head(size: int) -> bytes:
    if size < len(_BYTES_HEADS):
        return _BYTES_HEADS[size]
    short = size <= _SHORT_BYTES_MAX
    return _COUNT_HEAD.pack(_SHORT_BYTES, size) if short else _BYTES_HEAD.pack(_BYTES, size)


def _list_head(count: int) -> bytes:
    if count < _SHORT:
        return bytes((_SHORT_ARRAY | count,))
    if count <= _LIST_ENTRIES_MAX:
        return _COUNT_HEAD.pack(_ARRAY, count)
    return _BYTES_HEAD.pack(_LONG_ARRAY, count)


_Piece: TypeAlias = bytes | Scattered


class Pieces:
    """An encoded value in pieces; in another value it stands for its bytes."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[_Piece]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))

    def __len__(self) -> int:
        return self.size

    def chunks(self) -> Iterator[bytes]:
        for piece in self.pieces:
            yield piece if isinstance(piece, bytes) else piece.joined()

    def joined(self) -> bytes:
        return b"".join(self.chunks())


#: An encoded value.
Encoded: TypeAlias = bytes | Pieces


def chunks_of(encoded: Encoded) -> Iterable[bytes]:
    return encoded.chunks() if isinstance(encoded, Pieces) else (encoded,)


def joined(encoded: Encoded) -> bytes:
    return encoded.joined() if isinstance(encoded, Pieces) else encoded


def encode_pieces(value: Any) -> Encoded:
    """Return the bytes of `encode_value`; in pieces if there are large ones in the value."""
    try:
        if _has_large(value, _DEPTH_MAX):
            return Pieces(_packed(value, ValueEncoder(DEFAULT_REGISTRY).pack, _DEPTH_MAX))
        return encode_value(value)
    except CannotTravel:
        return encode_value(_whole(value))  # Pieces were not looked for; or it tells which part.


def _has_large(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind is bytes:
        return len(value) >= _LARGE
    if kind is Pieces or kind is Scattered:
        return True
    if not depth or kind not in _CONTAINERS:
        return False
    if len(value) <= _ENTRIES_MAX:
        return any(
            _has_large(part, depth - 1)
            for part in (value.values() if type(value) is dict else value)
        )
    return kind is list and len(value) <= _LIST_ENTRIES_MAX and _has_large(value[0], depth - 1)


def _packed(value: Any, pack: Callable[[Any], bytes], depth: int) -> list[_Piece]:
    if not _has_large(value, depth):
        return [pack(value)]
    if type(value) in _CONTAINERS:
        is_map, count = type(value) is dict, len(value)
        if count < _SHORT:
            head = bytes(((_SHORT_MAP if is_map else _SHORT_ARRAY) | count,))
        else:
            head = _COUNT_HEAD.pack(_MAP if is_map else _ARRAY, count)
        pieces: list[_Piece] = [head]
        for key, part in value.items() if is_map else enumerate(value):
            if is_map:
                pieces.append(pack(key))
            pieces += _packed(part, pack, depth - 1)
        return pieces
    if type(value) is Scattered:
        return [_list_head(len(value.items)), value]
    if len(value) > _BYTES_MAX:
        raise CannotTravel(f"{len(value)} bytes are too many in one piece")
    held = value.pieces if type(value) is Pieces else [value]
    return [_BYTES_HEAD.pack(_BYTES, len(value)), *held]


def _whole(value: Any) -> Any:
    """Return the same value with bytes in the place of pieces."""
    if type(value) is Pieces:
        return value.joined()
    if type(value) is Scattered:
        return value.items
    if type(value) is dict:
        return {key: _whole(part) for key, part in value.items()}
    return [_whole(part) for part in value] if type(value) is list else value
