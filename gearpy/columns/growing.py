"""Columns that grow in place: rows are put at places and taken from there, many at once."""

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

_Array: TypeAlias = NDArray[Any]
_BYTE_BITS: Final = 8
_WORDS: Final = frozenset({1, 2, 4, 8})  # Sizes that NumPy moves at once.
#: Objects whose size tells that of all.
_SIZED: Final = 16


class GrowingColumns:
    """Rows with a place each, of columns of some types.

    Values of a fixed size are in arrays of NumPy; others are objects of Python.
    """

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._columns = list(map(_column_of, kinds))
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def put(self, places: _Array, columns: Sequence[pa.Array]) -> None:
        """Put rows at places, each of which is there once; those from the length on are new."""
        if not len(places):
            return
        self._rows = max(self._rows, int(places.max()) + 1)
        for mine, column in zip(self._columns, columns, strict=True):
            mine.put(places, column, self._rows)

    def take(self, places: _Array) -> list[pa.Array]:
        return [each.take(places) for each in self._columns]

    @property
    def nbytes(self) -> int:
        return sum(each.size(self._rows) for each in self._columns)


def grown(cells: _Array, rows: int) -> _Array:
    """Return an array with room for so many rows, zeros where there were none."""
    if rows <= len(cells):
        return cells
    larger = np.zeros(max(rows, 2 * len(cells)), cells.dtype)
    larger[: len(cells)] = cells
    return larger


class _Column(Protocol):
    def put(self, places: _Array, column: pa.Array, rows: int) -> None: ...
    def take(self, places: _Array) -> pa.Array: ...
    def size(self, rows: int) -> int: ...


def _column_of(kind: pa.DataType) -> _Column:
    if pa.types.is_null(kind):
        return _Nothing()
    try:
        return _Fixed(kind, kind.bit_width // _BYTE_BITS)
    except ValueError:
        return _Objects(kind)


class _Nothing:
    def put(self, places: _Array, column: pa.Array, rows: int) -> None:
        pass

    def take(self, places: _Array) -> pa.Array:
        return pa.nulls(len(places))

    def size(self, rows: int) -> int:
        return 0


class _Fixed:
    """Values of a fixed size, as Arrow has them in memory; truth values as bytes."""

    def __init__(self, kind: pa.DataType, width: int) -> None:
        self._kind = kind
        self._stored = kind if width else pa.uint8()
        digits = self._stored.bit_width // _BYTE_BITS
        self._cells: _Array = np.zeros(0, f"u{digits}" if digits in _WORDS else f"V{digits}")
        self._is_missing: _Array | None = None  # None: no value ever was.

    def put(self, places: _Array, column: pa.Array, rows: int) -> None:
        if column.type != self._stored:
            column = column.cast(self._stored)
        _, data = column.buffers()
        self._cells = grown(self._cells, rows)
        begin = column.offset * self._cells.itemsize
        self._cells[places] = np.frombuffer(data, self._cells.dtype, len(column), begin)
        if self._is_missing is None and not column.null_count:
            return
        missing = np.zeros(0, np.bool_) if self._is_missing is None else self._is_missing
        self._is_missing = grown(missing, rows)
        self._is_missing[places] = column.is_null().to_numpy(zero_copy_only=False)

    def take(self, places: _Array) -> pa.Array:
        cells, there = pa.py_buffer(self._cells[places]), None
        if self._is_missing is not None:
            there = pa.py_buffer(np.packbits(~self._is_missing[places], bitorder="little"))
        found = pa.Array.from_buffers(self._stored, len(places), [there, cells])
        return found if self._kind == self._stored else found.cast(self._kind)

    def size(self, rows: int) -> int:
        return rows * int(self._cells.itemsize)


class _Objects:
    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._cells: _Array = np.zeros(0, object)

    def put(self, places: _Array, column: pa.Array, rows: int) -> None:
        self._cells = grown(self._cells, rows)
        self._cells[places] = np.fromiter(column.to_pylist(), object, len(column))

    def take(self, places: _Array) -> pa.Array:
        return pa.array(self._cells[places].tolist(), self._kind)

    def size(self, rows: int) -> int:
        some = self._cells[: min(rows, _SIZED)].tolist()
        return rows * sum(len(each or "") for each in some) // max(1, len(some))
