"""Timers of keys, on event time and on wall time."""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from gearpy.core.base.times import EventTime, event_time_ms
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.state.encoding.coders import INT
from gearpy.state.encoding.keys import decode_key
from gearpy.state.kinds.expiry import cells_of
from gearpy.state.kinds.place import Place, StateClock, namespace_of
from gearpy.state.stores.cells import Tag, entry_cell, split_cell
from gearpy.state.stores.store import CellStore

#: Which time a timer is on.
Domain: TypeAlias = Literal["event", "processing"]
DOMAINS: Final[tuple[Domain, ...]] = ("event", "processing")

#: How many timers may fire one after another, each set by the one before, while time stands still.
_CHAIN_MAX: Final = 1000
#: A queue is made anew when it has more entries than twice the timers and this.
_SPARE_ENTRIES: Final = 1000


class KeyTimer(NamedTuple):
    """A timer that is due. One of a key, namespace and tag is there at a time in each domain."""

    key: Any
    namespace: Any
    tag: str
    at_ms: int
    domain: Domain


class _DomainTimers:
    """The timers of one domain: cells with their times, and a queue of the cells.

    Invariant: every timer is in the queue or among those ``held``, at its time or before.
    """

    def __init__(self, store: CellStore, tag: Tag, domain: Domain) -> None:
        self.domain = domain
        self.tag = tag.encode()
        self._part = self._table = b""  # The namespace that was at hand last, and its table.
        self._store = store
        self.queue = store.time_queue(f"timers {tag.name}")
        self.timers = 0
        self.first_ms = MAX_MS  #: No timer in the queue is due before.
        self._entries = 0
        #: Timers that are set meanwhile, while others fire.
        self.held: list[tuple[int, bytes]] | None = None
        self._fill()

    def _fill(self) -> None:
        self.timers = self._entries = 0
        for table, key, entry, stored in cells_of(self._store, self.tag):
            assert entry is not None, "timers are entries of their key"
            self.timers += 1
            self._enqueue(_time_of(stored), entry_cell(table, key, entry))
        self._look()

    def _look(self) -> None:
        first_ms = self.queue.first_ms
        self.first_ms = MAX_MS if first_ms is None else first_ms

    def _enqueue(self, at_ms: int, cell: bytes) -> None:
        if self.held is not None:
            self.held.append((at_ms, cell))
            return
        self._entries += 1
        self.queue.add(at_ms, cell)
        if at_ms < self.first_ms:  # noqa: PLR1730 - `min` is three times as slow
            self.first_ms = at_ms

    def set(self, place: Place, name: bytes, at_ms: int) -> None:
        if place.part is not self._part:
            self._part, self._table = place.part, self.tag + place.part
        table, key = self._table, place.key
        stored = self._store.get_entry(table, key, name)
        before_ms = stored if type(stored) is int or stored is None else _time_of(stored)
        if before_ms == at_ms:
            return
        self._store.put_entry(table, key, name, at_ms)
        self.timers += before_ms is None
        # One that is later than before stays where it is: it is put off when its turn comes. So
        # a timer that is moved on with each record does not fill the queue.
        if before_ms is None or at_ms < before_ms:
            self._enqueue(at_ms, entry_cell(table, key, name))
            if self._entries > 2 * self.timers + _SPARE_ENTRIES and self.held is None:
                self.queue.clear()
                self._fill()

    def delete(self, place: Place, name: bytes) -> None:
        """Take a timer away, if it is there."""
        table = self.tag + place.part
        if self._store.get_entry(table, place.key, name) is not None:
            self._store.delete_entry(table, place.key, name)
            self.timers -= 1

    def clear(self, place: Place) -> None:
        for name, _ in self._store.entries(self.tag + place.part, place.key):
            self.delete(place, name)

    def pop(self, until_ms: int) -> tuple[int, bytes, bytes, bytes] | None:
        """Take out the first timer up to a time: that, table, key and tag."""
        while (first_ms := self.queue.first_ms) is not None and first_ms <= until_ms:
            first_ms, cell = self.queue.pop()
            self._entries -= 1
            table, key, name = split_cell(cell)
            assert name is not None, "timers are entries of their key"
            stored = self._store.get_entry(table, key, name)
            if stored is None:
                continue
            if (at_ms := _time_of(stored)) > first_ms:
                self._entries += 1
                self.queue.add(at_ms, cell)
                continue
            self._store.delete_entry(table, key, name)
            self.timers -= 1
            self._look()
            return at_ms, table, key, name
        self._look()
        return None

    def let_go(self) -> None:
        """Take the timers that were ``held`` back."""
        held, self.held = self.held, None
        for at_ms, cell in held or ():
            self._enqueue(at_ms, cell)


class KeyTimers:
    """Timers of the key and namespace that the state is at; they come back after a restart.

    Each is set for a time and may have a tag, so that a key can have several. Setting one again
    moves it. They are given to `Task.on_key_timer`, the state being at their key and namespace:
    those on event time when the watermark has reached their time, those on wall time when that
    has. Equal times are in the order of namespace, key and tag.

    At the end of a bounded stream the watermark is `MAX_MS`, and all timers on event time fire,
    also those that are set meanwhile. A timer that sets itself again for ever must not do so then,
    nor for a time that is not later than its own.

    Example:
        >>> from gearpy.state.open import heap_state
        >>> state = heap_state()
        >>> state.key = "ada"
        >>> state.timers.event_time(2000, "logout")
        >>> state.timers.event_time(1000)
        >>> [(timer.key, timer.tag, timer.at_ms) for timer in state.timers.due_event(5000)]
        [('ada', '', 1000), ('ada', 'logout', 2000)]
    """

    def __init__(
        self,
        place: Place,
        clock: StateClock,
        *,
        path: tuple[str, ...],
        move: Callable[[bytes, bytes], None],
    ) -> None:
        self._place = place
        self._clock = clock
        self._move = move
        store = place.store
        #: Those on event time; its ``first_ms`` is asked before each record.
        self.event = _DomainTimers(store, timers_tag(path, "event"), "event")
        self._processing = _DomainTimers(store, timers_tag(path, "processing"), "processing")
        #: While timers on event time fire: up to where one that is set comes in a chain.
        self._stands_until_ms: int | None = None
        self._link = 0  # Number in its chain of the timer that fires.
        self._links: dict[tuple[bytes, bytes, bytes], int] = {}
        self._refusal = ""

    def event_time(self, at_ms: EventTime, tag: str = "") -> None:
        """Set a timer on event time: it fires when no older record will come.

        Raises:
            ConfigError: the task gets several records at once (`Task.on_batch`).
        """
        if self._refusal:
            raise ConfigError(self._refusal)
        name, place = tag.encode("utf-8", "surrogatepass") if tag else b"", self._place
        at_ms = _time(at_ms)
        self.event.set(place, name, at_ms)
        if self._stands_until_ms is not None:
            which = (self.event.tag + place.part, place.key, name)
            stands = at_ms <= self._stands_until_ms
            self._links[which] = self._link + 1 if stands else 0

    def processing_time(self, at_ms: EventTime, tag: str = "") -> None:
        """Set a timer on wall time, in ms since the epoch."""
        self._processing.set(self._place, tag.encode("utf-8", "surrogatepass"), _time(at_ms))

    def delete_event_time(self, tag: str = "") -> None:
        self.event.delete(self._place, tag.encode("utf-8", "surrogatepass"))

    def delete_processing_time(self, tag: str = "") -> None:
        self._processing.delete(self._place, tag.encode("utf-8", "surrogatepass"))

    def clear(self) -> None:
        self.event.clear(self._place)
        self._processing.clear(self._place)

    # -- for the runner --------------------------------------------------------------------------

    def refuse_event(self, why: str) -> None:
        """Let no timer on event time be set any more."""
        self._refusal = why

    def due_event(self, watermark_ms: int) -> Iterator[KeyTimer]:
        """Take out the timers on event time that are due, in order of time, one by one.

        While one is dealt with, its time is that by which state expires. What it sets up to the
        watermark fires as well. To be called before `KeyedState.advance`.

        Raises:
            ConfigError: one sets itself again and again, at the end of the stream or for a time
                that is not later than its own.
        """
        try:
            for at_ms, table, key, name in self._due(self.event, watermark_ms):
                self._clock.advance(at_ms)
                self._clock.time_ms = at_ms
                timer = self._timer(self.event, at_ms, table, key, name)
                self._link = self._links.pop((table, key, name), 0)
                if self._link >= _CHAIN_MAX:
                    where = f"for {at_ms} ms or earlier, where event time is: set it for a later"
                    if watermark_ms == MAX_MS:
                        where = "at the end of the stream, where the watermark is MAX_MS: it must"
                    raise ConfigError(
                        f"timer {timer.tag!r} of key {timer.key!r} has set itself {_CHAIN_MAX} "
                        f"times {where} {'not do so then' if watermark_ms == MAX_MS else 'time'}"
                    )
                self._stands_until_ms = MAX_MS if watermark_ms == MAX_MS else at_ms
                yield timer
        finally:
            self._stands_until_ms, self._links = None, {}

    def due_processing(self, now_ms: int) -> Iterator[KeyTimer]:
        """Take out the timers on wall time that are due, in order of time, one by one.

        A timer set meanwhile fires at the next call.
        """
        self._processing.held = []
        try:
            for each in self._due(self._processing, now_ms):
                yield self._timer(self._processing, *each)
        finally:
            self._processing.let_go()

    @property
    def processing_from_ms(self) -> int:
        """The time before which no timer on wall time is due; `MAX_MS` if there is none."""
        return self._processing.first_ms if self._processing.timers else MAX_MS

    def _due(
        self, timers: _DomainTimers, until_ms: int
    ) -> Iterator[tuple[int, bytes, bytes, bytes]]:
        key, part, time_ms = self._place.key, self._place.part, self._clock.time_ms
        try:
            while (due := timers.pop(until_ms)) is not None:
                self._move(due[2], due[1][len(timers.tag) :])
                yield due
        finally:
            self._move(key, part)
            self._clock.time_ms = time_ms

    def _timer(
        self, timers: _DomainTimers, at_ms: int, table: bytes, key: bytes, name: bytes
    ) -> KeyTimer:
        namespace = namespace_of(table[len(timers.tag) :])
        tag = name.decode("utf-8", "surrogatepass")
        return KeyTimer(decode_key(key), namespace, tag, at_ms, timers.domain)


def timers_tag(path: tuple[str, ...], domain: Domain) -> Tag:
    return Tag((*path, f"#{domain}"), "timers", INT.name)


def _time(at_ms: EventTime) -> int:
    # The end of the stream is no event time, but timers can wait for it.
    return at_ms if type(at_ms) is int and MIN_MS < at_ms <= MAX_MS else event_time_ms(at_ms)


def _time_of(stored: Any) -> int:
    at_ms: int = INT.decode(stored) if type(stored) is bytes else stored
    return at_ms
