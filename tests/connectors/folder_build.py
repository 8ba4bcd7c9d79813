"""A folder in memory that can lose power, for writers of folders."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import BinaryIO, NamedTuple

from tests.storage.file_build import Content, MemoryFile


@dataclass
class Names:
    """Which files there are."""

    pending: dict[str, Content] = field(default_factory=dict)
    shown: dict[str, Content] = field(default_factory=dict)

    def files(self) -> list[Content]:
        """Return all files."""
        return [*self.pending.values(), *self.shown.values()]


class Change(NamedTuple):
    """One change of names, which becomes durable when the names of its place do."""

    place: str
    apply: Callable[[Names], object]


class MemoryFolder:
    """`Folder` in memory.

    A rename is one change, durable with the names that readers see. A power cut keeps the first
    few of the changes that are not durable, in their order.

    ``on_step`` is called with the name of each step before it is done, and may raise instead.
    """

    place = "memory"

    def __init__(self, on_step: Callable[[str], None] = lambda _: None) -> None:
        self.on_step = on_step
        self.names = Names()
        self._durable = Names()
        self._changes: list[Change] = []  # Since then.

    def crash(self, rng: Random) -> None:
        """Lose power, then have it back: of what was not synced a random part is there."""
        for change in self._changes[: rng.randint(0, len(self._changes))]:
            change.apply(self._durable)
        for content in self._durable.files():
            content.data = content.durable = rng.choice([content.data, content.durable])
        self.names = Names(dict(self._durable.pending), dict(self._durable.shown))
        self._changes = []

    def make(self) -> None:
        """See `Folder`."""
        self.on_step("make")

    def pending(self) -> list[str]:
        """See `Folder`."""
        return list(self.names.pending)

    def shown(self) -> list[str]:
        """See `Folder`."""
        return list(self.names.shown)

    def create(self, name: str) -> BinaryIO:
        """See `Folder`."""
        self.on_step("create")
        if name in self.names.pending:
            raise FileExistsError(name)
        content = Content()
        self._change("pending", lambda names: names.pending.update({name: content}))
        return MemoryFile(content)

    def sync(self, file: BinaryIO) -> None:
        """See `Folder`."""
        self.on_step("sync")
        file.flush()
        assert isinstance(file, MemoryFile)
        file.content.durable = file.content.data

    def pending_size(self, name: str) -> int | None:
        """See `Folder`."""
        self.on_step("pending_size")
        content = self.names.pending.get(name)
        return None if content is None else len(content.data)

    def show(self, pending: str, *, name: str) -> bool:
        """See `Folder`."""
        self.on_step("show")
        content = self.names.pending.get(pending)
        if content is None:
            return False

        def rename(names: Names) -> None:
            names.pending.pop(pending, None)
            names.shown[name] = content

        self._change("shown", rename)
        return True

    def has_shown(self, name: str) -> bool:
        """See `Folder`."""
        return name in self.names.shown

    def drop_pending(self, name: str) -> None:
        """See `Folder`."""
        self.on_step("drop_pending")
        self._change("pending", lambda names: names.pending.pop(name, None))

    def drop_shown(self, name: str) -> None:
        """See `Folder`."""
        self.on_step("drop_shown")
        self._change("shown", lambda names: names.shown.pop(name, None))

    def sync_pending(self) -> None:
        """See `Folder`."""
        self.on_step("sync_pending")
        self._sync("pending")

    def sync_shown(self) -> None:
        """See `Folder`."""
        self.on_step("sync_shown")
        self._sync("shown")

    def text(self) -> str:
        """Return what readers see, in the order of names."""
        return "".join(self.names.shown[name].data.decode() for name in sorted(self.names.shown))

    def _change(self, place: str, apply: Callable[[Names], object]) -> None:
        apply(self.names)
        self._changes.append(Change(place, apply))

    def _sync(self, place: str) -> None:
        for change in self._changes:
            if change.place == place:
                change.apply(self._durable)
        self._changes = [change for change in self._changes if change.place != place]
