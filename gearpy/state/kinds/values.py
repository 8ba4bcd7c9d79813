"""States with one value for each key: values, and results of folding records.

A state is declared once, in `Task.on_start`, and is then that of the key and namespace at which
the `KeyedState` is. A value given to a state, or got from it, is the user's own: changing it
later changes nothing in the state.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from gearpy.errors import ConfigError
from gearpy.state.kinds.expiry import Ttl
from gearpy.state.kinds.handle import MISSING, Binding, State
from gearpy.state.stores.heap import HeapStore
from gearpy.state.stores.store import Stored

V = TypeVar("V")
R = TypeVar("R")


class _Single(State):
    """A state with one value for each key."""

    def clear(self) -> None:
        self._store.delete(self._here(), self._place.key)

    @property
    def is_empty(self) -> bool:
        return not self._is_there(self._store.get(self._here(), self._place.key))

    def keys_here(self) -> Iterator[bytes]:
        """Yield all keys that have a value in the namespace at hand, encoded."""
        table = self._here()
        for key in self._store.keys(table):
            if self._is_there(self._store.get(table, key)):
                yield key


class ValueState(_Single, Generic[V]):
    """One value for each key. Gearpump PR #190: `ValueState`.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> total = state.value("total", coder="int", default=0)
        >>> for name, points in [("ada", 3), ("bob", 1), ("ada", 4)]:
        ...     state.key = name
        ...     total.set(total.get() + points)
        >>> state.key = "ada"
        >>> total.get()
        7
    """

    def __init__(self, binding: Binding, default: V | None = None) -> None:
        super().__init__(binding)
        self._default: Stored = None if default is None else self._kept(default)

    def get(self) -> V:
        if self._ttl is None:
            place = self._place
            table = self._table if place.part is self._part else self._here()
            kept = self._store.get(table, place.key)
            if kept is not None:
                found: V = self._decode(kept) if type(kept) is bytes else kept
                return found
        elif (value := self._read(MISSING)) is not MISSING:
            living: V = value
            return living
        # Made anew each time: it may be a list, which the user then changes.
        stored = self._default
        default: V = self._decode(stored) if type(stored) is bytes else stored
        return default

    def accessors(self) -> tuple[Callable[[bytes], V | None], Callable[[bytes, V | None], None]]:
        """Return functions that read and write the value of any key, given as bytes, for a batch.

        None stands for no value; the default does not count. The namespace is that at hand, and
        no other method of the state is called while they are used. Where the state has a time to
        live, set ``context.state.time_ms`` to the event time of each record. `KeyedState.keys_of`
        gives the keys of a batch.

        Example:
            >>> from gearpy.state.encoding.keys import encode_keys
            >>> from gearpy.state.open import heap_state
            >>> total = heap_state().value("total")
            >>> read, write = total.accessors()
            >>> for key, points in zip(encode_keys(["ada", "bob", "ada"]), [3, 1, 4]):
            ...     write(key, (read(key) or 0) + points)
            >>> [read(key) for key in encode_keys(["ada", "bob"])]
            [7, 1]
        """
        place, keeps = self._place, self._keeps
        if not isinstance(self._store, HeapStore):

            def move_and_read(key: bytes) -> V | None:
                place.key = key
                found: V | None = self._read()
                return found

            def move_and_write(key: bytes, value: V | None) -> None:
                place.key = key
                if value is None:
                    self.clear()
                else:
                    self._write(value)

            return move_and_read, move_and_write

        if self._ttl is not None:
            return self._accessors_of_living(self._store, self._ttl)
        values, changes = self._store.values_of(self._here())
        decode, atoms, encoded = self._decode, self._atoms, self._encoded

        def read(key: bytes) -> V | None:
            stored = values.get(key)
            return decode(stored) if type(stored) is bytes else stored

        def write(key: bytes, value: V | None) -> None:
            if value is not None:
                is_kept = type(value) in atoms or keeps(value)
                values[key] = changes[key] = value if is_kept else encoded(value)
            elif values.pop(key, None) is not None:
                changes[key] = None

        return read, write

    def _accessors_of_living(
        self, store: HeapStore, ttl: Ttl
    ) -> tuple[Callable[[bytes], V | None], Callable[[bytes, V | None], None]]:
        """Return `accessors` of values of which some may have expired."""
        ttl.free()  # Not meanwhile, as a table that it empties is another one afterwards.
        table, kept = self._here(), self._kept
        values, changes = store.values_of(table)

        def read(key: bytes) -> V | None:
            stored = values.get(key)
            if stored is None or ttl.is_over(stored):
                return None
            found: V | None = self._given(stored)
            return found

        def write(key: bytes, value: V | None) -> None:
            if value is not None:
                stamped = ttl.stamped(kept(value))
                if key not in values:
                    ttl.note(table + key, stamped[0])
                values[key] = changes[key] = stamped
            elif values.pop(key, None) is not None:
                changes[key] = None

        return read, write

    def set(self, value: V) -> None:
        self._write(value)


class ReducingState(_Single, Generic[V]):
    """Values of each key folded into one of the same kind, by ``function(kept, value)``.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> highest = state.reducing("highest", max)
        >>> state.key = "ada"
        >>> [highest.add(points) for points in (3, 7, 5)]
        [3, 7, 7]
    """

    def __init__(self, binding: Binding, function: Callable[[V, V], V]) -> None:
        super().__init__(binding)
        self._function = function

    def add(self, value: V) -> V:
        """Fold a value in; return the result of the key."""
        kept = self._read(MISSING)
        after = value if kept is MISSING else self._function(kept, value)
        self._write(after)
        return after

    def get(self) -> V | None:
        """Return the result of the key; None without any value."""
        kept: V | None = self._read()
        return kept

    def merge(self, *namespaces: Any) -> None:
        """Fold in the values of the key in other namespaces, and clear them there."""

        def take_in() -> None:
            if (value := self._read(MISSING)) is not MISSING:
                found.append(value)

        found: list[V] = []
        self._absorb(namespaces, take_in)
        for value in found:
            self.add(value)


class CombiningState(_Single, Generic[V, R]):
    """Values of each key gathered in an accumulator, from which a result is made.

    Args:
        create: makes an accumulator without values.
        add: ``add(accumulator, value)`` returns the accumulator with the value.
        result: makes of an accumulator what `get` returns; the accumulator itself without it.
        merge: ``merge(one, other)`` returns an accumulator with the values of both.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> mean = state.combining(
        ...     "mean",
        ...     create=lambda: (0, 0),
        ...     add=lambda kept, value: (kept[0] + value, kept[1] + 1),
        ...     result=lambda kept: kept[0] / kept[1] if kept[1] else None,
        ... )
        >>> state.key = "ada"
        >>> mean.add(3)
        >>> mean.add(4)
        >>> mean.get()
        3.5
    """

    def __init__(
        self,
        binding: Binding,
        *,
        create: Callable[[], Any],
        add: Callable[[Any, V], Any],
        result: Callable[[Any], R] | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(binding)
        self._create = create
        self._add = add
        self._result = result
        self._merge = merge

    def add(self, value: V) -> None:
        self._write(self._add(self._accumulator(), value))

    def get(self) -> R:
        kept: R = self._accumulator()
        return kept if self._result is None else self._result(kept)

    def merge(self, *namespaces: Any) -> None:
        """Put in the values of the key in other namespaces, and clear them there.

        Raises:
            ConfigError: the state was declared without ``merge``.
        """
        if self._merge is None:
            raise ConfigError(
                f"state {self.binding.tag.name!r} cannot merge namespaces: declare it with merge="
            )
        found: list[Any] = []

        def take_in() -> None:
            if (kept := self._read(MISSING)) is not MISSING:
                found.append(kept)

        self._absorb(namespaces, take_in)
        for other in found:
            self._write(self._merge(self._accumulator(), other))

    def _accumulator(self) -> Any:
        kept = self._read(MISSING)
        return self._create() if kept is MISSING else kept
