"""The bytes of keyed state: names of tables, cells in them, and the sections of a checkpoint.

A *tag* names a state of a task; with what it holds, with which coder, and whether that expires, it
makes the first bytes of all its cells. A *table* is a tag in one namespace. A cell is::

    u8 size | tag | u16 size | namespace | key                        a value
    u8 size | tag | u16 size | namespace | size | key | entry         one entry of a collection

So all cells of a table, and all entries of one key in it, share their first bytes, and a cell
tells what it is without anything else.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

import msgpack

from gearpy.errors import ConfigError, ProtocolError
from gearpy.state.encoding.coders import pack_atom
from gearpy.state.stores.store import Section, Stored

#: Cells of a table by key: stored values, or maps of entries to them. None was deleted.
Cells: TypeAlias = dict[bytes, Any]
#: Tables by name.
Tables: TypeAlias = dict[bytes, Cells]

_KINDS: Final = {
    "v": "value",
    "r": "reducing",
    "c": "combining",
    "l": "list",
    "s": "set",
    "m": "map",
    "t": "timers",
    "b": "bulk",
}
_LETTERS: Final = {name: letter for letter, name in _KINDS.items()}
_COLLECTIONS: Final = frozenset(b"lsmtLSMT")
# One letter for each of gearpy's coders; names of others are longer.
_SHORT: Final = {"msgpack": "p", "int": "i", "float": "f", "str": "s", "bytes": "b", "json": "j"}
_LONG: Final = {letter: name for name, letter in _SHORT.items()}

# A table must fit what a database takes as a key, see `gearpy.state.stores.disk`.
_TAG_BYTES_MAX: Final = 190
_NAMESPACE_BYTES_MAX: Final = 255
_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_LONG_KEY: Final = 0xFF  # In place of the size of a key: it follows in 32 bits.
_EXPIRES: Final = Struct(">q")


class Tag(NamedTuple):
    """A state of a task: its name, below the names of scopes, and how it is kept."""

    path: tuple[str, ...]
    kind: str
    coder: str
    expires: bool = False

    @property
    def name(self) -> str:
        return "/".join(self.path)

    def __str__(self) -> str:
        ttl = ", which expires" if self.expires else ""
        return f"a {self.kind} with coder {self.coder!r}{ttl}"

    def encode(self) -> bytes:
        """Return the first bytes of all its cells."""
        if not all(self.path) or any("\0" in name for name in self.path):
            raise ConfigError(f"a state cannot have the name {self.name!r}: choose another one")
        letter = _LETTERS[self.kind]
        words = (letter.upper() if self.expires else letter) + _SHORT.get(self.coder, self.coder)
        data = "\0".join((words, *self.path)).encode("utf-8", "surrogatepass")
        if len(data) > _TAG_BYTES_MAX:
            raise ConfigError(
                f"state {self.name!r}: its name is {len(data) - _TAG_BYTES_MAX} bytes too long"
            )
        return bytes((len(data),)) + data

    @classmethod
    def decode(cls, data: bytes) -> "Tag":
        try:
            text = data[1 : 1 + data[0]].decode("utf-8", "surrogatepass")
            words, *path = text.split("\0")
            kind, coder = _KINDS[words[0].lower()], words[1:]
            return cls(tuple(path), kind, _LONG.get(coder, coder), words[0].isupper())
        except (LookupError, ValueError) as error:
            raise ProtocolError(f"malformed cell {data[:40]!r}: {error}") from error


# -- cells ---------------------------------------------------------------------------------


def namespace_part(namespace: bytes) -> bytes:
    if len(namespace) > _NAMESPACE_BYTES_MAX:
        raise ConfigError(
            f"a namespace has {len(namespace)} bytes, at most {_NAMESPACE_BYTES_MAX} are taken: "
            "choose a shorter one"
        )
    return _U16.pack(len(namespace)) + namespace


def is_collection(table: bytes) -> bool:
    return table[1] in _COLLECTIONS


def is_list(table: bytes) -> bool:
    return table[1] in b"lL"


def order_of(table: bytes) -> Callable[[bytes], Any]:
    return (lambda key: (len(key), key)) if is_collection(table) else bytes


def head_of(table: bytes, key: bytes) -> bytes:
    """Return the common prefix of the cells of all entries of a key."""
    size = len(key)
    if size < _LONG_KEY:
        return b"%b%c%b" % (table, size, key)
    return b"%b%c%b%b" % (table, _LONG_KEY, _U32.pack(size), key)


def entry_cell(table: bytes, key: bytes, entry: bytes) -> bytes:
    return head_of(table, key) + entry


def table_of(cell: bytes) -> bytes:
    try:
        at = 1 + cell[0]
        end = at + _U16.size + (cell[at] << 8 | cell[at + 1])
    except IndexError:
        end = len(cell) + 1
    if end > len(cell):
        raise ProtocolError(f"malformed cell {cell[:40]!r}: it is too short")
    return cell[:end]


def split_head(rest: bytes) -> tuple[bytes, bytes]:
    """Split the part of an entry's cell behind its table into key and entry."""
    start, size = 1, rest[0] if rest else _LONG_KEY
    if size == _LONG_KEY:
        start += _U32.size
        size = _U32.unpack(rest[1:start])[0] if len(rest) >= start else len(rest)
    if start + size > len(rest):
        raise ProtocolError(f"malformed cell: its key has {len(rest) - start} bytes of {size}")
    return rest[start : start + size], rest[start + size :]


def split_cell(cell: bytes) -> tuple[bytes, bytes, bytes | None]:
    table = table_of(cell)
    rest = cell[len(table) :]
    return (table, *split_head(rest)) if is_collection(table) else (table, rest, None)


def successor(prefix: bytes) -> bytes:
    """Return the smallest bytes that are larger than all that begin with ``prefix``."""
    stripped = prefix.rstrip(b"\xff")
    assert stripped, "the first byte of a cell is smaller"
    return stripped[:-1] + bytes((stripped[-1] + 1,))


# -- values --------------------------------------------------------------------------------


class Stamped(NamedTuple):
    """A stored value and the time in ms at which it expires."""

    expires_ms: int
    value: Stored


def pack_stored(value: Stored) -> bytes:
    if type(value) is bytes:
        return value
    if type(value) is Stamped:
        return _EXPIRES.pack(value[0]) + pack_stored(value[1])
    return pack_atom(value)


def expires_ms_of(value: Stored) -> int:
    """Return when a stored value of a tag that expires does so."""
    if type(value) is not Stamped and len(value) < _EXPIRES.size:
        raise ProtocolError("malformed value of a state that expires")
    expires_ms: int = value[0] if type(value) is Stamped else _EXPIRES.unpack_from(value)[0]
    return expires_ms


def value_of(value: Stored) -> Stored:
    """Return a stored value of a tag that expires without its time."""
    return value[1] if type(value) is Stamped else value[_EXPIRES.size :]


# -- sections ------------------------------------------------------------------------------


class Run(NamedTuple):
    """Cells of one table that are next to each other in a section; all begin with its name."""

    table: bytes
    cells: Sequence[bytes]
    values: Sequence[bytes | None]

    @property
    def rests(self) -> list[bytes]:
        """The cells without the name of the table, made anew."""
        return list(map(itemgetter(slice(len(self.table), None)), self.cells))


def runs_of(section: Section) -> Iterator[Run]:
    try:
        cells = msgpack.unpackb(section.body, raw=False, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise ProtocolError(f"malformed section of keyed state: {error}") from error
    if type(cells) is not dict or not set(map(type, cells)) <= {bytes}:
        raise ProtocolError("a section of keyed state is no map of cells")
    if not set(map(type, cells.values())) <= {bytes, type(None)}:
        raise ProtocolError("a section of keyed state has values that are no bytes")
    return runs_in(cells)


def runs_in(cells: Mapping[bytes, bytes | None]) -> Iterator[Run]:
    """Yield cells in their order, each table once."""
    order = sorted(cells)
    values = list(map(cells.__getitem__, order))
    start = 0
    while start < len(order):
        table = table_of(order[start])
        # Nothing is looked at cell by cell: there may be millions to load.
        end = bisect_left(order, successor(table), start)
        yield Run(table, order[start:end], values[start:end])
        start = end
