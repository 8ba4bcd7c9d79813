"""A database file of cells, for one task: LMDB, opened at its first cell.

It is no more durable than memory, as it is made anew from checkpoints. So nothing is flushed; one
write transaction is always open, and committed now and then only to keep it small.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Final, TypeVar, cast

import lmdb

from gearpy.errors import ConfigError
from gearpy.state.stores.delta import Reads

#: Behind the queues, before all cells: these begin with the size of their tag.
FIRST_CELL: Final = b"\1"

#: What the database takes as a key. A longer cell is stored under its first bytes and a hash.
_KEY_BYTES: Final = 511
_HASH_BYTES: Final = 32
#: Cells are in order as far as these bytes go.
IN_ORDER_BYTES: Final = _KEY_BYTES - _HASH_BYTES
_SIZE: Final = Struct(">I")
#: Written before a commit, a page for each cell and what does not fit it; takes a few ms.
_COMMIT_BYTES: Final = 4 << 20
#: The same while a checkpoint is loaded, when nobody waits.
_COMMIT_LOADED_BYTES: Final = 64 << 20
_PAGE_BYTES: Final = 4096

_QUEUES_MAX: Final = 0x10000
_QUEUE: Final = Struct(">BH")
_TIME: Final = Struct(">Q")
_HALF: Final = 1 << 63

_Result = TypeVar("_Result")


class DiskCells:
    """Cells by their bytes, in order; those of more than 511 bytes are out of it.

    Once writing has failed all is lost, and whatever is asked raises that error.

    Args:
        folder: of this task alone; what is in it is deleted.
        max_bytes: the file does not become larger.
        reads: is told when the interpreter is let go.
    """

    def __init__(self, folder: Path, max_bytes: int, reads: Reads) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._reads = reads
        self._env: lmdb.Environment | None = None
        self._txn: lmdb.Transaction | None = None
        self._uncommitted_bytes = 0
        self._failure: Exception | None = None
        self._queues = 0

    def check(self) -> None:
        """Raise the error of a failed write.

        Raises:
            ConfigError: the file was about to become too large.
            OSError: the disk is full or broken, or the folder cannot be made.
        """
        if self._failure is not None:
            raise self._failure

    @property
    def folder(self) -> Path | None:
        return None if self._env is None else self._folder

    @property
    def size_bytes(self) -> int:
        if self._env is None:
            return 0
        stat = self._env.stat()
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return int(pages * stat["psize"])

    # -- cells -------------------------------------------------------------------------------

    def get(self, cell: bytes) -> bytes | None:
        txn = self._txn
        if txn is None:
            self.check()
            return None
        self._reads.is_waiting = True
        found = cast("bytes | None", txn.get(_key_of(cell)))
        self._reads.is_waiting = False
        return found if found is None or len(cell) < _KEY_BYTES else _split(found)[1]

    def put_all(
        self, cells: Sequence[tuple[bytes, bytes | None]], commit_bytes: int = _COMMIT_BYTES
    ) -> None:
        def put(txn: lmdb.Transaction) -> None:
            plain = [
                (cell, value)
                for cell, value in cells
                if value is not None and len(cell) < _KEY_BYTES
            ]
            if len(plain) == len(cells):
                txn.cursor().putmulti(plain)
                return
            for cell, value in cells:
                if value is None:
                    txn.delete(_key_of(cell))
                elif len(cell) < _KEY_BYTES:
                    txn.put(cell, value)
                else:
                    txn.put(_key_of(cell), _SIZE.pack(len(cell)) + cell + value)

        size = sum(len(value) for _, value in cells if value is not None)
        self._write(put, len(cells), size, commit_bytes)

    def load(self, cells: Sequence[tuple[bytes, bytes | None]]) -> None:
        self.put_all(cells, _COMMIT_LOADED_BYTES)

    def next_cell(self, start: bytes) -> tuple[bytes, bytes] | None:
        """Return the first cell from a key on, and the key behind it."""
        found = self.first_key(start)
        return None if found is None else (_cell_and_value(*found)[0], found[0] + b"\0")

    def cells_from(self, start: bytes, cells_max: int) -> tuple[list[tuple[bytes, bytes]], bytes]:
        found = self._read(lambda txn: list(islice(_from(txn, start), cells_max))) or []
        return [_cell_and_value(*each) for each in found], found[-1][0] + b"\0" if found else start

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the cells that begin with ``prefix``, and their values; to be used at once."""
        txn = self._txn
        if txn is None:
            self.check()
            return
        self._reads.is_waiting = True
        try:
            begin = prefix[:IN_ORDER_BYTES]
            for key, data in _from(txn, begin):
                if not key.startswith(begin):
                    return
                cell, value = _cell_and_value(key, data)
                if cell.startswith(prefix):
                    yield cell, value
        finally:
            self._reads.is_waiting = False

    def _read(self, action: Callable[[lmdb.Transaction], _Result]) -> _Result | None:
        if self._txn is None:
            self.check()
            return None
        self._reads.is_waiting = True
        try:
            return action(self._txn)
        finally:
            self._reads.is_waiting = False

    def _write(
        self,
        action: Callable[[lmdb.Transaction], object],
        cells: int = 1,
        value_bytes: int = 0,
        commit_bytes: int = _COMMIT_BYTES,
    ) -> None:
        self.check()
        self._reads.is_waiting = True
        try:
            action(self._txn or self._begun())
            self._uncommitted_bytes += cells * _PAGE_BYTES + value_bytes
            if self._uncommitted_bytes >= commit_bytes:
                assert self._txn is not None, "something was written"
                self._txn.commit()
                self._uncommitted_bytes = 0
                self._begun()
        except (lmdb.Error, OSError) as error:
            self.close()
            if isinstance(error, lmdb.MapFullError):
                self._failure = ConfigError(
                    f"the state of one task has outgrown {self._max_bytes} bytes in "
                    f"{self._folder}: raise state.disk-max-bytes, or use more tasks"
                )
            elif isinstance(error, OSError):
                self._failure = error
                raise
            else:
                self._failure = OSError(f"state in {self._folder} cannot be written: {error}")
            raise self._failure from error
        finally:
            self._reads.is_waiting = False

    # -- queues ------------------------------------------------------------------------------

    def queue(self) -> "DiskQueue":
        assert self._queues < _QUEUES_MAX, "two bytes number the queues"
        self._queues += 1
        return DiskQueue(self, _QUEUE.pack(0, self._queues - 1))

    def put_key(self, key: bytes, value: bytes) -> None:
        self._write(lambda txn: txn.put(key, value))

    def delete_key(self, key: bytes) -> None:
        self._write(lambda txn: txn.delete(key))

    def first_key(self, start: bytes) -> tuple[bytes, bytes] | None:
        return self._read(lambda txn: next(_from(txn, start), None))

    # -- the file ------------------------------------------------------------------------------

    def _begun(self) -> lmdb.Transaction:
        if self._env is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
            # One process uses the file, one thread at a time; without locks a transaction may go
            # from thread to thread.
            self._env = lmdb.open(
                str(self._folder),
                map_size=self._max_bytes,
                sync=False,
                metasync=False,
                lock=False,
                readahead=False,
            )
        self._txn = self._env.begin(write=True)
        return self._txn

    def close(self) -> None:
        txn, env = self._txn, self._env
        self._txn = self._env = None
        if txn is not None:
            txn.abort()
        if env is not None:
            env.close()
            shutil.rmtree(self._folder, ignore_errors=True)


class DiskQueue:
    """Cells in the order of a time, in the file; see `TimeQueue`."""

    def __init__(self, cells: DiskCells, prefix: bytes) -> None:
        self._cells = cells
        self._prefix = prefix
        self._first_ms: int | None = None
        self._is_known = True

    def add(self, time_ms: int, cell: bytes) -> None:
        begin = self._prefix + _TIME.pack(time_ms + _HALF)
        key = begin + cell
        if len(key) > _KEY_BYTES:
            key = begin + cell[: IN_ORDER_BYTES - len(begin)] + _hash_of(cell)
        self._cells.put_key(key, cell)
        if self._is_known and (self._first_ms is None or time_ms < self._first_ms):
            self._first_ms = time_ms

    @property
    def first_ms(self) -> int | None:
        if not self._is_known:
            found = self._first()
            self._first_ms = None if found is None else self._time_of(found[0])
            self._is_known = True
        return self._first_ms

    def pop(self) -> tuple[int, bytes]:
        found = self._first()
        assert found is not None, "there is a first one"
        self._cells.delete_key(found[0])
        self._is_known = False
        return self._time_of(found[0]), found[1]

    def clear(self) -> None:
        while self.first_ms is not None:
            self.pop()

    def _first(self) -> tuple[bytes, bytes] | None:
        found = self._cells.first_key(self._prefix)
        return None if found is None or not found[0].startswith(self._prefix) else found

    def _time_of(self, key: bytes) -> int:
        return int(_TIME.unpack_from(key, len(self._prefix))[0]) - _HALF


# -- long cells ------------------------------------------------------------------------------


def _key_of(cell: bytes) -> bytes:
    return cell if len(cell) < _KEY_BYTES else cell[:IN_ORDER_BYTES] + _hash_of(cell)


def _hash_of(cell: bytes) -> bytes:
    return blake2b(cell, digest_size=_HASH_BYTES).digest()


def _split(data: bytes) -> tuple[bytes, bytes]:
    end = _SIZE.size + _SIZE.unpack_from(data)[0]
    return data[_SIZE.size : end], data[end:]


def _cell_and_value(key: bytes, data: bytes) -> tuple[bytes, bytes]:
    return (key, data) if len(key) < _KEY_BYTES else _split(data)


def _from(txn: lmdb.Transaction, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    cursor = txn.cursor()
    if not cursor.set_range(start):
        return iter(())
    return cast("Iterator[tuple[bytes, bytes]]", cursor.iternext())
