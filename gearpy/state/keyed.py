"""The keyed state of a task: `TaskContext.state`."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, overload

from gearpy.core.base.times import Duration
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.type_variables import T
from gearpy.state.encoding.coders import MSGPACK, CoderLike, coder_named
from gearpy.state.encoding.keys import decode_key, encode_key
from gearpy.state.kinds.bulk import Bulks, BulkState, Copies
from gearpy.state.kinds.entries import ListState, MapState, SetState
from gearpy.state.kinds.expiry import LIST_SIZE, ClockName, Expiry, Ttl, cells_of
from gearpy.state.kinds.handle import Binding
from gearpy.state.kinds.place import NO_NAMESPACE, Place, StateClock, namespace_of, part_of
from gearpy.state.kinds.timers import DOMAINS, KeyTimers, timers_tag
from gearpy.state.kinds.values import CombiningState, ReducingState, ValueState
from gearpy.state.stores.cells import Tag, is_collection, is_list
from gearpy.state.stores.delta import joined
from gearpy.state.stores.heap import HeapStore
from gearpy.state.stores.store import CellStore, Section, StateDelta

_CLOCKS: Final = ("event", "processing")


class Declared:
    """All tags of one store, by their path.

    Invariant: no two tags in the store have the same path.
    """

    def __init__(self, store: CellStore, clock: StateClock) -> None:
        self.store = store
        self.clock = clock
        self.bulks = Bulks()
        self.has_begun = False
        self._tags: dict[tuple[str, ...], Tag] = {}
        self._ttls: dict[tuple[str, ...], Ttl | None] = {}
        self._restored: dict[tuple[str, ...], Tag] = {}
        self._expiries: dict[ClockName, Expiry] = {}

    def begin(self) -> None:
        """Read the restored tags. Nothing may be loaded from then on."""
        if not self.has_begun:
            self.has_begun = True
            restored = {Tag.decode(table) for table in self.store.tables(b"")}
            self._restored = {tag.path: tag for tag in restored}

    def declare(self, tag: Tag, duration: Duration | None, clock: ClockName) -> Ttl | None:
        """Take a tag; return the time to live of its values."""
        tag.encode()  # Refuses what is no name.
        ttl = self._ttl(duration, clock)
        if (before := self._tags.get(tag.path)) is not None:
            before_ttl = self._ttls[tag.path]
            if before != tag:
                raise ConfigError(
                    f"state {tag.name!r} is declared as {before}, and as {tag}: give one of them "
                    "another name"
                )
            if str(before_ttl) != str(ttl):
                raise ConfigError(
                    f"state {tag.name!r} is declared with a ttl of {before_ttl}, and of {ttl}: "
                    "give one of them another name"
                )
            return before_ttl
        self.begin()
        restored = self._restored.get(tag.path, tag)
        if restored not in (tag, tag._replace(expires=False)):
            raise ConfigError(
                f"state {tag.name!r} was kept as {restored}, and is declared as {tag}: declare it "
                "as before, or under another name, which begins empty"
            )
        if ttl is not None and tag.path in self._restored:
            if restored != tag:
                _stamp_all(self.store, restored, tag, ttl)
            ttl.track(self.store, tag.encode())
        self._tags[tag.path], self._ttls[tag.path] = tag, ttl
        return ttl

    def add(self, tag: Tag) -> None:
        self._tags[tag.path] = tag

    def below(self, path: tuple[str, ...]) -> list[Tag]:
        known = self._restored | self._tags
        return [tag for tag in known.values() if tag.path[: len(path)] == path]

    def sweep(self) -> None:
        for expiry in self._expiries.values():
            expiry.sweep()

    def _ttl(self, duration: Duration | None, name: ClockName) -> Ttl | None:
        if name not in _CLOCKS:
            raise ConfigError(f"no clock is named {name!r}: choose one of {', '.join(_CLOCKS)}")
        if duration is None:
            return None
        if name not in self._expiries:
            clock = self.clock
            now_ms = (lambda: clock.event_ms) if name == "event" else clock.now_ms
            self._expiries[name] = Expiry(self.store, now_ms, name)
        return Ttl(duration, name, self.clock, self._expiries[name])


def _stamp_all(store: CellStore, restored: Tag, tag: Tag, ttl: Ttl) -> None:
    """Let values without a time to live expire as if they were written now."""
    old, new = restored.encode(), tag.encode()
    for table, key, entry, stored in [*cells_of(store, old)]:
        target = new + table[len(old) :]
        if entry is None:
            store.delete(table, key)
            store.put(target, key, ttl.stamped(stored))
        else:
            is_size = entry == LIST_SIZE and is_list(table)
            store.delete_entry(table, key, entry)
            store.put_entry(target, key, entry, stored if is_size else ttl.stamped(stored))


_State = TypeVar("_State", bound=Any)


class KeyedState:
    """Keeps values and timers for each key; they come back after a restart.

    States are declared once, by a tag, and then used for every key: they are always those of
    ``key`` and ``namespace``. At first these are `NO_KEY`, which is the task itself, and None. In
    a stream that is grouped by key the key is set before each record is given to the task.

    Restoring reads what was kept under the same tag, kind and coder; time to live may be added and
    changed, but not left out.

    Runs on: the task's thread.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> visits = state.value("visits", coder="int", default=0)
        >>> pages = state.map("pages", coder="int", ttl="1h")
        >>> for user, page in [("ada", "home"), ("bob", "home"), ("ada", "cart")]:
        ...     state.key = user
        ...     visits.set(visits.get() + 1)
        ...     pages[page] = pages.get(page, 0) + 1
        >>> state.key = "ada"
        >>> visits.get(), list(pages.items())
        (2, [('cart', 1), ('home', 1)])
        >>> list(state.keys("visits"))
        ['ada', 'bob']
        >>> state.clear()
        >>> list(state.keys("visits"))
        ['bob']
    """

    def __init__(
        self, store: CellStore, *, now_ms: Callable[[], int], watermark_ms: int = MIN_MS
    ) -> None:
        clock = StateClock(now_ms, watermark_ms)
        self._set_up(Declared(store, clock), ())

    def _set_up(self, declared: Declared, path: tuple[str, ...]) -> None:
        self._declared = declared
        self._path = path
        self._clock = declared.clock
        self._place = Place(declared.store)
        self._scopes: dict[str, KeyedState] = {}
        self._states: dict[str, Any] = {}
        self._timers: KeyTimers | None = None
        #: Reads the keys of a batch; set by the task that has the state.
        self.read_keys: Callable[[Batch], list[bytes]] | None = None

    # -- where it is -------------------------------------------------------------------------

    @property
    def key(self) -> Any:
        """The current key, in its plainest form: a tuple where a NamedTuple was set, for example.

        Setting it sets that of all scopes of this state as well.
        """
        return decode_key(self._place.key)

    @key.setter
    def key(self, key: Any) -> None:
        self._place.key = encode_key(key)
        if self._scopes:
            self._move(self._place.key, self._place.part)

    @property
    def namespace(self) -> Any:
        """The current namespace, such as a window; anything that can be a key, None for none.

        Setting it sets that of all scopes of this state as well.
        """
        return namespace_of(self._place.part)

    @namespace.setter
    def namespace(self, namespace: Any) -> None:
        self._move(self._place.key, part_of(namespace))

    def enter(self, key: bytes, time_ms: int) -> None:
        """Be at a record: at its key, as bytes, in no namespace, at its event time in ms."""
        place = self._place
        place.key, place.part = key, NO_NAMESPACE
        self._clock.time_ms = time_ms
        if self._scopes:
            self._move(key, NO_NAMESPACE)

    def keys_of(self, batch: Batch) -> list[bytes]:
        """Return the key of each record of a batch, encoded, for `ValueState.accessors`.

        For `Task.on_batch`. Behind ``key_by`` that gets its records one by one, as timers on event
        time may fire between them, unless the task has ``keeps_times`` and a bad record is a
        failure.

        Raises:
            ConfigError: a key can be none, or this is not ``context.state`` of a task.
        """
        if self.read_keys is None:
            raise ConfigError("keys_of knows the keys where it is context.state.keys_of of a task")
        return self.read_keys(batch)

    def leave(self, key: Any) -> None:
        """Be at no record, but at this key, in no namespace."""
        self._move(encode_key(key), NO_NAMESPACE)

    def _move(self, key: bytes, part: bytes) -> None:
        self._place.key, self._place.part = key, part
        for scope in self._scopes.values():
            scope._move(key, part)  # noqa: SLF001 -- the same class

    @property
    def time_ms(self) -> int:
        """Event time of the record at hand; the time to live of written values begins there.

        `MIN_MS` where there is none: then the watermark counts.
        """
        return self._clock.time_ms

    @time_ms.setter
    def time_ms(self, time_ms: int) -> None:
        self._clock.time_ms = time_ms

    @property
    def event_ms(self) -> int:
        """Event time, in ms, as of which state has expired."""
        return self._clock.event_ms

    def scope(self, name: str) -> "KeyedState":
        """Return state in the same store with tags and timers of its own.

        For parts of a task that do not know each other's tags. The same name gives the same scope.
        Its key can be set by itself; it does not change that of this state.
        """
        if name not in self._scopes:
            Tag((*self._path, name), "value", MSGPACK.name).encode()  # Refuses what is no name.
            scope = object.__new__(KeyedState)
            scope._set_up(self._declared, (*self._path, name))
            scope._move(self._place.key, self._place.part)
            self._scopes[name] = scope
        return self._scopes[name]

    # -- states ------------------------------------------------------------------------------

    @overload
    def value(
        self,
        tag: str,
        *,
        coder: CoderLike = "msgpack",
        default: None = None,
        ttl: Duration | None = None,
        clock: ClockName = "event",
    ) -> ValueState[Any]: ...

    @overload
    def value(
        self,
        tag: str,
        *,
        coder: CoderLike = "msgpack",
        default: T,
        ttl: Duration | None = None,
        clock: ClockName = "event",
    ) -> ValueState[T]: ...

    def value(
        self,
        tag: str,
        *,
        coder: CoderLike = "msgpack",
        default: Any = None,
        ttl: Duration | None = None,
        clock: ClockName = "event",
    ) -> ValueState[Any]:
        """Declare one value for each key.

        Args:
            tag: names the state in this scope, in checkpoints too.
            coder: how values are stored.
            default: what a key without a value has.
            ttl: a value that was written so long ago is no longer there.
            clock: whether ``ttl`` counts event time, from the record that wrote the value to the
                watermark, or wall time ("processing").

        Raises:
            ConfigError: the tag is that of another state, here or in the checkpoint.
        """
        return self._known(ValueState(self._bind(tag, "value", coder, ttl, clock), default))

    def list(
        self,
        tag: str,
        *,
        coder: CoderLike = "msgpack",
        ttl: Duration | None = None,
        clock: ClockName = "event",
    ) -> ListState[Any]:
        """Declare values of each key in the order in which they come; see `value`."""
        return self._known(ListState(self._bind(tag, "list", coder, ttl, clock)))

    bag = list  # noqa: A003 -- the method above, under Gearpump's name

    def set(
        self, tag: str, *, ttl: Duration | None = None, clock: ClockName = "event"
    ) -> SetState[Any]:
        """Declare different values of each key; see `value`."""
        return self._known(SetState(self._bind(tag, "set", MSGPACK.name, ttl, clock)))

    def map(
        self,
        tag: str,
        *,
        coder: CoderLike = "msgpack",
        ttl: Duration | None = None,
        clock: ClockName = "event",
    ) -> MapState[Any, Any]:
        """Declare a dict for each key; the coder is that of its values. See `value`."""
        return self._known(MapState(self._bind(tag, "map", coder, ttl, clock)))

    def reducing(
        self,
        tag: str,
        function: Callable[[Any, Any], Any],
        *,
        coder: CoderLike = "msgpack",
        ttl: Duration | None = None,
        clock: ClockName = "event",
    ) -> ReducingState[Any]:
        """Declare values of each key folded by ``function(kept, value)``; see `value`."""
        binding = self._bind(tag, "reducing", coder, ttl, clock)
        return self._known(ReducingState(binding, function))

    def combining(
        self,
        tag: str,
        *,
        create: Callable[[], Any],
        add: Callable[[Any, Any], Any],
        result: Callable[[Any], Any] | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
        coder: CoderLike = "msgpack",
        ttl: Duration | None = None,
        clock: ClockName = "event",
    ) -> CombiningState[Any, Any]:
        """Declare values of each key gathered in an accumulator; see `value`, `CombiningState`."""
        binding = self._bind(tag, "combining", coder, ttl, clock)
        return self._known(
            CombiningState(binding, create=create, add=add, result=result, merge=merge)
        )

    def bulk(self, *tags: str, operator: str, is_keyed: bool = True) -> BulkState:
        """Declare pairs that the caller keeps by itself, in its own dicts. For gearpy's own stages.

        Args:
            tags: name them, below scopes of this one; given once.
            operator: whom to blame for what cannot be stored.
            is_keyed: records come to the task by the keys of the pairs.
        """
        self._declared.begin()
        return self._declared.bulks.declare((*self._path, *tags), operator, is_keyed=is_keyed)

    def _bind(
        self, name: str, kind: str, coder: CoderLike, ttl: Duration | None, clock: ClockName
    ) -> Binding:
        if name.startswith("#"):
            raise ConfigError(f"a state cannot have the name {name!r}: '#' begins those of gearpy")
        used = coder_named(coder)
        tag = Tag((*self._path, name), kind, used.name, expires=ttl is not None)
        return Binding(tag, self._place, used, self._declared.declare(tag, ttl, clock))

    def _known(self, state: _State) -> _State:
        self._states[state.binding.tag.path[-1]] = state
        return state

    @property
    def timers(self) -> KeyTimers:
        """Timers of the current key and namespace."""
        if self._timers is None:
            self._declared.begin()
            for domain in DOMAINS:
                self._declared.add(timers_tag(self._path, domain))
            self._timers = KeyTimers(self._place, self._clock, path=self._path, move=self._move)
        return self._timers

    # -- all of a key, all keys ----------------------------------------------------------------

    def keys(self, tag: str) -> Iterator[Any]:
        """Yield all keys that have state under a tag in the current namespace.

        In a fixed order. State may be changed meanwhile; whether keys that this adds or takes away
        are among them is not said.

        Raises:
            ConfigError: no such state was declared.
        """
        if tag not in self._states:
            raise ConfigError(f"no state {tag!r} was declared here: declare it in on_start")
        return (decode_key(key) for key in self._states[tag].keys_here() if key)

    def clear(self) -> None:
        """Forget all that is kept for the current key in the current namespace, timers as well."""
        store, place = self._declared.store, self._place
        self._declared.begin()
        for tag in self._declared.below(self._path):
            table = tag.encode() + place.part
            clear = store.clear_entries if is_collection(table) else store.delete
            clear(table, place.key)

    # -- for the runner ------------------------------------------------------------------------

    def load(self, section: Section) -> None:
        """Load a section of a checkpoint, oldest sections first; only before the first use.

        Raises:
            ProtocolError: it is no section.
        """
        assert not self._declared.has_begun, "state is loaded before it is declared"
        rest = self._declared.bulks.load(section)
        if rest is not None:
            self._declared.store.load(rest)

    def begin_at(self, watermark_ms: int) -> None:
        """Say how far event time is, if that was not known when this was made."""
        self._clock.advance(watermark_ms)

    @property
    def is_in_memory(self) -> bool:
        """The state may be loaded on one thread and used on another."""
        return isinstance(self._declared.store, HeapStore)

    def snapshot(self) -> StateDelta | None:
        """Hand over the changes since the last call; None if there are none."""
        delta = self.begin_snapshot()
        self.copies.finish()
        return delta

    def begin_snapshot(self, *, of_all: bool = False) -> StateDelta | None:
        """Hand over the changes since the last call; they are whole when `copies` are.

        With ``of_all`` they are all of the state, and nothing handed over before is read any more.
        """
        declared = self._declared
        declared.sweep()
        if not of_all:
            return joined([declared.store.snapshot(), *declared.bulks.snapshot()])
        cells, copying = declared.store.snapshot_of_all()
        self.copies.add(copying)
        return joined([cells, *declared.bulks.snapshot()])

    def tell_again(self) -> bool:
        """Have all bulk state told in the next snapshot, which is to be of all.

        Returns:
            Whether that can be done: none was kept that nobody has declared.
        """
        return self._declared.bulks.tell_again()

    @property
    def copies(self) -> Copies:
        """The copies for the snapshot that has begun."""
        return self._declared.bulks.copies

    def advance(self, watermark_ms: int) -> None:
        """Move event time on: expired values are gone. After `KeyTimers.due_event`."""
        self._clock.advance(watermark_ms)
        self._clock.time_ms = MIN_MS
        self._declared.sweep()

    def goes_by_records(self) -> None:
        """Let state expire as of the record at hand, as records come in the order of event time."""
        self._clock.goes_by_records = True

    @property
    def size_bytes(self) -> int:
        """The size of the cells and of all bulk state, estimated from some of it."""
        return self._declared.store.size_bytes + self._declared.bulks.size_bytes

    def close(self) -> None:
        """Release memory and files. Does nothing when called again."""
        self._declared.store.close()
