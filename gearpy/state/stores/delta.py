"""Changes of a store between two epochs, as sections of a checkpoint.

The task's thread only hands the changes over. All the rest is done by the snapshot writer, on
another thread, a little at a time, as both want the interpreter.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from types import NoneType
from typing import Any, Final, TypeAlias, cast

import msgpack

from gearpy.state.encoding.coders import atom_packer, atoms_packer
from gearpy.state.encoding.keys import group_of
from gearpy.state.stores.cells import (
    Cells,
    Stamped,
    Tables,
    head_of,
    is_collection,
    pack_stored,
)
from gearpy.state.stores.many import CHUNK, CellChunk, groups_of_encoded, sections_of_cell_chunks
from gearpy.state.stores.store import Section, StateDelta, Stored

#: A key group, a cell in it, and its value; None was deleted.
GroupCell: TypeAlias = tuple[int, bytes, Stored | None]

_Group: TypeAlias = list[tuple[bytes, Stored | None]]

#: What is stored as it is.
_PACKED: Final = frozenset({bytes, NoneType})
#: Cells, and bytes of values, that are sorted into groups at a time. More make fewer sections.
_PORTION_CELLS: Final = 300_000
_PORTION_BYTES: Final = 256 << 20
#: A section with more is ended.
_SECTION_BYTES: Final = 1 << 20
#: Items of a dict or list that are freed in one step, which is over in a ms.
_FREED_AT_ONCE: Final = 4096


class Reads:
    """Tells whether the task is in a read for which it has let go of the interpreter.

    It would get it back after the switch interval of 5 ms, at each read. So who works beside it
    looks here often, and lets it go on.
    """

    __slots__ = ("is_waiting",)

    def __init__(self) -> None:
        self.is_waiting = False

    def let_go_on(self) -> None:
        time.sleep(0)


class TablesDelta:
    """Changed cells of a store that keeps its tables in memory; see `StateDelta`."""

    def __init__(self, changes: Tables) -> None:
        self._changes = changes
        self._is_released = False

    def sections(self) -> Iterator[Section]:
        assert not self._is_released, "a released delta is not asked for again"
        return sections_of_cell_chunks(_chunks(self._changes))

    def release(self) -> None:
        self._is_released = True
        while self._changes:
            drain(self._changes.popitem()[1])


class _Joined:
    """Joins the changes of several stores of a task; see `StateDelta`."""

    def __init__(self, deltas: Sequence[StateDelta]) -> None:
        self._deltas = deltas

    def sections(self) -> Iterator[Section]:
        for delta in self._deltas:
            yield from delta.sections()

    def release(self) -> None:
        for delta in self._deltas:
            delta.release()


def joined(deltas: Iterable[StateDelta | None]) -> StateDelta | None:
    found = [delta for delta in deltas if delta is not None]
    return _Joined(found) if len(found) > 1 else next(iter(found), None)


def sections_of(changes: Tables, reads: Reads) -> Iterator[Section]:
    return sections_of_cells(_cells(changes), reads)


def sections_of_cells(cells_by_group: Iterable[GroupCell], reads: Reads) -> Iterator[Section]:
    """Yield cells, which come with their groups and values, group by group."""
    pack = msgpack.Packer(autoreset=True, use_bin_type=True).pack
    pack_one = atom_packer()
    left = iter(cells_by_group)
    while True:
        groups, size = defaultdict[int, _Group](list), 0
        for count, (group, cell, value) in enumerate(left, 1):
            groups[group].append((cell, value))
            if type(value) is bytes:
                size += len(value)
            if reads.is_waiting:
                reads.let_go_on()
            if count >= _PORTION_CELLS or size >= _PORTION_BYTES:
                break
        if not groups:
            return
        for group in sorted(groups):
            body, size = dict[bytes, bytes | None](), 0
            for cell, value in groups.pop(group):  # Each is freed when it is done.
                packed = body[cell] = _packed_one(value, pack_one)
                size += len(cell) + (len(packed) if packed else 0)
                if reads.is_waiting:
                    reads.let_go_on()
                if size >= _SECTION_BYTES:
                    yield Section(group, pack(body))
                    body, size = {}, 0
            if body:
                yield Section(group, pack(body))


def drain(items: dict[Any, Any] | list[Any]) -> None:
    """Empty a collection that nobody else uses any more, some items at a time.

    Python frees a large one in one go, during which nothing else runs.
    """
    while items:
        if isinstance(items, list):
            del items[-_FREED_AT_ONCE:]
        else:  # Each call runs in C; its result is forgotten at once.
            deque(map(dict.popitem, repeat(items, min(_FREED_AT_ONCE, len(items)))), maxlen=0)


def _cells(changes: Tables) -> Iterator[GroupCell]:
    for table, cells in changes.items():
        if is_collection(table):
            yield from _entry_cells(table, cells)
        else:
            for key, value in cells.items():
                yield group_of(key), table + key, value


def _chunks(changes: Tables) -> Iterator[CellChunk]:
    pack_one = atom_packer()
    for table, cells in changes.items():
        if is_collection(table):
            left = _entry_cells(table, cells)
            while entries := list(islice(left, CHUNK)):
                groups, own, stored = zip(*entries, strict=True)
                yield CellChunk(groups, own, _packed(stored, pack_one))
            continue
        keys, values = iter(cells), iter(cells.values())
        while some := list(islice(keys, CHUNK)):
            names = list(map(table.__add__, some))
            packed = _packed(list(islice(values, CHUNK)), pack_one)
            yield CellChunk(groups_of_encoded(some), names, packed)


def _packed(
    values: Sequence[Stored | None], pack_one: Callable[[Stored], bytes]
) -> Sequence[bytes | None]:
    kinds = set(map(type, values))
    if kinds <= _PACKED:
        return cast("Sequence[bytes | None]", values)
    if Stamped not in kinds and not kinds & _PACKED:
        return atoms_packer()(values)
    return [_packed_one(value, pack_one) for value in values]


def _packed_one(value: Stored | None, pack_one: Callable[[Stored], bytes]) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    return pack_stored(value) if type(value) is Stamped else pack_one(value)


def _entry_cells(table: bytes, cells: Cells) -> Iterator[GroupCell]:
    for key, entries in cells.items():
        group, head = group_of(key), head_of(table, key)
        for entry, value in entries.items():
            yield group, head + entry, value
