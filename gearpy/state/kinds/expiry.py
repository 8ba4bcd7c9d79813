"""State that expires: when, and how its memory is freed.

What has expired is invisible at once. It is freed a little later, in the order of time, with each
write and each watermark a little, so that the task never stops for it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal, TypeAlias

from gearpy.core.base.times import Duration, duration_ms
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from gearpy.state.kinds.place import StateClock
from gearpy.state.stores.cells import (
    Stamped,
    entry_cell,
    expires_ms_of,
    is_collection,
    is_list,
    split_cell,
)
from gearpy.state.stores.store import CellStore, Stored

#: By which clock state expires.
ClockName: TypeAlias = Literal["event", "processing"]

#: Freed with each write, so that freeing keeps up with writing.
_WITH_A_WRITE: Final = 2
#: Freed with each watermark and each epoch; takes a few ms.
_AT_ONCE: Final = 1000

#: Makes a value of a pair at the speed of a tuple.
_stamped: Final = partial(tuple.__new__, Stamped)

#: The entry of a list that has the number of its next element. It does not expire.
LIST_SIZE: Final = b""


class Expiry:
    """Finds expired cells by one clock, and frees them.

    Invariant: every cell that expires is in the queue, or is to be put there, at the time at which
    it does or before.
    """

    def __init__(self, store: CellStore, now_ms: Callable[[], int], name: ClockName) -> None:
        self._store = store
        self._queue = store.time_queue(f"expiry {name}")
        self.add = self._queue.add
        self.now_ms = now_ms
        self.fresh: list[tuple[int, bytes]] = []  #: To be put into the queue.

    def sweep(self, cells: int = _AT_ONCE) -> None:
        now_ms, store, queue = self.now_ms(), self._store, self._queue
        if self.fresh:
            for each in self.fresh:
                self.add(*each)
            self.fresh.clear()
        table, is_value = b"", False
        while cells and (first_ms := queue.first_ms) is not None and first_ms <= now_ms:
            cells -= 1
            _, cell = queue.pop()
            entry: bytes | None = None
            if is_value and cell.startswith(table):  # The table of the cell before.
                key = cell[len(table) :]
            else:
                table, key, entry = split_cell(cell)
                is_value = entry is None
            stored = store.get(table, key) if entry is None else store.get_entry(table, key, entry)
            if stored is None:
                continue
            if (expires_ms := expires_ms_of(stored)) > now_ms:  # It was written again.
                queue.add(expires_ms, cell)
            elif entry is None:
                store.delete(table, key)
            else:
                store.delete_entry(table, key, entry)
                # A list keeps the number of its next element; it is of no use without elements.
                if is_list(table) and not store.has_entries(table, key, but=LIST_SIZE):
                    store.delete_entry(table, key, LIST_SIZE)


class Ttl:
    """The time for which values of one state are kept after they were written."""

    def __init__(
        self, duration: Duration, name: ClockName, clock: StateClock, expiry: Expiry
    ) -> None:
        self.name = name
        self.duration_ms = duration_ms(duration)
        if not self.duration_ms:
            raise ConfigError("a ttl of 0 keeps nothing: leave it out to keep state for ever")
        self._clock = clock
        self._expiry = expiry

    def __str__(self) -> str:
        return f"{self.duration_ms} ms of {self.name} time"

    def is_over(self, stored: Stored) -> bool:
        expires_ms = stored[0] if type(stored) is Stamped else expires_ms_of(stored)
        is_over: bool = expires_ms <= self._expiry.now_ms()
        return is_over

    def stamped(self, stored: Stored) -> Stamped:
        clock = self._clock
        written_ms = clock.written_ms if self.name == "event" else clock.now_ms()
        stamped: Stamped = _stamped((min(written_ms + self.duration_ms, MAX_MS), stored))
        return stamped

    def note(self, cell: bytes, expires_ms: int) -> None:
        """Take a new cell; `free` makes room for as many."""
        self._expiry.fresh.append((expires_ms, cell))

    def free(self) -> None:
        """Free as many cells as keeps up with those that were noted."""
        self._expiry.sweep(_WITH_A_WRITE * len(self._expiry.fresh))

    def on_write(self, cell: bytes, expires_ms: int, *, is_new: bool) -> None:
        if is_new:
            self._expiry.add(expires_ms, cell)
        self._expiry.sweep(_WITH_A_WRITE)

    def track(self, store: CellStore, tag: bytes) -> None:
        for table, key, entry, stored in cells_of(store, tag):
            if entry is None:
                self._expiry.add(expires_ms_of(stored), table + key)
            elif entry != LIST_SIZE or not is_list(table):
                self._expiry.add(expires_ms_of(stored), entry_cell(table, key, entry))


def cells_of(store: CellStore, tag: bytes) -> Iterator[tuple[bytes, bytes, bytes | None, Stored]]:
    """Yield table, key, entry (None for a value) and stored value of all cells of a tag."""
    for table in store.tables(tag):
        for key in store.keys(table):
            if is_collection(table):
                yield from ((table, key, *each) for each in store.entries(table, key))
            else:
                yield table, key, None, store.get(table, key)
