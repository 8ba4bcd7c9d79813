"""State on disk, for more than fits memory."""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain
from pathlib import Path, PurePath
from struct import Struct
from tempfile import TemporaryFile
from typing import IO, Any, Final

import msgpack

from gearpy.errors import ConfigError
from gearpy.state.encoding.keys import group_of
from gearpy.state.stores.cells import (
    Cells,
    Tables,
    head_of,
    is_collection,
    order_of,
    pack_stored,
    runs_of,
    split_cell,
    split_head,
    successor,
    table_of,
)
from gearpy.state.stores.delta import GroupCell, Reads, sections_of, sections_of_cells
from gearpy.state.stores.disk_cells import FIRST_CELL, IN_ORDER_BYTES, DiskCells, DiskQueue
from gearpy.state.stores.store import Entry, Section, StateDelta, Stored

_SLICE_WRITES: Final = 64
#: Moved for each write, so that memory does not fill.
_MOVED_WITH_A_WRITE: Final = 2
#: A slice ends at so many bytes of values; takes a few ms.
_SLICE_BYTES: Final = 1 << 20

#: Cells of the file that are copied at a time.
_COPIED_CELLS: Final = 512
_SIZE: Final = Struct(">I")

_ABSENT: Final[Any] = object()
_NOTHING: Final[Cells] = {}


class DiskStore:
    """Keeps cells in a file, and the latest changes in memory before it.

    What has changed since the last epoch is the newest layer; each delta that was handed over is a
    layer until it is released. Then it is moved to the file, the oldest first, a little with each
    write: the database lets the interpreter go at every call, so that another thread would get
    ahead by one cell in each switch interval only, and all at once would stop the task.

    Args:
        folder: of this task alone; what is in it is deleted.
        max_bytes: the file does not become larger.
        slice_writes: so often writing stops to move changes that are stored to the file.

    Invariant: of what the layers and the file say about a cell the newest layer is right, None
    meaning that it was deleted.
    """

    def __init__(self, folder: Path, max_bytes: int, *, slice_writes: int = _SLICE_WRITES) -> None:
        self._reads = Reads()
        self._file = DiskCells(folder, max_bytes, self._reads)
        self._changes: Tables = {}
        self._deltas: deque[_LayerDelta] = deque()
        self._all: _AllDelta | None = None
        self._layers: list[Tables] = [self._changes]  # The newest first.
        self._slice_writes = slice_writes
        self._writes = 0

    # -- values ------------------------------------------------------------------------------

    def get(self, table: bytes, key: bytes) -> Stored | None:
        for layer in self._layers:
            cells = layer.get(table)
            if cells is not None and (value := cells.get(key, _ABSENT)) is not _ABSENT:
                return value
        return self._file.get(table + key)

    def put(self, table: bytes, key: bytes, value: Stored) -> None:
        try:
            self._changes[table][key] = value
        except KeyError:
            self._changes[table] = {key: value}
        self._on_write()

    def delete(self, table: bytes, key: bytes) -> None:
        if self.get(table, key) is not None:
            self._changes.setdefault(table, {})[key] = None
            self._on_write()

    # -- collections -------------------------------------------------------------------------

    def get_entry(self, table: bytes, key: bytes, entry: bytes) -> Stored | None:
        for layer in self._layers:
            entries = layer.get(table, _NOTHING).get(key)
            if entries is not None and (value := entries.get(entry, _ABSENT)) is not _ABSENT:
                return value
        return self._file.get(head_of(table, key) + entry)

    def put_entry(self, table: bytes, key: bytes, entry: bytes, value: Stored) -> None:
        self._set_entry(table, key, entry, value)
        self._on_write()

    def delete_entry(self, table: bytes, key: bytes, entry: bytes) -> None:
        if self.get_entry(table, key, entry) is not None:
            self._set_entry(table, key, entry, None)
            self._on_write()

    def has_entries(self, table: bytes, key: bytes, *, but: bytes | None = None) -> bool:
        lately = self._lately(table, key)
        if any(value is not None and entry != but for entry, value in lately.items()):
            return True
        stored = self._stored_entries(table, key)
        return any(entry not in lately and entry != but for entry, _ in stored)

    def entries(self, table: bytes, key: bytes) -> list[Entry]:
        found: Cells = dict(self._stored_entries(table, key))
        found.update(self._lately(table, key))
        return sorted((entry, value) for entry, value in found.items() if value is not None)

    def clear_entries(self, table: bytes, key: bytes) -> None:
        for entry, _ in self.entries(table, key):
            self._set_entry(table, key, entry, None)
        self._on_write()

    def _set_entry(self, table: bytes, key: bytes, entry: bytes, value: Stored | None) -> None:
        try:
            self._changes[table][key][entry] = value
        except KeyError:
            self._changes.setdefault(table, {})[key] = {entry: value}

    def _lately(self, table: bytes, key: bytes) -> Cells:
        found: Cells = {}
        for layer in reversed(self._layers):
            found.update(layer.get(table, _NOTHING).get(key, _NOTHING))
        return found

    def _stored_entries(self, table: bytes, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        head = head_of(table, key)
        return ((cell[len(head) :], value) for cell, value in self._file.scan(head))

    # -- all of it ---------------------------------------------------------------------------

    def keys(self, table: bytes) -> Iterator[bytes]:
        lately = {key for layer in self._layers for key in layer.get(table, _NOTHING)}
        order, in_entries = order_of(table), is_collection(table)
        new = (
            key
            for key in sorted(lately, key=order)
            if (self.has_entries(table, key) if in_entries else self.get(table, key) is not None)
        )
        old = (key for key in self._stored_keys(table) if key not in lately)
        return merge(new, old, key=order)

    def _stored_keys(self, table: bytes) -> Iterator[bytes]:
        start, long = table, set[bytes]()
        while (found := self._file.next_cell(start)) is not None and found[0].startswith(table):
            cell, start = found
            if not is_collection(table):
                yield cell[len(table) :]
                continue
            key, _ = split_head(cell[len(table) :])
            head = head_of(table, key)
            if len(head) <= IN_ORDER_BYTES:
                start = successor(head)
            elif key in long:
                continue
            else:
                long.add(key)
            yield key

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    def tables(self, tag: bytes) -> list[bytes]:
        known = {table for layer in self._layers for table in layer if table.startswith(tag)}
        start = tag or FIRST_CELL
        while (found := self._file.next_cell(start)) is not None and found[0].startswith(tag):
            known.add(table := table_of(found[0]))
            start = successor(table)
        return sorted(table for table in known if next(self.keys(table), None) is not None)

    def time_queue(self, name: str) -> DiskQueue:
        return self._file.queue()

    def load(self, section: Section) -> None:
        for run in runs_of(section):
            self._file.load(list(zip(run.cells, run.values, strict=True)))

    def snapshot(self) -> StateDelta | None:
        """Hand over the changes.

        Raises:
            ConfigError: the file has become too large.
            OSError: the file could not be written.
        """
        self._file.check()
        self._move()
        if not self._changes:
            return None
        delta = _LayerDelta(self._changes, self._reads)
        self._deltas.append(delta)
        self._changes = {}
        self._set_layers()
        return delta

    def snapshot_of_all(self) -> tuple[StateDelta | None, Iterator[object]]:
        """Hand over all cells; the file stands still until they are released.

        Raises:
            ConfigError: the file has become too large.
            OSError: the file could not be written.
        """
        self.snapshot()
        if self._all is not None:
            self._all.release()
        self._all = _AllDelta([*self._deltas], self._reads)
        return self._all, self._all.copied(self._file)

    def close(self) -> None:
        if self._all is not None:
            self._all.release()
        self._file.close()
        self._deltas.clear()
        self._changes = {}
        self._set_layers()

    # -- from memory to the file -------------------------------------------------------------------

    def _set_layers(self) -> None:
        self._layers = [self._changes, *(delta.changes for delta in reversed(self._deltas))]

    def _on_write(self) -> None:
        self._writes += 1
        if self._writes >= self._slice_writes:
            self._move()

    def _move(self) -> None:
        """Move some of the oldest layer to the file, if it is stored durably."""
        self._writes = 0
        if self._all is not None and not self._all.is_released:
            return
        if not self._deltas or not self._deltas[0].is_released:
            return
        changes = self._deltas[0].changes
        self._file.put_all(sorted(_taken(changes, self._slice_writes * _MOVED_WITH_A_WRITE)))
        if not changes:
            self._deltas.popleft()
            self._set_layers()


class _LayerDelta:
    """Changed cells of a store that reads them until they are in the file; see `StateDelta`."""

    def __init__(self, changes: Tables, reads: Reads) -> None:
        self.changes = changes
        self.is_released = False
        self._reads = reads

    def sections(self) -> Iterator[Section]:
        assert not self.is_released, "a released delta is not asked for again"
        return sections_of(self.changes, self._reads)

    def release(self) -> None:
        self.is_released = True


class _AllDelta:
    """All cells of a store: a copy of its file, and the layers before it; see `StateDelta`.

    The file is copied on the task's thread, as it bears one at a time, in steps between which the
    task goes on. Until this is released nothing moves from the layers to the file.
    """

    def __init__(self, layers: Sequence[_LayerDelta], reads: Reads) -> None:
        self.is_released = False
        self._layers = layers
        self._reads = reads
        self._copy: IO[bytes] | None = None

    def copied(self, file: DiskCells) -> Iterator[None]:
        """Copy the file, a few cells with each step."""
        if file.folder is None:
            return
        self._copy, start = TemporaryFile(dir=file.folder), FIRST_CELL  # noqa: SIM115 - see `release`
        while not self.is_released:
            cells, start = file.cells_from(start, _COPIED_CELLS)
            if not cells:
                return
            packed = msgpack.packb([*chain.from_iterable(cells)])
            self._copy.write(_SIZE.pack(len(packed)) + packed)
            yield

    def sections(self) -> Iterator[Section]:
        assert not self.is_released, "a released delta is not asked for again"
        yield from sections_of_cells(self._from_copy(), self._reads)
        for layer in self._layers:
            yield from sections_of(layer.changes, self._reads)

    def _from_copy(self) -> Iterator[GroupCell]:
        if self._copy is None:
            return
        self._copy.seek(0)
        while size := self._copy.read(_SIZE.size):
            flat = iter(msgpack.unpackb(self._copy.read(_SIZE.unpack(size)[0])))
            for cell, value in zip(flat, flat, strict=True):
                yield group_of(split_cell(cell)[1]), cell, value

    def release(self) -> None:
        for layer in self._layers:
            layer.release()
        self.is_released = True
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.close()


def folder_of(folder: str, name: str) -> Path:
    parts = PurePath(name).parts
    if not parts or PurePath(name).is_absolute() or ".." in parts:
        raise ConfigError(f"state cannot have the name {name!r}: it must lead into its folder")
    return Path(folder).expanduser().joinpath(*parts)


def _taken(changes: Tables, cells_max: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Take as many cells out as one slice has.

    From the end: a dict from whose beginning much was deleted is slow to iterate.
    """
    count = size = 0
    while changes and count < cells_max and size < _SLICE_BYTES:
        table = next(reversed(changes))
        cells = changes[table]
        if not cells:
            changes.popitem()
            continue
        if is_collection(table):
            key = next(reversed(cells))
            if not cells[key]:
                cells.popitem()
                continue
            entry, value = cells[key].popitem()
            cell = head_of(table, key) + entry
        else:
            key, value = cells.popitem()
            cell = table + key
        packed = None if value is None else pack_stored(value)
        yield cell, packed
        count += 1
        size += len(packed or b"")
