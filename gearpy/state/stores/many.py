"""Many keys and values at once, as cells and as sections of a checkpoint.

The same bytes and key groups as key by key, at a third of the cost: for most keys and values each
step is one call for a whole chunk of them. The writer of an epoch wants the interpreter that the
task works with, so what is saved here is saved there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from gearpy.core.base.stable_hash import (
    GOLDEN,
    HALF,
    KEY_GROUPS,
    TUPLE,
    key_group,
    stable_hash,
)
from gearpy.state.encoding.coders import MSGPACK, atom_packer, atoms_packer, pack_atom
from gearpy.state.encoding.keys import TASK_GROUP, decode_key, encode_key, group_of, parts_of
from gearpy.state.stores.store import Section, Stored

if TYPE_CHECKING:
    from gearpy.state.stores.tables import TableChunk

#: Keys that are worked on in one step: it costs little for each, and is over in a ms.
CHUNK: Final = 2048
#: Begins what is stored where a key would not be given back as it was: a pair of it and its value.
#: msgpack begins no value with the first byte.
WITH_KEY: Final = b"\xc1\x92"

#: Keys of these types, and tuples of them, are given back exactly as they were; of others it is
#: stored what they were.
_EXACT: Final = frozenset({str, int, bytes, type(None)})

# Cells, and bytes of values, that are encoded at a time.
_PORTION_CELLS: Final = 1 << 16
_PORTION_BYTES: Final = 4 << 20
# Bytes of a group that make a section, and of all groups that make one of each.
_SECTION_BYTES: Final = 1 << 20
_WAITING_BYTES: Final = 128 << 20

# Only the bits of a hash that make its group are needed. They come from these of
# the factor; so numbers are small.
_FACTOR: Final = GOLDEN & (1 << HALF + KEY_GROUPS.bit_length() - 1) - 1
_MASK: Final = KEY_GROUPS - 1
_WORD: Final = (1 << 64) - 1

_HALF: Final = 1 << 63
_INT: Final = Struct(">BQ")
_INT_TAG: Final = ord("i")
_INT_PART: Final = Struct(">IBQ")  # Of a tuple, with its length.
_TUPLE_TAG: Final = b"t"
_HASH: Final = Struct("<q")
_WORD_OF: Final = itemgetter(1)
# Parts of a key that was made into bytes.
_TAG_OF: Final = itemgetter(slice(1))
_TEXT_OF: Final = itemgetter(slice(1, None))
_ENCODER: Final = msgspec.msgpack.Encoder()
_MAP: Final = Struct(">BI")
_MAP_TAG: Final = 0xDF  # Begins a map in msgpack, however large.
# Sizes of lists up to which the header has so many bytes.
_HEADERS: Final = ((15, 1), ((1 << 16) - 1, 3), ((1 << 32) - 1, 5))

_Cell: TypeAlias = tuple[bytes, bytes | None]


class Chunk(NamedTuple):
    """Some keys of a table with their values; bytes are encoded already.

    ``values`` is None if the keys have none any more.
    """

    table: bytes
    keys: Sequence[Any]
    values: Sequence[Stored] | None


class CellChunk(NamedTuple):
    """Some cells with the groups that they belong to, and their values; None was deleted.

    Without ``groups`` they belong to the task.
    """

    groups: Sequence[int] | None
    cells: Sequence[bytes]
    values: Sequence[bytes | None]


def sections_of_chunks(
    chunks: Iterable["Chunk | TableChunk"], *, is_keyed: bool
) -> Iterator[Section]:
    """Yield changed cells group by group; the last change of a cell counts.

    Args:
        chunks: up to `CHUNK` keys each.
        is_keyed: cells belong to the groups of their keys; else to the task.
    """
    return sections_of_cell_chunks(
        CellChunk(
            groups_of_keys(chunk.keys) if is_keyed else None,
            cells_of(chunk.table, chunk.keys),
            _packed(chunk.keys, chunk.values),
        )
        if isinstance(chunk, Chunk)
        else chunk._replace(is_keyed=is_keyed)
        for chunk in chunks
    )


def sections_of_cell_chunks(chunks: Iterable["CellChunk | TableChunk"]) -> Iterator[Section]:
    """Yield cells group by group; the last change of a cell counts."""
    groups, count, size = _Groups(), 0, 0
    for chunk in chunks:
        if not isinstance(chunk, CellChunk):
            yield from groups.encoded()  # Those before it.
            yield from groups.with_table(chunk)
            continue
        groups_of_them, cells, packed = chunk
        groups.add(groups_of_them, zip(cells, packed, strict=True))
        count += len(cells)
        size += sum(map(len, filter(None, packed)))
        if count >= _PORTION_CELLS or size >= _PORTION_BYTES:
            yield from groups.encoded()
            count = size = 0
    yield from groups.encoded()
    yield from groups.sections()


def cells_of(table: bytes, keys: Sequence[Any]) -> list[bytes]:
    kinds = set(map(type, keys))
    if kinds == {str}:
        return list(map((table + b"s").__add__, _texts(keys)))
    if kinds == {int} and min(keys) >= -_HALF and max(keys) < _HALF:
        return [table + _INT.pack(_INT_TAG, key + _HALF) for key in keys]
    return [table + encode_key(key) for key in keys]


def groups_of_keys(keys: Sequence[Any]) -> list[int]:
    words = _words(keys)
    if words is not None:
        return _groups_of_words(words)
    if set(map(type, keys)) == {tuple} and len(set(map(len, keys))) == 1 and keys[0]:
        return _groups_of_tuples([_hashes(_words(each), each) for each in zip(*keys, strict=True)])
    return list(map(key_group, keys))


def groups_of_encoded(keys: Sequence[bytes]) -> list[int]:
    words = _encoded_words(keys)
    if words is not None:
        return _groups_of_words(words)
    if set(map(_TAG_OF, keys)) == {_TUPLE_TAG} and (found := _hashes_of_parts(keys)):
        return _groups_of_tuples(found)
    return list(map(group_of, keys))


def _words(keys: Sequence[Any]) -> Iterable[bytes] | None:
    """Return the bytes whose checksum tells a hash; None if these are of several kinds."""
    kinds = set(map(type, keys))
    if kinds == {str}:
        return _texts(keys)
    if kinds == {int}:
        return map(_HASH.pack, map(hash, keys))
    return keys if kinds == {bytes} else None


def _encoded_words(keys: Sequence[bytes]) -> Iterable[bytes] | None:
    tags = set(map(_TAG_OF, keys))
    if tags == {b"s"}:
        return map(_TEXT_OF, keys)
    if tags == {b"i"}:
        return _words_of_numbers(map(_WORD_OF, map(_INT.unpack, keys)))
    return None


def _words_of_numbers(encoded: Iterable[int]) -> Iterable[bytes]:
    return map(_HASH.pack, [hash(number - _HALF) for number in encoded])


def _hashes_of_parts(keys: Sequence[bytes]) -> list[list[int]] | None:
    """Return the hashes of each part of encoded tuples; None if these are of several sizes."""
    sizes = set(map(len, keys))
    numbers, rest = divmod(max(sizes) - 1, _INT_PART.size)
    if len(sizes) == 1 and not rest:  # All parts may be numbers.
        rows = Struct(">x" + numbers * "IBQ").iter_unpack(b"".join(keys))
        fields = list(zip(*rows, strict=True))
        if {*zip(*fields[0::3], strict=True)} == {(_INT.size,) * numbers} and {
            *zip(*fields[1::3], strict=True)
        } == {(_INT_TAG,) * numbers}:
            return [_hashes(_words_of_numbers(each), ()) for each in fields[2::3]]
    parts = [list(parts_of(key[1:])) for key in keys]
    if len(set(map(len, parts))) > 1:
        return None
    columns = list(zip(*parts, strict=True))
    words = map(_encoded_words, columns)
    return [
        _hashes(each, () if each is not None else list(map(decode_key, column)))
        for each, column in zip(words, columns, strict=True)
    ]


# See `gearpy.core.base.stable_hash` for all of these.


def _groups_of_words(words: Iterable[bytes]) -> list[int]:
    return [((spread := crc * _FACTOR) ^ spread >> HALF) & _MASK for crc in map(crc32, words)]


def _hashes(words: Iterable[bytes] | None, values: Iterable[Any]) -> list[int]:
    if words is None:
        return list(map(stable_hash, values))
    return [((spread := crc * GOLDEN) ^ spread >> HALF) & _WORD for crc in map(crc32, words)]


def _groups_of_tuples(parts: Sequence[Sequence[int]]) -> list[int]:
    """Return the groups of tuples, given the hashes of each of their parts."""
    states = [TUPLE] * len(parts[0])
    for hashes in parts:
        states = [
            ((spread := (state ^ each) * GOLDEN) ^ spread >> HALF) + 1 & _WORD
            for state, each in zip(states, hashes, strict=True)
        ]
    return [((spread := state * _FACTOR) ^ spread >> HALF) & _MASK for state in states]


def _texts(keys: Sequence[str]) -> list[bytes]:
    joined = "\n".join(keys).encode("utf-8", "surrogatepass").split(b"\n")
    if len(joined) == len(keys):  # No key has such a character.
        return joined
    return [key.encode("utf-8", "surrogatepass") for key in keys]


def _packed(keys: Sequence[Any], values: Sequence[Stored] | None) -> Sequence[bytes | None]:
    if values is None:
        return [None] * len(keys)
    kinds, packed = set(map(type, values)), values
    if kinds == {tuple}:  # The faster ways would find that out for each.
        packed = list(map(pack_atom, values))
    elif bytes not in kinds:
        packed = atoms_packer()(values)
    elif len(kinds) > 1:
        pack = atom_packer()
        packed = [value if type(value) is bytes else pack(value) for value in values]
    if set(map(type, keys)) <= _EXACT:
        return packed
    pairs = zip(keys, packed, strict=True)
    return [
        value if _is_exact(key) else WITH_KEY + MSGPACK.encode(key) + value for key, value in pairs
    ]


def _is_exact(key: Any) -> bool:
    kind = type(key)
    return kind in _EXACT or (kind is tuple and _EXACT.issuperset(map(type, key)))


class _Groups:
    """Cells by group: encoded as soon as there are some, and put together to sections later.

    Values encoded soon are still in the processor's cache.
    """

    def __init__(self) -> None:
        self._flat = defaultdict[int, list[Any]](list)  # Cells and values in turns.
        self._bodies = defaultdict[int, _Body](_Body)
        self._size = 0

    def add(self, groups: Iterable[int] | None, cells: Iterable[_Cell]) -> None:
        if groups is None:
            self._flat[TASK_GROUP] += chain.from_iterable(cells)
            return
        flat = self._flat
        for group, cell in zip(groups, cells, strict=True):
            flat[group] += cell

    def encoded(self) -> Iterator[Section]:
        """Encode added cells; yield sections that are large enough."""
        for group in sorted(self._flat):
            flat = self._flat.pop(group)
            data = _ENCODER.encode(flat)
            # All but the header is the same in a list and in a map.
            header = next(size for most, size in _HEADERS if len(flat) <= most)
            yield from self._put(group, len(flat) // 2, memoryview(data)[header:])
        if self._size >= _WAITING_BYTES:
            yield from self.sections()

    def with_table(self, chunk: "TableChunk") -> Iterator[Section]:
        """Add cells that are encoded; yield sections that are large enough."""
        for group, count, data in chunk.by_group():
            yield from self._put(group, count, data)
        if self._size >= _WAITING_BYTES:
            yield from self.sections()

    def _put(self, group: int, count: int, data: memoryview) -> Iterator[Section]:
        body = self._bodies[group]
        body.pieces.append(data)
        body.count += count
        body.size += len(data)
        self._size += len(data)
        if body.size >= _SECTION_BYTES:
            yield self._section(group)

    def sections(self) -> Iterator[Section]:
        for group in sorted(self._bodies):
            yield self._section(group)

    def _section(self, group: int) -> Section:
        body = self._bodies.pop(group)
        self._size -= body.size
        return Section(group, b"".join((_MAP.pack(_MAP_TAG, body.count), *body.pieces)))


class _Body:
    __slots__ = ("count", "pieces", "size")

    def __init__(self) -> None:
        self.size = self.count = 0
        self.pieces: list[memoryview] = []
