"""Files of checkpoints, found again by location and checksum."""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.storage.checkpoint_files import (
    LEFTOVER_S,
    StoredFile,
    is_name,
    loaded,
    parts_of_name,
    stored,
    temporary_name,
)
from gearpy.storage.disk import TEMPORARY, FolderDisk

__all__ = [
    "CheckpointStore",
    "Checkpoints",
    "MemoryCheckpoints",
    "StoredFile",
    "checkpoints_at",
    "orphans",
]

_FOLDER_URLS: Final = ("file://", "local://")
#: Making a file is tried so often while others remove the folder because it is empty.
_TRIES: Final = 10


class Checkpoints(Protocol):
    """Keeps bytes under a name such as ``k3f9a1c2/app3/epochs/region0/epoch7-executor1``.

    A file is there whole or not at all. That it is missing or not as it was stored is one thing,
    `SnapshotDamaged`; that it cannot be told is another, `OSError`.

    Runs on: any thread.
    """

    @property
    def place(self) -> str:
        """The folder or URL, for people."""
        ...

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        """Store; return what is needed to find it, once it is durable. Replaces what was there.

        Raises:
            ConfigError: this is no name.
            OSError: it could not be stored; nothing has changed.
        """
        ...

    def open(self, location: str) -> BinaryIO:
        """Return what was stored, to be read in portions; whoever reads checks it.

        Raises:
            SnapshotDamaged: it is not there.
            OSError: it cannot be told.
        """
        ...

    def load(self, location: str, sha256: str = "") -> bytes:
        """Return the whole of what was stored, checked if its SHA-256 is given.

        Raises:
            SnapshotDamaged: it is not there, or is not what was stored.
            OSError: it cannot be told.
        """
        ...

    def names(self, prefix: str) -> list[str]:
        """Return all names below a name such as ``k3f9a1c2/app3``, sorted; of "", all.

        Raises:
            ConfigError: the prefix is no name.
            OSError: it cannot be told; never a part of them.
        """
        ...

    def drop(self, location: str) -> None:
        """Remove it. Does nothing when it is not there."""
        ...

    def drop_all(self, prefix: str) -> None:
        """Remove everything below a name such as ``k3f9a1c2/app3``, and what has this name."""
        ...


def checkpoints_at(folder_or_url: str) -> Checkpoints:
    """Return the store in a folder, or at a URL that fsspec knows.

    Raises:
        ConfigError: it is no URL that can be used here.
        OSError: the folder cannot be used.
    """
    for scheme in _FOLDER_URLS:
        if folder_or_url.startswith(scheme):  # It can do more than fsspec does: make it durable.
            return CheckpointStore(_folder_of(folder_or_url, scheme))
    if "://" not in folder_or_url:
        return CheckpointStore(folder_or_url)
    from gearpy.storage.url_checkpoints import UrlCheckpoints  # noqa: PLC0415 - seldom, and slow

    return UrlCheckpoints(folder_or_url)


def orphans(checkpoints: Checkpoints, prefix: str, needed: Iterable[str]) -> list[str]:
    """Return the names below a prefix that nobody needs."""
    return sorted(set(checkpoints.names(prefix)).difference(needed))


class CheckpointStore:
    """`Checkpoints` in a folder that all machines of a cluster see.

    A location is the name itself, so that machines may mount the folder in different places.

    Runs on: any thread, in many processes at a time; no two may save under one name.

    Raises:
        OSError: the folder cannot be used.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder).expanduser()
        FolderDisk(self._folder)  # Makes it.
        if not self._folder.is_dir():
            raise NotADirectoryError(f"{self._folder} is a file, and no folder")
        self._remove_leftovers()

    @property
    def place(self) -> str:
        """See `Checkpoints`."""
        return str(self._folder)

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        """See `Checkpoints`."""
        path = self._path(name)
        temporary = temporary_name(path.name)
        disk = _disk_with(path.parent, temporary)
        try:
            file = stored(name, chunks, lambda chunk: disk.write(temporary, chunk))
            disk.sync(temporary)
            disk.rename(temporary, to=path.name)
            disk.sync_names()
        except BaseException:
            with suppress(OSError):
                disk.remove(temporary)
            self._remove_empty(path.parent)
            raise
        finally:
            disk.unlock()
        return file

    def open(self, location: str) -> BinaryIO:
        """See `Checkpoints`."""
        try:
            return self._path(location).open("rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ConfigError) as error:
            raise SnapshotDamaged(location=location, reason=str(error)) from error

    def load(self, location: str, sha256: str = "") -> bytes:
        """See `Checkpoints`."""
        return loaded(self.open(location), location, sha256)

    def names(self, prefix: str) -> list[str]:
        """See `Checkpoints`."""
        top = self._path(prefix) if prefix else self._folder
        found = (path.relative_to(self._folder).as_posix() for path in _files_below(top))
        return sorted(name for name in found if is_name(name))

    def drop(self, location: str) -> None:
        """See `Checkpoints`."""
        path = self._path(location)
        path.unlink(missing_ok=True)
        self._remove_empty(path.parent)

    def drop_all(self, prefix: str) -> None:
        """See `Checkpoints`."""
        path = self._path(prefix)
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
        elif path.exists():
            with suppress(FileNotFoundError):  # Somebody else was quicker.
                shutil.rmtree(path)
        self._remove_empty(path.parent)

    def _remove_empty(self, folder: Path) -> None:
        """Remove a folder and those above it, as long as they are empty."""
        while folder != self._folder:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                return
            folder = folder.parent

    def _path(self, name: str) -> Path:
        return self._folder.joinpath(*parts_of_name(name))

    def _remove_leftovers(self) -> None:
        latest_s = time.time() - LEFTOVER_S
        for path in _files_below(self._folder):
            if path.name.endswith(TEMPORARY):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < latest_s:
                        path.unlink()


class MemoryCheckpoints:
    """`Checkpoints` in memory, for clusters of one process, and for simulations."""

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}

    @property
    def place(self) -> str:
        """See `Checkpoints`."""
        return "memory"

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        """See `Checkpoints`."""
        parts_of_name(name)
        data = b"".join(chunks)
        self._stored[name] = data
        return StoredFile(name, sha256(data).hexdigest(), len(data))

    def open(self, location: str) -> BinaryIO:
        """See `Checkpoints`."""
        data = self._stored.get(location)
        if data is None:
            raise SnapshotDamaged(location=location, reason="it is not there")
        return BytesIO(data)

    def load(self, location: str, sha256: str = "") -> bytes:
        """See `Checkpoints`."""
        return loaded(self.open(location), location, sha256)

    def names(self, prefix: str) -> list[str]:
        """See `Checkpoints`."""
        if prefix:
            parts_of_name(prefix)
        below = f"{prefix}/" if prefix else ""
        return sorted(name for name in list(self._stored) if name.startswith(below))

    def drop(self, location: str) -> None:
        """See `Checkpoints`."""
        parts_of_name(location)
        self._stored.pop(location, None)

    def drop_all(self, prefix: str) -> None:
        """See `Checkpoints`."""
        parts_of_name(prefix)
        for name in [prefix, *self.names(prefix)]:
            self._stored.pop(name, None)


def _disk_with(folder: Path, name: str) -> FolderDisk:
    """Return a folder with an empty file in it, so that nobody takes it for empty."""
    for left in reversed(range(_TRIES)):
        try:
            disk = FolderDisk(folder)
            disk.write(name, b"")
        except FileNotFoundError:  # Somebody has dropped the last file in it meanwhile.
            if not left:
                raise
        else:
            break
    return disk


def _files_below(folder: Path) -> Iterator[Path]:
    for at, _, files in os.walk(folder, onerror=_raise_unless_gone):
        yield from (Path(at, name) for name in files)


def _raise_unless_gone(error: OSError) -> None:
    """Let no folder be left out in silence, except one that others have removed meanwhile."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _folder_of(url: str, scheme: str) -> str:
    path = url.removeprefix(scheme)
    if not path.startswith(("/", "~")):
        raise ConfigError(
            f"checkpoint.folder {url!r} does not name a folder of this machine: write "
            f"{scheme}/path with three slashes, or the path alone"
        )
    return path
