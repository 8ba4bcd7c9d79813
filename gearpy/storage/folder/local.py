"""A folder on a disk."""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from gearpy.errors import ConfigError
from gearpy.storage.folder.api import TEMPORARY, FileFacts, any_folder, parent_of
from gearpy.storage.folder.files import create_file, sync_file, sync_folder, told
from gearpy.storage.folder.promises import ON_DISK

_LOCK: Final = "lock"
#: Who can write to a private folder decides what the cluster runs.
_PRIVATE_FILE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700
_PID_BYTES_MAX: Final = 20
_BUFFER_BYTES: Final = 1 << 17
_NS_PER_MS: Final = 1_000_000
#: Writing is tried so often while others remove the folder because it is empty.
_TRIES: Final = 10


class LocalFolder:
    """`LogFolder` on a disk of this machine, or one that is mounted.

    Args:
        path: the folder; `make` makes it, and those above it.
        private: whether folders and files are for their owner only.
    """

    promises = ON_DISK  #: See `Folder`.

    def __init__(self, path: Path | str, *, private: bool = False) -> None:
        self._path = Path(path).expanduser().absolute()
        self._base = f"{self._path}/"
        self._folder_mode = _PRIVATE_FOLDER if private else 0o777
        self._opener = _open_private if private else None
        self._lock: int | None = None
        self._grown: dict[str, int] = {}  # The handles of files that were added to.
        self._held = frozenset[str]()  # Folders in it that are not to be made anew.

    @property
    def place(self) -> str:
        return str(self._path)

    def make(self, *folders: str) -> None:
        synced: set[Path] = set()
        for folder in [self._path, *(self._path / each for each in folders)]:
            self._make(folder)
            # Somebody else may just have made some of them.
            below = folder.relative_to(self._path).parents
            synced.update(self._path / each for each in below)
        # A user who may not list the parent has not made this one.
        with suppress(PermissionError):
            sync_folder(self._path.parent)
        for folder in sorted(synced):
            sync_folder(folder)

    def hold(self, folder: str) -> None:
        self._held |= {folder}
        if folder:
            self.hold(parent_of(folder))

    def _make_in(self, folder: str) -> None:
        """Make a folder in this one, durably, unless it is held.

        Each by a step of its own: none comes to be in place of one that is being moved away.
        """
        if folder in self._held:
            raise FileNotFoundError(errno.ENOENT, "the folder is not there", self._base + folder)
        if not folder:
            self.make()
            return
        with suppress(FileExistsError):
            try:
                (self._path / folder).mkdir(mode=self._folder_mode)
            except FileNotFoundError:
                self._make_in(parent_of(folder))
                (self._path / folder).mkdir(mode=self._folder_mode)
        sync_folder(self._path / parent_of(folder))

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make(folder.parent)
        try:
            folder.mkdir(mode=self._folder_mode)
        except FileExistsError:
            if not folder.is_dir():
                raise NotADirectoryError(
                    errno.ENOTDIR, "it is a file, and no folder", str(folder)
                ) from None
        if folder in self._path.parents:
            sync_folder(folder.parent)

    def names(self, folder: str = "") -> list[str]:
        with suppress(FileNotFoundError), os.scandir(self._base + folder) as entries:
            return [each.name for each in entries if each.is_file() and each.name != _LOCK]
        return []

    def walk(self, folder: str = "", into: Callable[[str], bool] = any_folder) -> list[str]:
        found = []
        for at, folders, files in os.walk(self._path / folder, onerror=_raise_unless_gone):
            folders[:] = filter(into, folders)
            found += [os.path.join(at, name) for name in files]  # noqa: PTH118 - there are many
        return [each.removeprefix(self._base) for each in found]

    def location(self, name: str) -> str:
        return self._base + name

    def open(self, name: str) -> BinaryIO:
        return open(self._base + name, "rb")  # noqa: PTH123 - the reader closes it

    def read(self, name: str) -> bytes | None:
        try:
            with self.open(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def look(self, name: str) -> FileFacts | None:
        try:
            info = os.stat(self._base + name)  # noqa: PTH116 - there are many
        except FileNotFoundError:
            return None
        return FileFacts(info.st_size, info.st_mtime_ns // _NS_PER_MS)

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        temporary = self._written(name, chunks)
        if name in self._grown:
            self._let_go()  # It is to be another file.
        try:
            os.replace(self._base + temporary, self._base + name)  # noqa: PTH105 - on the fast path
            self.sync_names(parent_of(name))
        except BaseException:
            self._discard(temporary)
            raise

    def put(self, name: str, data: bytes) -> None:
        self.write(name, [data])

    def put_new(self, name: str, data: bytes) -> bool:
        temporary = self._written(name, [data])
        try:
            os.link(self._base + temporary, self._base + name)
        except FileExistsError:
            return False
        finally:
            self.remove(temporary)
        self.sync_names(parent_of(name))
        return True

    def _written(self, name: str, chunks: Iterable[bytes]) -> str:
        folder, slash, base = name.rpartition("/")
        temporary = f"{folder}{slash}.{base}.{uuid4().hex}{TEMPORARY}"
        file = self._created_in(folder, temporary)
        try:
            with file:
                for chunk in chunks:
                    file.write(chunk)
                self.sync(file)
        except BaseException:
            self._discard(temporary)
            raise
        return temporary

    def _created_in(self, folder: str, name: str) -> BinaryIO:
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return self.create(name)
            with suppress(FileNotFoundError):
                self._make_in(folder)
        return self.create(name)

    def _discard(self, temporary: str) -> None:
        with suppress(OSError):
            self.remove(temporary)
        self.prune(parent_of(temporary))

    def create(self, name: str) -> BinaryIO:
        return create_file(self._path / name, "xb", buffering=_BUFFER_BYTES, opener=self._opener)

    def sync(self, file: BinaryIO) -> None:
        sync_file(file)

    def move(self, name: str, *, to: str) -> bool:
        try:
            os.replace(self._base + name, self._base + to)  # noqa: PTH105 - on the fast path
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        self._let_go()
        with suppress(FileNotFoundError):
            os.unlink(self._base + name)  # noqa: PTH108 - there are many

    def remove_tree(self, name: str) -> None:
        path = self._path / name
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
        elif path.exists():
            with suppress(FileNotFoundError):  # Somebody else was quicker.
                shutil.rmtree(path)

    def prune(self, folder: str) -> None:
        while folder and folder not in self._held:
            try:
                os.rmdir(self._base + folder)  # noqa: PTH106 - names are texts here
            except FileNotFoundError:
                pass
            except OSError:
                return
            folder = parent_of(folder)

    def sync_names(self, folder: str = "") -> None:
        sync_folder(self._path / folder)

    def sync_tree(self, into: Callable[[str], bool]) -> None:
        for at, folders, _ in os.walk(self._path, onerror=_raise_unless_gone):
            folders[:] = filter(into, folders)
            sync_folder(Path(at))

    # -- logs ------------------------------------------------------------------------------

    def lock(self) -> None:
        handle = os.open(self._path / _LOCK, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(handle, _PID_BYTES_MAX).decode("ascii", "replace").strip()
            os.close(handle)
            raise ConfigError(
                f"folder {self._path} is in use by process {pid or 'unknown'}: "
                "stop that one first, or choose another folder"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        self._lock = handle

    def unlock(self) -> None:
        self._let_go()
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # A fork may have the open file, too.
            os.close(self._lock)
            self._lock = None

    def append(self, name: str, data: bytes) -> None:
        with told(self._path / name):
            # The handle that it was written with: a new one might not hear of an error before it.
            handle = self._add(name, data)
            os.fsync(handle)
            if not os.fstat(handle).st_nlink:
                raise FileNotFoundError(errno.ENOENT, "the file was removed while it was in use")

    def note(self, name: str, data: bytes) -> None:
        with told(self._path / name):
            self._add(name, data)

    def _add(self, name: str, data: bytes) -> int:
        left, handle = memoryview(data), self._growing(name)
        while left:
            left = left[os.write(handle, left) :]
        return handle

    def truncate(self, name: str, size: int) -> None:
        os.ftruncate(self._growing(name), size)

    def _growing(self, name: str) -> int:
        handle = self._grown.get(name)
        if handle is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            handle = self._grown[name] = os.open(self._path / name, flags, _PRIVATE_FILE)
        return handle

    def _let_go(self) -> None:
        handles, self._grown = list(self._grown.values()), {}
        for each in handles:
            os.close(each)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, _PRIVATE_FILE)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
