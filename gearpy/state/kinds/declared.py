"""The tags of a task's state: checks that the declared ones agree with those of a checkpoint."""

from typing import Final

from gearpy.core.base.times import Duration
from gearpy.errors import ConfigError
from gearpy.state.kinds.bulk import Bulks
from gearpy.state.kinds.expiry import LIST_SIZE, ClockName, Expiry, Ttl, cells_of
from gearpy.state.kinds.place import StateClock
from gearpy.state.stores.cells import Tag, is_list
from gearpy.state.stores.store import CellStore

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
