"""States with entries for each key: lists, sets and maps. Each entry expires by itself.

Every access reads or writes the entries that it is about, however many there are. A walk
through all of them sees the entries that were there when it began.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, Final, Generic, TypeVar

from gearpy.state.encoding.keys import decode_key, encode_key
from gearpy.state.kinds.expiry import LIST_SIZE
from gearpy.state.kinds.handle import MISSING, State
from gearpy.state.stores.cells import value_of
from gearpy.state.stores.store import Entry

V = TypeVar("V")
K = TypeVar("K")

_POSITION: Final = Struct(">Q")
#: Values of these types come back from a set's entry as they are; others are kept beside it.
_PLAIN: Final = frozenset({str, int, bytes, type(None)})


class _Collection(State):
    """A state with entries for each key; each of them expires by itself."""

    def clear(self) -> None:
        self._store.clear_entries(self._here(), self._place.key)

    @property
    def is_empty(self) -> bool:
        return not self._has_entries(self._place.key)

    def __bool__(self) -> bool:
        return not self.is_empty

    def __len__(self) -> int:
        return sum(1 for _ in self._live_entries())

    def keys_here(self) -> Iterator[bytes]:
        return filter(self._has_entries, self._store.keys(self._here()))


class ListState(_Collection, Generic[V]):
    """Values of each key in the order in which they came. Gearpump PR #190: `BagState`.

    Adding one costs the same however many there are.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> seen = state.list("seen")
        >>> state.key = "ada"
        >>> seen.add("home")
        >>> seen.extend(["cart", "home"])
        >>> list(seen), len(seen)
        (['home', 'cart', 'home'], 3)
    """

    def add(self, value: V) -> None:
        """Put a value at the end."""
        stored = self._kept(value)
        packed = self._store.get_entry(self._here(), self._place.key, LIST_SIZE)
        position = 0 if packed is None else int.from_bytes(packed, "big")
        # First the number: writing the element may free it, and then the number with it.
        following = _POSITION.pack(position + 1)
        self._store.put_entry(self._here(), self._place.key, LIST_SIZE, following)
        self._write_entry(_POSITION.pack(position), stored)

    append = add

    def extend(self, values: Iterable[V]) -> None:
        for value in values:
            self.add(value)

    def set(self, values: Iterable[V]) -> None:
        after = [*values]
        self.clear()
        self.extend(after)

    def __iter__(self) -> Iterator[V]:
        return (self._given(stored) for _, stored in self._live_entries())

    def merge(self, *namespaces: Any) -> None:
        found: list[V] = []
        self._absorb(namespaces, lambda: found.extend(self))
        self.extend(found)

    def _live_entries(self, key: bytes | None = None) -> Iterator[Entry]:
        return (each for each in super()._live_entries(key) if each[0] != LIST_SIZE)


class SetState(_Collection, Generic[V]):
    """Different values of each key. Gearpump PR #190: `SetState`.

    They are anything that can be a key, see `state.encoding.keys`, and come in a fixed order.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> pages = state.set("pages")
        >>> state.key = "ada"
        >>> [pages.add(page) for page in ("home", "cart", "home")]
        [True, True, False]
        >>> "cart" in pages, list(pages)
        (True, ['cart', 'home'])
    """

    def add(self, value: V) -> bool:
        """Put a value in; tell whether it was not there. If it was, its time to live starts anew.

        Gearpump PR #190: `SetState.addIfAbsent`.
        """
        entry = encode_key(value)
        is_new = self._read_entry(entry) is None
        if is_new or self._ttl is not None:
            is_plain = type(value) in _PLAIN
            self._write_entry(entry, b"" if is_plain else b"\1" + self._encoded(value))
        return is_new

    def update(self, values: Iterable[V]) -> None:
        for value in values:
            self.add(value)

    def discard(self, value: V) -> None:
        self._store.delete_entry(self._here(), self._place.key, encode_key(value))

    def __contains__(self, value: object) -> bool:
        return self._read_entry(encode_key(value)) is not None

    def __iter__(self) -> Iterator[V]:
        for entry, stored in self._live_entries():
            beside = stored if self._ttl is None else value_of(stored)
            yield self._decode(beside[1:]) if beside else decode_key(entry)

    def merge(self, *namespaces: Any) -> None:
        found: list[V] = []
        self._absorb(namespaces, lambda: found.extend(self))
        self.update(found)


class MapState(_Collection, Generic[K, V]):
    """A dict for each key; each access reads or writes one entry only.

    Its keys are anything that can be a key, see `encoding.keys`. Entries come in a fixed order:
    those whose keys are text, or ints of 64 bits, in theirs. Gearpump PR #190: `MapState`.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> cart = state.map("cart", coder="int")
        >>> state.key = "ada"
        >>> cart["tea"] = 2
        >>> cart["jam"] = cart.get("jam", 0) + 1
        >>> list(cart.items())
        [('jam', 1), ('tea', 2)]
        >>> state.key = "bob"
        >>> "tea" in cart
        False
    """

    def get(self, key: K, default: Any = None) -> V | Any:
        place = self._place
        table = self._table if place.part is self._part else self._here()
        stored = self._store.get_entry(table, place.key, encode_key(key))
        if self._ttl is None:
            if type(stored) is bytes:
                return self._decode(stored)
            return default if stored is None else stored
        return self._given(stored) if self._is_there(stored) else default

    def put(self, key: K, value: V) -> None:
        stored = value if type(value) in self._atoms else self._kept(value)
        self._write_entry(encode_key(key), stored)

    def put_if_absent(self, key: K, value: V) -> V:
        """Set an entry that is not there; return the value that it has then."""
        found: V = self.get(key, MISSING)
        if found is not MISSING:
            return found
        self.put(key, value)
        return value

    def remove(self, key: K) -> None:
        self._store.delete_entry(self._here(), self._place.key, encode_key(key))

    def pop(self, key: K, default: Any = None) -> V | Any:
        found = self.get(key, default)
        self.remove(key)
        return found

    def update(self, entries: Iterable[tuple[K, V]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def __getitem__(self, key: K) -> V:
        found: V = self.get(key, MISSING)
        if found is MISSING:
            raise KeyError(key)
        return found

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self.remove(key)

    def __contains__(self, key: object) -> bool:
        return self._read_entry(encode_key(key)) is not None

    def __iter__(self) -> Iterator[K]:
        return self.keys()

    def keys(self) -> Iterator[K]:
        return (decode_key(entry) for entry, _ in self._live_entries())

    def values(self) -> Iterator[V]:
        return (self._given(stored) for _, stored in self._live_entries())

    def items(self) -> Iterator[tuple[K, V]]:
        return ((decode_key(entry), self._given(stored)) for entry, stored in self._live_entries())
