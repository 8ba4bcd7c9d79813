"""A store in memory that can lose power, for writers of window logs."""

import io
from collections.abc import Callable
from random import Random
from typing import BinaryIO, NamedTuple

from gearpy.windowlog.store import Found
from tests.storage.file_build import Content, MemoryFile


class Change(NamedTuple):
    """One change of names, which becomes durable when the names of its folder do."""

    folder: str
    apply: Callable[[dict[str, Content]], object]


class MemoryStore:
    """`Store` in memory.

    A move is one change, durable with the names of the folder it goes to. A power cut keeps the
    first few of the changes that are not durable, in their order.

    ``on_step`` is called with the name of each step before it is done, and may raise instead.
    """

    place = "memory"

    def __init__(self, *, now_ms: int = 1) -> None:
        self.on_step: Callable[[str], None] = lambda _: None
        self.now_ms = now_ms
        self.files: dict[str, Content] = {}
        self.durable: dict[str, Content] = {}
        self.changes: list[Change] = []  # Since then.

    def crash(self, rng: Random) -> None:
        """Lose power, then have it back: of what was not synced a random part is there."""
        for change in self.changes[: rng.randint(0, len(self.changes))]:
            change.apply(self.durable)
        for content in self.durable.values():
            content.data = content.durable = rng.choice([content.data, content.durable])
        self.files, self.changes = dict(self.durable), []

    def make(self) -> None:
        """See `Store`."""
        self.on_step("make")

    def names(self, folder: str = "") -> list[str]:
        """See `Store`."""
        self.on_step("names")
        below = [name.removeprefix(folder) for name in self.files if name.startswith(folder)]
        return [name for name in below if "/" not in name]

    def location(self, name: str) -> str:
        """See `Store`."""
        return f"memory/{name}"

    def open(self, name: str) -> BinaryIO:
        """See `Store`."""
        if name not in self.files:
            raise FileNotFoundError(name)
        return io.BytesIO(self.files[name].data)

    def read(self, name: str) -> bytes | None:
        """See `Store`."""
        content = self.files.get(name)
        return None if content is None else content.data

    def look(self, name: str) -> Found | None:
        """See `Store`."""
        self.on_step("look")
        content = self.files.get(name)
        return None if content is None else Found(len(content.data), content.changed_ms)

    def put(self, name: str, data: bytes) -> None:
        """See `Store`."""
        self.on_step("put")
        self.files[name] = self.durable[name] = Content(data, data, self.now_ms)

    def put_new(self, name: str, data: bytes) -> bool:
        """See `Store`."""
        if name in self.files:
            return False
        self.put(name, data)
        return True

    def create(self, name: str) -> BinaryIO:
        """See `Store`."""
        self.on_step("create")
        if name in self.files:
            raise FileExistsError(name)
        content = Content(changed_ms=self.now_ms)
        self._change(name, lambda files: files.update({name: content}))
        return MemoryFile(content)

    def sync(self, file: BinaryIO) -> None:
        """See `Store`."""
        self.on_step("sync")
        file.flush()
        assert isinstance(file, MemoryFile)
        file.content.durable = file.content.data

    def move(self, name: str, *, to: str) -> bool:
        """See `Store`."""
        self.on_step("move")
        content = self.files.get(name)
        if content is None:
            return False

        def rename(files: dict[str, Content]) -> None:
            files.pop(name, None)
            files[to] = content

        self._change(to, rename)
        return True

    def remove(self, name: str) -> None:
        """See `Store`."""
        self.on_step("remove")
        self._change(name, lambda files: files.pop(name, None))

    def sync_names(self, folder: str = "") -> None:
        """See `Store`."""
        self.on_step("sync_names")
        for change in self.changes:
            if change.folder == folder.rstrip("/"):
                change.apply(self.durable)
        self.changes = [each for each in self.changes if each.folder != folder.rstrip("/")]

    def _change(self, name: str, apply: Callable[[dict[str, Content]], object]) -> None:
        apply(self.files)
        self.changes.append(Change(name.rpartition("/")[0], apply))
