"""State in memory."""

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from operator import itemgetter
from typing import Final

from gearpy.state.stores.cells import (
    Cells,
    Tables,
    is_collection,
    order_of,
    runs_of,
    split_head,
)
from gearpy.state.stores.delta import TablesDelta
from gearpy.state.stores.sizes import estimated_bytes
from gearpy.state.stores.store import Entry, Section, StateDelta, Stored

_BY_ENTRY: Final = itemgetter(0)


class HeapQueue:
    """See `TimeQueue`. Most cells come in the order of their times: those need no heap."""

    def __init__(self) -> None:
        self._row: deque[tuple[int, bytes]] = deque()  # In order.
        self._heap: list[tuple[int, bytes]] = []  # Those that came too late for the row.

    def add(self, time_ms: int, cell: bytes) -> None:
        row, entry = self._row, (time_ms, cell)
        if not row or row[-1] <= entry:
            row.append(entry)
        else:
            heappush(self._heap, entry)

    @property
    def first_ms(self) -> int | None:
        row, heap = self._row, self._heap
        if heap and not (row and row[0] <= heap[0]):
            return heap[0][0]
        return row[0][0] if row else None

    def pop(self) -> tuple[int, bytes]:
        row, heap = self._row, self._heap
        return heappop(heap) if heap and not (row and row[0] <= heap[0]) else row.popleft()

    def clear(self) -> None:
        self._row.clear()
        self._heap.clear()


class HeapStore:
    """Keeps all cells in dicts, and beside them the changes since the last epoch.

    Values in both are objects that never change, so that handing the changes over copies nothing.

    Invariant: what has changed is in both, what was deleted is in the changes as None.
    """

    def __init__(self) -> None:
        self._tables: Tables = {}
        self._changes: Tables = {}

    # -- values ------------------------------------------------------------------------------

    def get(self, table: bytes, key: bytes) -> Stored | None:
        try:
            return self._tables[table].get(key)
        except KeyError:
            return None

    def put(self, table: bytes, key: bytes, value: Stored) -> None:
        try:
            self._tables[table][key] = value
        except KeyError:
            self._tables[table] = {key: value}
        try:
            self._changes[table][key] = value
        except KeyError:
            self._changes[table] = {key: value}

    def values_of(self, table: bytes) -> tuple[Cells, Cells]:
        """Return the values of a table and the changed ones, for a caller that writes both.

        They are good until another method is called; a deleted value is None in the changes.
        """
        return self._tables.setdefault(table, {}), self._changes.setdefault(table, {})

    def delete(self, table: bytes, key: bytes) -> None:
        cells = self._tables.get(table)
        if cells is not None and cells.pop(key, None) is not None:
            self._drop_if_empty(table, cells)
            self._changes.setdefault(table, {})[key] = None

    # -- collections -------------------------------------------------------------------------

    def get_entry(self, table: bytes, key: bytes, entry: bytes) -> Stored | None:
        try:
            return self._tables[table][key].get(entry)
        except KeyError:
            return None

    def put_entry(self, table: bytes, key: bytes, entry: bytes, value: Stored) -> None:
        try:
            self._tables[table][key][entry] = value
        except KeyError:
            self._tables.setdefault(table, {})[key] = {entry: value}
        try:
            self._changes[table][key][entry] = value
        except KeyError:
            self._changes.setdefault(table, {})[key] = {entry: value}

    def delete_entry(self, table: bytes, key: bytes, entry: bytes) -> None:
        entries = self._entries(table, key)
        if entries.pop(entry, None) is not None:
            if not entries:
                self._drop_key(table, key)
            self._changes.setdefault(table, {}).setdefault(key, {})[entry] = None

    def has_entries(self, table: bytes, key: bytes, *, but: bytes | None = None) -> bool:
        entries = self._entries(table, key)
        return len(entries) > (but in entries)

    def entries(self, table: bytes, key: bytes) -> list[Entry]:
        return sorted(self._entries(table, key).items(), key=_BY_ENTRY)

    def clear_entries(self, table: bytes, key: bytes) -> None:
        entries = self._entries(table, key)
        if entries:
            self._drop_key(table, key)
            changes = self._changes.setdefault(table, {}).setdefault(key, {})
            changes.update(dict.fromkeys(entries))

    def _entries(self, table: bytes, key: bytes) -> Cells:
        entries: Cells = self._tables.get(table, _NOTHING).get(key, _NOTHING)
        return entries

    def _drop_key(self, table: bytes, key: bytes) -> None:
        cells = self._tables[table]
        del cells[key]
        self._drop_if_empty(table, cells)

    def _drop_if_empty(self, table: bytes, cells: Cells) -> None:
        if not cells:  # Namespaces come and go, with windows for example.
            del self._tables[table]

    # -- all of it ---------------------------------------------------------------------------

    def keys(self, table: bytes) -> Iterator[bytes]:
        return iter(sorted(self._tables.get(table, _NOTHING), key=order_of(table)))

    @property
    def size_bytes(self) -> int:
        return estimated_bytes(self._tables.values())

    def tables(self, tag: bytes) -> list[bytes]:
        found = self._tables.items()
        return sorted(table for table, cells in found if cells and table.startswith(tag))

    def time_queue(self, name: str) -> HeapQueue:
        return HeapQueue()

    def load(self, section: Section) -> None:
        for run in runs_of(section):
            cells = self._tables.setdefault(run.table, {})
            if is_collection(run.table):
                for rest, value in zip(run.rests, run.values, strict=True):
                    key, entry = split_head(rest)
                    if value is not None:
                        cells.setdefault(key, {})[entry] = value
                    elif (entries := cells.get(key)) is not None:
                        entries.pop(entry, None)
                        if not entries:
                            del cells[key]
            else:
                rests = run.rests
                cells.update(zip(rests, run.values, strict=True))
                if None in run.values:
                    for key in rests:
                        if cells[key] is None:
                            del cells[key]
            self._drop_if_empty(run.table, cells)

    def snapshot(self) -> StateDelta | None:
        changes = {table: cells for table, cells in self._changes.items() if cells}
        self._changes = {}
        return TablesDelta(changes) if changes else None

    def snapshot_of_all(self) -> tuple[StateDelta | None, Iterator[object]]:
        self._changes = {
            table: {key: dict(entries) for key, entries in cells.items()}
            if is_collection(table)
            else dict(cells)
            for table, cells in self._tables.items()
        }
        return self.snapshot(), iter(())

    def close(self) -> None:
        self._tables, self._changes = {}, {}


_NOTHING: Final[Cells] = {}
