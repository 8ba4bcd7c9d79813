"""The folder of a log, on a disk or at a URL, in steps small enough to think about a crash.

Names are relative to the folder, with a slash behind the name of a folder in it. Nothing is seen
under a name that is not complete.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol
from uuid import uuid4

from gearpy.errors import ConfigError
from gearpy.storage.disk import create_file, sync_file, sync_folder

__all__ = [
    "HANDOVERS",
    "OWNERS",
    "PENDING",
    "READERS",
    "Found",
    "LocalStore",
    "Store",
    "UrlStore",
    "store_at",
]

#: Folders of a log; Spark, Hive and Arrow pass over names that begin with an underscore.
PENDING: Final = "_pending/"
OWNERS: Final = "_owners/"
READERS: Final = "_readers/"
HANDOVERS: Final = "_spark/"

_FOLDERS: Final = (PENDING, OWNERS, READERS, HANDOVERS)
_LOCAL: Final = ("file://", "local://")
_BUFFER_BYTES: Final = 1 << 20
_NS_PER_MS: Final = 1_000_000
_MS_PER_S: Final = 1000
#: What fsspec's file systems call the time of the last change.
_TIME_KEYS: Final = ("mtime", "LastModified", "last_modified", "updated", "created")


class Found(NamedTuple):
    """A file: its size, and when it was changed; 0 if nobody knows."""

    size: int
    changed_ms: int


class Store(Protocol):
    """The folder of a log. Each step may raise `OSError`.

    Runs on: one thread at a time; others may be at the same folder.
    """

    @property
    def place(self) -> str:
        """The folder, for people."""
        ...

    def make(self) -> None:
        """Make the folder and those in it, durably, if they are not there."""
        ...

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in the folder, or in one of its folders; in no order."""
        ...

    def location(self, name: str) -> str:
        """Return the path or URL of a file, for other programs."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def read(self, name: str) -> bytes | None:
        """Return a whole file; None if there is none."""
        ...

    def look(self, name: str) -> Found | None:
        """Return what is known of a file; None if there is none."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Write a small file, durably, in place of the one that has the name."""
        ...

    def put_new(self, name: str, data: bytes) -> bool:
        """Do the same, but only if nobody has the name; False if somebody has."""
        ...

    def create(self, name: str) -> BinaryIO:
        """Begin a file that nobody else has begun."""
        ...

    def sync(self, file: BinaryIO) -> None:
        """End a file, and make its content durable."""
        ...

    def move(self, name: str, *, to: str) -> bool:
        """Give a complete file another name; False if there is none."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def sync_names(self, folder: str = "") -> None:
        """Make durable which files there are in a folder."""
        ...


def store_at(path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Store:
    """Return the folder at a path or URL.

    Raises:
        ConfigError: no file system of fsspec has such URLs.
    """
    text = os.fspath(path)
    for scheme in _LOCAL:
        text = text.removeprefix(scheme)
    if "://" not in text:
        return LocalStore(Path(text).expanduser().absolute())
    return UrlStore(text, options)


class LocalStore:
    """`Store` on a disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._base = f"{path}/"

    @property
    def place(self) -> str:
        """See `Store`."""
        return str(self._path)

    def make(self) -> None:
        """See `Store`."""
        missing = [each for each in (self._path, *self._path.parents) if not each.is_dir()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
        for name in _FOLDERS:
            (self._path / name).mkdir(exist_ok=True)
        sync_folder(self._path)

    def names(self, folder: str = "") -> list[str]:
        """See `Store`."""
        with suppress(FileNotFoundError), os.scandir(self._base + folder) as entries:
            return [each.name for each in entries if each.is_file()]
        return []

    def location(self, name: str) -> str:
        """See `Store`."""
        return self._base + name

    def open(self, name: str) -> BinaryIO:
        """See `Store`."""
        return open(self._base + name, "rb")  # noqa: PTH123 - whoever reads it closes it

    def read(self, name: str) -> bytes | None:
        """See `Store`."""
        try:
            with self.open(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def look(self, name: str) -> Found | None:
        """See `Store`."""
        try:
            info = os.stat(self._base + name)  # noqa: PTH116 - there are many
        except FileNotFoundError:
            return None
        return Found(info.st_size, info.st_mtime_ns // _NS_PER_MS)

    def put(self, name: str, data: bytes) -> None:
        """See `Store`."""
        self.move(self._temporary(name, data), to=name)
        self.sync_names(name.rpartition("/")[0])

    def put_new(self, name: str, data: bytes) -> bool:
        """See `Store`."""
        temporary = self._temporary(name, data)
        try:
            os.link(self._base + temporary, self._base + name)
        except FileExistsError:
            return False
        finally:
            self.remove(temporary)
        self.sync_names(name.rpartition("/")[0])
        return True

    def create(self, name: str) -> BinaryIO:
        """See `Store`."""
        return create_file(self._path / name, "xb", buffering=_BUFFER_BYTES)

    def sync(self, file: BinaryIO) -> None:
        """See `Store`."""
        sync_file(file)

    def move(self, name: str, *, to: str) -> bool:
        """See `Store`."""
        try:
            os.replace(self._base + name, self._base + to)  # noqa: PTH105 - on the fast path
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        """See `Store`."""
        with suppress(FileNotFoundError):
            os.unlink(self._base + name)  # noqa: PTH108 - there are many

    def sync_names(self, folder: str = "") -> None:
        """See `Store`."""
        sync_folder(self._path / folder)

    def _temporary(self, name: str, data: bytes) -> str:
        """Write a file that is to get another name; return the one that it has."""
        folder, slash, base = name.rpartition("/")
        temporary = f"{folder}{slash}.{base}.{uuid4().hex}.tmp"
        with self.create(temporary) as file:
            file.write(data)
            self.sync(file)
        return temporary


class UrlStore:
    """`Store` at a URL that fsspec knows.

    A file is complete, and durable as far as the file system promises it, once it is closed. Where
    a move is a copy, the copy is complete before it is seen, and the old file goes last.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        try:
            self._files, path = import_module("fsspec.core").url_to_fs(url, **dict(options or {}))
        except (ImportError, ValueError) as error:  # Its message says what to install.
            raise ConfigError(f"window log at {url}: {error}") from error
        self._path = path.rstrip("/")
        self._url = self._files.unstrip_protocol(self._path)

    @property
    def place(self) -> str:
        """See `Store`."""
        return str(self._url)

    def make(self) -> None:
        """See `Store`."""
        for folder in ("", *_FOLDERS):
            self._files.makedirs(self._at(folder).rstrip("/"), exist_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """See `Store`."""
        with _fresh(self._files) as files:
            try:
                infos = files.ls(self._at(folder).rstrip("/"), detail=True)
            except FileNotFoundError:
                return []
        return [each["name"].rpartition("/")[2] for each in infos if each["type"] == "file"]

    def location(self, name: str) -> str:
        """See `Store`."""
        return f"{self._url}/{name}"

    def open(self, name: str) -> BinaryIO:
        """See `Store`."""
        opened: BinaryIO = self._files.open(self._at(name), "rb")
        return opened

    def read(self, name: str) -> bytes | None:
        """See `Store`."""
        with _fresh(self._files) as files:
            try:
                data: bytes = files.cat_file(self._at(name))
            except FileNotFoundError:
                return None
        return data

    def look(self, name: str) -> Found | None:
        """See `Store`."""
        with _fresh(self._files) as files:
            try:
                info = files.info(self._at(name))
            except FileNotFoundError:
                return None
        time = next((info[key] for key in _TIME_KEYS if info.get(key)), 0)
        return Found(int(info.get("size") or 0), _ms_of(time))

    def put(self, name: str, data: bytes) -> None:
        """See `Store`."""
        self._files.pipe_file(self._at(name), data)

    def put_new(self, name: str, data: bytes) -> bool:
        """See `Store`; of two that do it at once both may think that they were first."""
        if self.look(name) is not None:
            return False
        self.put(name, data)
        return True

    def create(self, name: str) -> BinaryIO:
        """See `Store`."""
        created: BinaryIO = self._files.open(self._at(name), "wb")
        return created

    def sync(self, file: BinaryIO) -> None:
        """See `Store`."""
        file.close()

    def move(self, name: str, *, to: str) -> bool:
        """See `Store`."""
        try:
            self._files.mv(self._at(name), self._at(to))
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        """See `Store`."""
        with suppress(FileNotFoundError):
            self._files.rm_file(self._at(name))

    def sync_names(self, folder: str = "") -> None:
        """See `Store`; a store of objects has nothing to do."""

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"


@contextmanager
def _fresh(files: Any) -> Iterator[Any]:
    """Give a file system that has forgotten what it had listed."""
    files.invalidate_cache()
    yield files


def _ms_of(time: Any) -> int:
    if hasattr(time, "timestamp"):
        return int(time.timestamp() * _MS_PER_S)
    return int(time * _MS_PER_S) if isinstance(time, int | float) else 0
