"""Protocol of a state store: the keyed state of one task, between records and across restarts.

A store holds cells, bytes by bytes. What has changed since the last epoch is handed over at the
end of the next one without being copied or encoded, so that the task can go on; the snapshot writer
reads it on another thread.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

#: A value as a store keeps it: bytes that a coder has made; a value that cannot change, see
#: `encoding.coders`; or one of these `Stamped` with the time at which it expires. Never None.
Stored: TypeAlias = Any
#: An entry of a collection and its value.
Entry: TypeAlias = tuple[bytes, Stored]


class Section(NamedTuple):
    """Changed cells of one key group, as bytes, as a checkpoint holds them.

    ``body`` is a msgpack map of cell (bytes) to its value (bytes), or nil for one that was
    deleted. A group may have several sections; of what they say about a cell the last one counts.
    """

    group: int
    body: bytes


class StateDelta(Protocol):
    """Gives the changes between two epochs. Never changes itself.

    Runs on: any thread, one at a time.
    """

    def sections(self) -> Iterator[Section]:
        """Yield all changes, in parts that take a few ms each to make. May be called again."""
        ...

    def release(self) -> None:
        """Free the changes: they are stored durably, and will not be read again."""
        ...


class TimeQueue(Protocol):
    """Cells in the order of a time, then of their bytes; it is made again from the cells."""

    def add(self, time_ms: int, cell: bytes) -> None:
        """Put a cell in; it may be there several times."""
        ...

    @property
    def first_ms(self) -> int | None: ...

    def pop(self) -> tuple[int, bytes]:
        """Take the first cell out. Only if there is one."""
        ...

    def clear(self) -> None: ...


class CellStore(Protocol):
    """The cells of one task by table and key, see `cells`.

    The name of a table tells its kind of content: in one of values a key has one value, in one of
    collections it has entries.

    Runs on: the task's thread, except what `snapshot` returns.
    """

    def load(self, section: Section) -> None:
        """Load a section of a checkpoint, oldest sections first. Only before the first use."""
        ...

    def snapshot(self) -> StateDelta | None:
        """Hand over the changes since the last call; None if there are none.

        Takes the same short time however much it is.
        """
        ...

    def snapshot_of_all(self) -> tuple[StateDelta | None, Iterator[object]]:
        """Hand over all cells, and small pieces of the work that makes them whole.

        Nothing that was handed over before is read from then on.
        """
        ...

    def close(self) -> None:
        """Release memory and files. Does nothing when called again."""
        ...

    def get(self, table: bytes, key: bytes) -> Stored | None: ...

    def put(self, table: bytes, key: bytes, value: Stored) -> None: ...

    def delete(self, table: bytes, key: bytes) -> None: ...

    def get_entry(self, table: bytes, key: bytes, entry: bytes) -> Stored | None: ...

    def put_entry(self, table: bytes, key: bytes, entry: bytes, value: Stored) -> None: ...

    def delete_entry(self, table: bytes, key: bytes, entry: bytes) -> None: ...

    def has_entries(self, table: bytes, key: bytes, *, but: bytes | None = None) -> bool:
        """Tell whether a collection has any entry, apart from one."""
        ...

    def entries(self, table: bytes, key: bytes) -> list[Entry]:
        """Return a collection in the order of its entries."""
        ...

    def clear_entries(self, table: bytes, key: bytes) -> None: ...

    def keys(self, table: bytes) -> Iterator[bytes]:
        """Yield the keys of a table in the order of cells; it may change meanwhile.

        Whether what is added or taken away meanwhile is among them is not said.
        """
        ...

    @property
    def size_bytes(self) -> int:
        """The size of keys and values, estimated from some of them; quick to ask."""
        ...

    def tables(self, tag: bytes) -> list[bytes]:
        """Return the tables of a tag that are not empty, in the order of their names."""
        ...

    def time_queue(self, name: str) -> TimeQueue:
        """Return a new queue; no two of a store have the same name."""
        ...
