"""Cells as columns straight from the bytes of sections, without a Python object for each of them.

A section is a map of msgpack: only a cell tells where the next one begins. But all cells of a table
begin with its name. It is looked for everywhere at once, and then it is checked that the places
follow each other without a gap, from the first byte of a section to its last. If so they are its
cells, whatever else the bytes of keys and values look like.

What is not taken here is for `gearpy.state.stores.cells.runs_in`.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.errors import ProtocolError
from gearpy.state.stores.cells import is_collection, table_of
from gearpy.storage.snapshot_files import Body

#: A key group and the bodies of its sections, the oldest first.
Group: TypeAlias = tuple[int, Sequence[Body]]

#: Bytes that are looked at together: worth a step, and they stay near the processor.
_PORTION_BYTES: Final = 1 << 19
#: Arrow finds what is in more of them only with larger offsets.
_BYTES_MAX: Final = (1 << 31) - 1
_KEPT_BYTES: Final = 1 << 24
_FIX_MAP: Final = 0x80
_MAP_SIZES: Final = {0xDE: 2, 0xDF: 4}
_NIL: Final = 0xC0
_BIN_8: Final = 0xC4
_BIN_16: Final = 0xC5
#: Zeros behind the bytes, as what is behind a name is looked at before it is known to be a cell.
_MARGIN: Final = bytes(512)
_WORD: Final = 8  # Bytes of keys that are compared at once.
_WORDS_MAX: Final = 8
_FLOAT: Final = 0xCB
#: Ints of msgpack that are longer than a byte: the first one, and the type of the others.
_INTS: Final = dict(
    zip(range(0xCC, 0xD4), (">u1", ">u2", ">u4", ">u8", ">i1", ">i2", ">i4", ">i8"), strict=True)
)
_SMALL_MIN: Final = -32  # Smaller ints take more than a byte.
_INT_MAX: Final = (1 << 63) - 1


class PackedRun(NamedTuple):
    """Cells of one table, by key group and key; none of them was deleted.

    ``groups`` are key groups with the number of their cells; ``keys`` are without the table.
    """

    table: bytes
    groups: Sequence[tuple[int, int]]
    keys: pa.Array
    values: pa.Array


def keep_memory() -> None:
    """Have memory stay with this process between portions.

    The allocator of Linux gives it back to the system as soon as it is free, and to get a page
    again takes longer than to fill it; but it keeps twice as much as the largest piece that was
    ever given back.
    """
    np.empty(_KEPT_BYTES, np.uint8)


def portions(groups: Iterable[Group]) -> Iterator[list[Group]]:
    found, size = list[Group](), 0
    for each in groups:
        found.append(each)
        size += sum(len(body) for _, body in each[1])
        if size >= _PORTION_BYTES:
            yield found
            found, size = [], 0
    if found:
        yield found


def packed_run(groups: Sequence[Group]) -> PackedRun | None:
    """Return the cells of key groups; None if they must be taken one by one.

    That is so where there are several tables, entries of collections, very long keys, or none, or
    more than 2 GiB, and where the sections are malformed.
    """
    joined = _Joined([body for _, bodies in groups for _, body in bodies])
    cells = joined.cells() if len(joined.data) <= _BYTES_MAX else None
    if cells is None:
        return None
    counts = iter(joined.counts.tolist())
    sizes = [sum(next(counts) for _ in bodies) for _, bodies in groups]
    group = np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)
    order = _order(joined.data, cells, group)
    if order is not None:
        order = order[~cells.is_deleted[order]]
    if order is None or not len(order):
        return None
    left = np.bincount(group[order], minlength=len(sizes)).tolist()

    edges = np.empty((len(cells.key), 4), np.int32)
    for column, places in enumerate((cells.key, cells.key_end, cells.value, cells.value_end)):
        edges[:, column] = places
    offsets = np.append(edges, edges[-1, -1])
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), edges.size, [None, pa.py_buffer(offsets), pa.py_buffer(joined.data)]
    )
    keys, values = pieces.take(_column(order * 4)), pieces.take(_column(order * 4 + 2))
    parts = [(number, size) for (number, _), size in zip(groups, left, strict=True)]
    return PackedRun(cells.table, parts, keys, values)


class _Cells(NamedTuple):
    """The places of cells: of their keys behind the table, and of their values."""

    table: bytes
    key: Any
    key_end: Any
    value: Any
    value_end: Any
    is_deleted: Any


class _Joined:
    """Sections one behind the other."""

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self.data = np.frombuffer(b"".join((*bodies, _MARGIN)), np.uint8)
        heads = np.array(list(map(_head_of, bodies)), np.int64).reshape(-1, 2)
        sizes = np.array(list(map(len, bodies)), np.int64)
        self._ends = sizes.cumsum()
        self._begins = self._ends - sizes + heads[:, 0]
        self.counts = heads[:, 1]

    def cells(self) -> _Cells | None:
        table = self._first_table()
        if table is None:
            return None

        data, end = self.data, len(self.data) - len(_MARGIN)
        at = np.flatnonzero((data[2:end] == table[0]) & (data[3 : end + 1] == table[1])) + 2
        for start in sorted({*range(0, len(table) - _WORD, _WORD), len(table) - _WORD}):
            wanted = int.from_bytes(table[start : start + _WORD], sys.byteorder)
            at = at[_at(data, "u8", at + start) == wanted]
        if len(at) != self.counts.sum():
            return None
        key_end = at + data[at - 1]
        kind = data[key_end]
        is_large = kind == _BIN_16
        size: Any = np.where(is_large, data[key_end + 1].astype(np.int64) << 8, 0)
        value = key_end + 2 + is_large
        size += data[value - 1]
        is_deleted = kind == _NIL
        if is_deleted.any():
            value = np.where(is_deleted, key_end + 1, value)
            size[is_deleted] = 0
        cells = _Cells(table, at + len(table), key_end, value, value + size, is_deleted)
        is_known = is_deleted | is_large | (kind == _BIN_8)
        is_cell = is_known & (data[at - 2] == _BIN_8) & (cells.key <= key_end)
        if not is_cell.all():
            return None
        # Cells must fill the sections: each begins where the one before it ends.
        begin, is_filled = at - 2, self.counts > 0
        lasts = self.counts[is_filled].cumsum() - 1
        firsts = lasts - self.counts[is_filled] + 1
        ends = np.empty_like(begin)
        ends[:-1] = begin[1:]
        ends[lasts] = self._ends[is_filled]
        fills = (
            (begin[firsts] == self._begins[is_filled]).all()
            and (cells.value_end == ends).all()
            and (self._begins[~is_filled] == self._ends[~is_filled]).all()
        )
        return cells if fills else None

    def _first_table(self) -> bytes | None:
        if (self.counts < 0).any() or not self.counts.any():
            return None
        begin = int(self._begins[self.counts > 0][0])
        kind, size = self.data[begin : begin + 2].tolist()
        try:
            table = table_of(self.data[begin + 2 : begin + 2 + size].tobytes())
        except ProtocolError:
            return None
        is_taken = kind == _BIN_8 and len(table) >= _WORD and not is_collection(table)
        return table if is_taken else None


def _head_of(body: bytes) -> tuple[int, int]:
    """Return the bytes of the head of a map, and how many entries it tells; -1: it is none."""
    first = body[0] if body else _NIL
    if first >> 4 == _FIX_MAP >> 4:
        return 1, first & 15
    size = _MAP_SIZES.get(first)
    return (0, -1) if size is None else (1 + size, int.from_bytes(body[1 : 1 + size], "big"))


# -- their order -----------------------------------------------------------------------------


def _order(data: Any, cells: _Cells, group: Any) -> Any:
    """Return the newest cell of each key, by key group and key; None if keys are too long."""
    start = cells.key + _in_common(data, cells)
    left = cells.key_end - start
    most = int(left.max())
    if most > _WORD * _WORDS_MAX:
        return None
    columns = [_word(data, start + at, left - at) for at in range(0, most, _WORD)]
    # A key comes behind a shorter one that it begins with, also if all that follows are zeros.
    if most < _WORD:
        columns = [column | left.astype(np.uint64) for column in columns]
    elif most > left.min():
        columns.append(left)
    columns.insert(0, group)
    order = np.lexsort(columns[::-1])
    is_same = reduce(and_, (_repeats(each[order]) for each in columns))
    return order[np.append(~is_same, True)]  # Cells of one key stay as they came.


def _repeats(column: Any) -> Any:
    return column[1:] == column[:-1]


def _word(data: Any, start: Any, left: Any) -> Any:
    beyond = (8 * (_WORD - left.clip(0, _WORD))).astype(np.uint64)
    word = _at(data, ">u8", np.where(left > 0, start, 0)).astype(np.uint64)
    return np.where(left > 0, word >> beyond << beyond, 0)


def _in_common(data: Any, cells: _Cells) -> int:
    size = int((cells.key_end - cells.key).min())
    for at in range(size):
        found = data[cells.key + at]
        if (found != found[0]).any():
            return at
    return size


# -- columns ---------------------------------------------------------------------------------


def _column(numbers: Any) -> pa.Array:
    kind = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def numbers_of(stored: Sequence[pa.Array]) -> pa.Array | None:
    """Return values of msgpack as a column; None unless all are floats, or all ints of 64 bits."""
    parts = [_numbers(each) for each in stored if len(each)]
    if len({None if each is None else each.dtype for each in parts}) != 1 or parts[0] is None:
        return None
    return _column(np.concatenate(parts))


def _numbers(stored: pa.Array) -> Any:
    _, ends, data = stored.buffers()
    ends = np.frombuffer(ends, np.int32)[stored.offset :][: len(stored) + 1]
    begin, size, content = ends[:-1], np.diff(ends), np.frombuffer(data, np.uint8)
    if not size.all():
        return None
    first = content[begin]
    if (first == _FLOAT).all() and (size == 1 + _WORD).all():
        return _at(content, ">f8", begin + 1).astype(np.float64)
    found = first.view(np.int8).astype(np.int64)
    is_int = (size == 1) & (found >= _SMALL_MIN)
    tags = np.flatnonzero(np.bincount(first[~is_int])).tolist()
    for tag in filter(_INTS.__contains__, tags):
        kind = np.dtype(_INTS[tag])
        here = np.flatnonzero((first == tag) & (size == 1 + kind.itemsize))
        values = _at(content, kind, begin[here] + 1)
        found[here] = values
        is_int[here] = values <= _INT_MAX
    return found if is_int.all() else None


def _at(data: Any, kind: Any, places: Any) -> Any:
    size = len(data) - np.dtype(kind).itemsize + 1
    return np.ndarray((size,), kind, data, strides=(1,))[places]
