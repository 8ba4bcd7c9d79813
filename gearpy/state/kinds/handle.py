"""The base of all states: where they are kept, and values as they are stored."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gearpy.errors import CannotTravel, ConfigError
from gearpy.state.encoding.coders import Coder, atoms_of, keeps_of
from gearpy.state.kinds.expiry import Ttl
from gearpy.state.kinds.place import Place, part_of
from gearpy.state.stores.cells import Tag, entry_cell, value_of
from gearpy.state.stores.store import Entry, Stored

#: What reading gives where there is nothing.
MISSING: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Binding:
    tag: Tag
    place: Place
    coder: Coder
    ttl: Ttl | None = None


class State:
    """Base of all states: reads and writes values in the table of a namespace.

    Invariant: ``_table`` is that of the namespace ``_part``.
    """

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self._place = binding.place
        self._store = binding.place.store
        self._ttl = binding.ttl
        self._tag = binding.tag.encode()
        self._decode = binding.coder.decode
        self._atoms = atoms_of(binding.coder)
        self._keeps = keeps_of(binding.coder)
        self._part = b""
        self._table = b""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.binding.tag.name!r}>"

    def _here(self) -> bytes:
        part = self._place.part
        if part is not self._part:
            self._part, self._table = part, self._tag + part
        return self._table

    def _kept(self, value: Any) -> Stored:
        if type(value) in self._atoms or self._keeps(value):
            return value
        return self._encoded(value)

    def _encoded(self, value: Any) -> bytes:
        try:
            return self.binding.coder.encode(value)
        except CannotTravel as error:
            where = f"a value of state {self.binding.tag.name!r}"
            raise CannotTravel(error.reason, where) from error
        except ConfigError as error:
            raise ConfigError(f"state {self.binding.tag.name!r}: {error}") from error

    def _is_there(self, stored: Stored | None) -> bool:
        return stored is not None and (self._ttl is None or not self._ttl.is_over(stored))

    def _given(self, stored: Stored) -> Any:
        if self._ttl is not None:
            stored = value_of(stored)
        return self._decode(stored) if type(stored) is bytes else stored

    # -- one value ---------------------------------------------------------------------------

    def _read(self, default: Any = None) -> Any:
        place = self._place
        table = self._table if place.part is self._part else self._here()
        stored = self._store.get(table, place.key)
        if self._ttl is None:
            if type(stored) is bytes:
                return self._decode(stored)
            return default if stored is None else stored
        return self._given(stored) if self._is_there(stored) else default

    def _write(self, value: Any) -> None:
        place = self._place
        table = self._table if place.part is self._part else self._here()
        stored = value if type(value) in self._atoms else self._kept(value)
        if self._ttl is None:
            self._store.put(table, place.key, stored)
        else:
            ttl = self._ttl
            key = place.key
            stamped = ttl.stamped(stored)
            is_new = self._store.get(table, key) is None
            self._store.put(table, key, stamped)
            ttl.on_write(table + key, stamped[0], is_new=is_new)

    # -- entries -----------------------------------------------------------------------------

    def _read_entry(self, entry: bytes) -> Stored | None:
        stored = self._store.get_entry(self._here(), self._place.key, entry)
        return stored if self._is_there(stored) else None

    def _write_entry(self, entry: bytes, stored: Stored) -> None:
        table, key = self._here(), self._place.key
        if self._ttl is None:
            self._store.put_entry(table, key, entry, stored)
            return
        stamped = self._ttl.stamped(stored)
        is_new = self._store.get_entry(table, key, entry) is None
        self._store.put_entry(table, key, entry, stamped)
        self._ttl.on_write(entry_cell(table, key, entry), stamped[0], is_new=is_new)

    def _live_entries(self, key: bytes | None = None) -> Iterator[Entry]:
        entries = self._store.entries(self._here(), self._place.key if key is None else key)
        if self._ttl is None:
            return iter(entries)
        return (each for each in entries if self._is_there(each[1]))

    def _has_entries(self, key: bytes) -> bool:
        if self._ttl is None:
            return self._store.has_entries(self._here(), key)
        return next(self._live_entries(key), None) is not None

    # -- for the state of the task -------------------------------------------------------------

    def clear(self) -> None:
        """Forget the values of the key."""
        raise NotImplementedError

    def keys_here(self) -> Iterator[bytes]:
        """Yield all keys that have state in the namespace at hand, encoded."""
        raise NotImplementedError

    def _absorb(self, namespaces: Iterable[Any], take_in: Callable[[], None]) -> None:
        """Clear other namespaces of the key; ``take_in`` is called at each of them before."""
        place = self._place
        part = place.part
        try:
            for other in map(part_of, namespaces):
                if other != part:
                    place.part = other
                    take_in()
                    self.clear()
        finally:
            place.part = part
