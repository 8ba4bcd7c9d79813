"""Cells of records that come few at a time, until they are worth to be made columns.

To make arrays of two records takes as long as to make them of a hundred. But who brings a record
that does not fit must hear of it at once, and what was written must not change when a program
changes a value that it has handed over. So only values are kept that fit for sure, and that cannot
change; whatever else comes is not for here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

#: So many rows are made columns at once.
GATHERED_ROWS_MAX: Final = 4096
#: Longer texts are worth a column of their own, and would make much of that many rows.
TEXT_MAX: Final = 1024

_DOUBLE_MAX: Final = 1 << 53  # Up to there all whole numbers are doubles.
_INTEGERS: Final = {
    pa.int8(): 1 << 7,
    pa.int16(): 1 << 15,
    pa.int32(): 1 << 31,
    pa.int64(): 1 << 63,
}

_Test: TypeAlias = Callable[[Sequence[Any]], bool]


class GatheredCells:
    """The cells of some rows, by column.

    Invariant: all columns have `rows` cells, and Arrow takes each as it is.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._tests = {field.name: _test_of(field.type) for field in schema}
        self._moments = self._tests | {
            field.name: _integers(_INTEGERS[pa.int64()])
            for field in schema
            if pa.types.is_timestamp(field.type)
        }
        self._columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        self.rows = 0

    def add(
        self, cells: Mapping[str, Sequence[Any]], rows: int, *, moments: Collection[str] = ()
    ) -> bool:
        """Keep the cells of some rows; False if one may not fit, and none was kept.

        Args:
            cells: by column; of one that is not there all are None.
            moments: columns whose cells are microseconds, as Arrow takes them for times. Numbers
                are no times otherwise: nobody knows their unit.
        """
        for name, column in cells.items():
            test = (self._moments if name in moments else self._tests).get(name)
            if test is None or not test(column):
                return False
        for name, kept in self._columns.items():
            kept.extend(cells[name] if name in cells else [None] * rows)
        self.rows += rows
        return True

    def take(self) -> dict[str, list[Any]]:
        """Return the cells that were kept since."""
        taken, self.rows = self._columns, 0
        self._columns = {name: [] for name in taken}
        return taken


def _test_of(kind: Any) -> _Test:
    """Return a test that passes only cells from which Arrow surely makes this type, each alone."""
    if kind in _INTEGERS:
        return _integers(_INTEGERS[kind])
    if pa.types.is_timestamp(kind):
        return _times(None if kind.tz is None else UTC)
    return _TESTS.get(kind, _never)


def _integers(end: int) -> _Test:
    def test(cells: Sequence[Any]) -> bool:
        for cell in cells:
            if cell is not None and not (type(cell) is int and -end <= cell < end):
                return False
        return True

    return test


def _times(zone: Any) -> _Test:
    def test(cells: Sequence[Any]) -> bool:
        for cell in cells:
            if cell is not None and not (type(cell) is datetime and cell.tzinfo is zone):
                return False
        return True

    return test


def _floats(cells: Sequence[Any]) -> bool:
    for cell in cells:
        if cell is None or type(cell) is float:
            continue
        if type(cell) is not int or not -_DOUBLE_MAX <= cell <= _DOUBLE_MAX:
            return False
    return True


def _texts(cells: Sequence[Any]) -> bool:
    """A text that is not ASCII may have half of a pair of UTF-16, which no file takes."""
    for cell in cells:
        if cell is None:
            continue
        if type(cell) is not str or len(cell) > TEXT_MAX:
            return False
        if not (cell.isascii() or _is_utf8(cell)):
            return False
    return True


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _all_of(kind: type) -> _Test:
    def test(cells: Sequence[Any]) -> bool:
        for cell in cells:  # noqa: SIM110 - three times as fast for a few cells
            if cell is not None and type(cell) is not kind:
                return False
        return True

    return test


def _bytes(cells: Sequence[Any]) -> bool:
    for cell in cells:
        if cell is not None and not (type(cell) is bytes and len(cell) <= TEXT_MAX):
            return False
    return True


def _never(_: Sequence[Any]) -> bool:
    return False


_TESTS: Final[Mapping[Any, _Test]] = {
    pa.bool_(): _all_of(bool),
    pa.date32(): _all_of(date),
    pa.float64(): _floats,
    pa.string(): _texts,
    pa.binary(): _bytes,
}
