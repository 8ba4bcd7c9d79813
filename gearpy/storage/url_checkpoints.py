"""Checkpoints at a URL: object stores, distributed file systems, whatever fsspec knows."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, RawIOBase
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from fsspec.core import url_to_fs  # type: ignore[import-untyped]

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
from gearpy.storage.disk import TEMPORARY

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["UrlCheckpoints"]

#: Where an object is there whole or not at all; moving one would copy it.
_OBJECT_STORES: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "oss", "tos"}
)
#: What is read ahead: few requests, and not much memory for each file that is open.
_READ_BYTES: Final = 4 << 20


class UrlCheckpoints:
    """`Checkpoints` at a URL.

    On a file system a file is written under another name and then moved; in an object store it is
    gathered in a temporary file of this machine and then put. Durable is what the store calls so.

    Runs on: any thread, in many processes at a time; no two may save under one name.

    Args:
        url: such as ``s3://bucket/path``.
        puts_whole: whether a file that is being put is seen only when it is whole; default: as the
            kind of URL says.

    Raises:
        ConfigError: the URL cannot be used here.
        OSError: the store cannot be reached.
    """

    def __init__(self, url: str, *, puts_whole: bool | None = None) -> None:
        self.place = url  #: See `Checkpoints`.
        self._fs, root = _file_system(url)
        self._root = str(root).rstrip("/")
        kinds = [self._fs.protocol] if isinstance(self._fs.protocol, str) else self._fs.protocol
        self._puts_whole = bool(_OBJECT_STORES & {*kinds}) if puts_whole is None else puts_whole
        if not self._puts_whole:
            self._remove_leftovers()

    def save(self, name: str, chunks: Iterable[bytes]) -> StoredFile:
        """See `Checkpoints`."""
        path = self._path(name)
        if self._puts_whole:
            return self._put(name, path, chunks)
        folder, _, last = path.rpartition("/")
        temporary = f"{folder}/{temporary_name(last)}"
        try:
            with _only_os_errors():
                self._fs.makedirs(folder, exist_ok=True)
                file = self._fs.open(temporary, "wb")
            with file:
                found = stored(name, chunks, _guarded(file.write))
            self._move(temporary, path)
        except BaseException:
            with suppress(OSError), _only_os_errors():
                self._fs.rm_file(temporary)
            raise
        self._check(path, found)
        return found

    def open(self, location: str) -> BinaryIO:
        """See `Checkpoints`."""
        try:
            path = self._path(location)
            with _only_os_errors():
                self._fs.invalidate_cache()
                found = self._fs.info(path)
        except (FileNotFoundError, NotADirectoryError, ConfigError) as error:
            raise SnapshotDamaged(location=location, reason=f"not found: {error}") from error
        if found["type"] != "file":
            raise SnapshotDamaged(location=location, reason="it is a folder")
        return BufferedReader(_Ranges(self._fs, path, int(found["size"])), _READ_BYTES)

    def load(self, location: str, sha256: str = "") -> bytes:
        """See `Checkpoints`."""
        return loaded(self.open(location), location, sha256)

    def names(self, prefix: str) -> list[str]:
        """See `Checkpoints`."""
        return sorted(filter(is_name, self._found(self._path(prefix) if prefix else self._root)))

    def drop(self, location: str) -> None:
        """See `Checkpoints`."""
        path = self._path(location)
        with suppress(FileNotFoundError), _only_os_errors():
            self._fs.rm_file(path)

    def drop_all(self, prefix: str) -> None:
        """See `Checkpoints`."""
        path = self._path(prefix)
        with suppress(FileNotFoundError), _only_os_errors():
            self._fs.invalidate_cache()
            self._fs.rm(path, recursive=True)

    def _put(self, name: str, path: str, chunks: Iterable[bytes]) -> StoredFile:
        # Not straight into the store: there, a stream that breaks off may count as a whole file.
        with NamedTemporaryFile(prefix="gearpy-", suffix=TEMPORARY) as file:
            found = stored(name, chunks, file.write)
            file.flush()
            with _only_os_errors():
                self._fs.put_file(file.name, path)
        self._check(path, found)
        return found

    def _move(self, temporary: str, path: str) -> None:
        with _only_os_errors():
            try:
                self._fs.mv(temporary, path)
            except FileExistsError:  # Some file systems never replace.
                self._fs.rm_file(path)
                self._fs.mv(temporary, path)

    def _check(self, path: str, wanted: StoredFile) -> None:
        """See whether it is there, as some file systems fail in silence."""
        with _only_os_errors():
            self._fs.invalidate_cache()
            found = self._fs.info(path)
        if found["type"] != "file" or found["size"] != wanted.size_bytes:
            raise OSError(f"{path} was stored with {wanted.size_bytes} bytes, found is {found}")

    def _path(self, name: str) -> str:
        return "/".join([self._root, *parts_of_name(name)])

    def _found(self, path: str) -> list[str]:
        """Return what is below a path, as names, temporary ones too."""
        try:
            with _only_os_errors():
                self._fs.invalidate_cache()  # Others write there too.
                found = self._fs.find(path)
        except FileNotFoundError:
            return []
        below = f"{path}/"
        return [each[len(self._root) + 1 :] for each in found if each.startswith(below)]

    def _remove_leftovers(self) -> None:
        latest_s = time.time() - LEFTOVER_S
        for name in self._found(self._root):
            if name.endswith(TEMPORARY):
                self._remove_if_older(f"{self._root}/{name}", latest_s)

    def _remove_if_older(self, path: str, latest_s: float) -> None:
        # Where nobody knows how old a file is, it stays; it does no harm but to take space.
        no_matter = suppress(FileNotFoundError, NotImplementedError)
        with no_matter, _only_os_errors(NotImplementedError):
            if self._fs.modified(path).timestamp() < latest_s:
                self._fs.rm_file(path)


class _Ranges(RawIOBase):
    """Reads a file in ranges, each with a request of its own: nothing is shared with others."""

    def __init__(self, fs: Any, path: str, size: int) -> None:
        self._fs = fs
        self._path = path
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._size)
        if end <= self._at:
            return 0
        with _only_os_errors():
            data = self._fs.cat_file(self._path, start=self._at, end=end)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def _file_system(url: str) -> tuple[Any, str]:
    try:
        with _only_os_errors(ImportError, ValueError):
            return url_to_fs(url)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"checkpoint.folder {url!r} cannot be used: {error}; install what is missing on all "
            "machines, or choose another folder or URL"
        ) from error


def _guarded(write: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Return a write whose errors are the store's, and not those of what makes the chunks."""

    def guarded(chunk: bytes) -> object:
        with _only_os_errors():
            return write(chunk)

    return guarded


@contextmanager
def _only_os_errors(*others: type[Exception]) -> Iterator[None]:
    """Turn what libraries of object stores raise, each its own, into `OSError`."""
    passed: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except passed:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
