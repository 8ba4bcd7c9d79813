"""A folder in memory that can lose power: for tests, simulations, and clusters of one process."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from gearpy.errors import ConfigError
from gearpy.storage.folder.api import TEMPORARY, FileFacts, any_folder, parent_of
from gearpy.storage.folder.promises import ON_DISK

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True)
class _Content:
    """The bytes that processes see of a file, and the bytes that remain after a power cut."""

    data: bytes = b""
    durable: bytes = b""
    changed_ms: int = 0


_Files: TypeAlias = dict[str, _Content]


class _Change(NamedTuple):
    """One change of names, which becomes durable when the names of its folder do."""

    folder: str
    apply: Callable[[_Files], object]


class _MemoryFile(BytesIO):
    """A file whose content stays when it is closed."""

    def __init__(self, content: _Content) -> None:
        super().__init__()
        self.content = content

    def flush(self) -> None:
        self.content.data = self.getvalue()

    def close(self) -> None:
        if not self.closed:
            self.flush()
        super().close()


class MemoryFolder:
    """`LogFolder` in memory.

    A move is one change, durable with the names of the folder it goes to.

    Args:
        on_step: is called with the name of each step before it is done, and may raise instead.
        now_ms: the time of changes, which tests set.

    Runs on: one thread at a time.
    """

    place = "memory"

    promises = ON_DISK  #: See `Folder`.

    def __init__(self, on_step: Callable[[str], None] = lambda _: None, *, now_ms: int = 1) -> None:
        self.on_step = on_step
        self.now_ms = now_ms
        self.files: _Files = {}  #: The files that processes see.
        self._durable: _Files = {}
        self._changes: list[_Change] = []  # Made since `_durable`.
        self._number = 0  # The number of the last temporary file.
        self._is_locked = False

    def crash(self, rng: "Random | None" = None) -> None:
        """Lose power, then have it back.

        Unsynced bytes are lost. With ``rng``, a random part of it is kept: the first few of the
        changes of names, and the beginnings of files.
        """
        kept = 0 if rng is None else rng.randint(0, len(self._changes))
        for change in self._changes[:kept]:
            change.apply(self._durable)
        for content in self._durable.values():
            durable = content.durable
            data = durable if rng is None else _torn(content.data, durable, rng)
            content.data = content.durable = data
        self.files, self._changes = dict(self._durable), []
        self._is_locked = False

    def make(self, *folders: str) -> None:
        self.on_step("make")

    def hold(self, folder: str) -> None:
        """See `Folder`; there are no folders here but by their files."""

    def names(self, folder: str = "") -> list[str]:
        begin = f"{folder.rstrip('/')}/" if folder else ""
        below = [each[len(begin) :] for each in list(self.files) if each.startswith(begin)]
        return [name for name in below if "/" not in name]

    def walk(self, folder: str = "", into: Callable[[str], bool] = any_folder) -> list[str]:
        begin = f"{folder}/" if folder else ""
        below = [each for each in list(self.files) if each.startswith(begin)]
        if into is any_folder:
            return below
        return [each for each in below if all(map(into, each[len(begin) :].split("/")[:-1]))]

    def location(self, name: str) -> str:
        return f"{self.place}/{name}"

    def open(self, name: str) -> BinaryIO:
        data = self.read(name)
        if data is None:
            raise FileNotFoundError(f"{name} is not there")
        return BytesIO(data)

    def read(self, name: str) -> bytes | None:
        content = self.files.get(name)
        return None if content is None else content.data

    def look(self, name: str) -> FileFacts | None:
        self.on_step("look")
        content = self.files.get(name)
        return None if content is None else FileFacts(len(content.data), content.changed_ms)

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        data = b"".join(chunks)
        self._number += 1
        temporary = f"{name}.{self._number}{TEMPORARY}"
        self.append(temporary, data)
        self.move(temporary, to=name)
        self.sync_names(parent_of(name))

    def put(self, name: str, data: bytes) -> None:
        self.write(name, [data])

    def put_new(self, name: str, data: bytes) -> bool:
        if name in self.files:
            return False
        self.write(name, [data])
        return True

    def create(self, name: str) -> BinaryIO:
        self.on_step("create")
        if name in self.files:
            raise FileExistsError(name)
        return _MemoryFile(self._begun(name))

    def sync(self, file: BinaryIO) -> None:
        self.on_step("sync")
        file.flush()
        assert isinstance(file, _MemoryFile)
        file.content.durable = file.content.data

    def move(self, name: str, *, to: str) -> bool:
        self.on_step("move")
        content = self.files.get(name)
        if content is None:
            return False

        def rename(files: _Files) -> None:
            files.pop(name, None)
            files[to] = content

        self._change(to, rename)
        return True

    def remove(self, name: str) -> None:
        self.on_step("remove")
        if name in self.files:
            self._change(name, lambda files: files.pop(name, None))

    def remove_tree(self, name: str) -> None:
        for each in [name, *self.walk(name)]:
            self.remove(each)

    def prune(self, folder: str) -> None:
        self.sync_names(folder)

    def sync_names(self, folder: str = "") -> None:
        self._sync(lambda each: each == folder.rstrip("/"))

    def sync_tree(self, into: Callable[[str], bool]) -> None:
        self._sync(lambda each: not each or all(map(into, each.split("/"))))

    def _sync(self, is_meant: Callable[[str], bool]) -> None:
        self.on_step("sync_names")
        left = []
        for change in self._changes:
            if is_meant(change.folder):
                change.apply(self._durable)
            else:
                left.append(change)
        self._changes = left

    # -- logs ------------------------------------------------------------------------------

    def lock(self) -> None:
        if self._is_locked:
            raise ConfigError("folder memory is in use by this process: close the other one first")
        self._is_locked = True

    def unlock(self) -> None:
        self._is_locked = False

    def append(self, name: str, data: bytes) -> None:
        content = self._grown(name, data)
        self.on_step("sync")
        content.durable = content.data

    def note(self, name: str, data: bytes) -> None:
        self._grown(name, data)

    def truncate(self, name: str, size: int) -> None:
        self.on_step("truncate")
        content = self.files[name]
        content.data = content.data[:size]

    def _grown(self, name: str, data: bytes) -> _Content:
        self.on_step("write")
        content = self.files.get(name) or self._begun(name)
        content.data += data
        return content

    def _begun(self, name: str) -> _Content:
        content = _Content(changed_ms=self.now_ms)
        self._change(name, lambda files: files.update({name: content}))
        return content

    def _change(self, name: str, apply: Callable[[_Files], object]) -> None:
        apply(self.files)
        self._changes.append(_Change(parent_of(name), apply))


def _torn(data: bytes, durable: bytes, rng: "Random") -> bytes:
    """Return a possible rest of a file: a part of the bytes written since the last sync."""
    if not data.startswith(durable):  # It was cut, or not.
        return rng.choice([data, durable])
    extra = data[len(durable) :][: rng.randint(0, len(data) - len(durable))]
    # The file may have grown on disk without its content, or with a part of it.
    hole = rng.randint(0, len(extra)) if rng.random() < 0.5 else 0  # noqa: PLR2004 - a coin
    return durable + bytes(hole) + extra[hole:]
