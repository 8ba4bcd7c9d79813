"""A folder at a URL: object stores, distributed file systems, any system that fsspec knows."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, RawIOBase
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from uuid import uuid4

from gearpy.storage.folder.api import TEMPORARY, FileFacts, any_folder

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Where an object is there whole or not at all; moving one would copy it.
_OBJECT_STORES: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "oss", "tos"}
)
#: What is read ahead: few requests, and not much memory for each file that is open.
_READ_BYTES: Final = 4 << 20
_MS_PER_S: Final = 1000
#: What file systems of fsspec call the time of the last change.
_TIME_KEYS: Final = ("mtime", "LastModified", "last_modified", "updated")


class UrlFolder:
    """`Folder` on a file system of fsspec.

    A file is complete, and as durable as the store makes it, once it is closed. `write` gives it
    another name first and then moves it; in an object store it is gathered in a temporary file of
    this machine and then put. Where a move is a copy, the copy is complete before it is seen, and
    the old file goes last.

    Args:
        files: the file system.
        path: of the folder on it.
        place: of the folder, for people.
        puts_whole: whether a file that is being put is seen only when it is whole; default: as the
            kind of file system says.
    """

    def __init__(
        self, files: Any, path: str, *, place: str = "", puts_whole: bool | None = None
    ) -> None:
        self._files = files
        self._path = path.rstrip("/")
        self.place = place or str(files.unstrip_protocol(self._path))  #: See `Folder`.
        kinds = [files.protocol] if isinstance(files.protocol, str) else files.protocol
        self._puts_whole = bool(_OBJECT_STORES & {*kinds}) if puts_whole is None else puts_whole

    def make(self, *folders: str) -> None:
        """See `Folder`; does nothing in a store of objects."""
        if not self._puts_whole:
            with only_os_errors():
                for folder in ("", *folders):
                    self._files.makedirs(self._at(folder).rstrip("/"), exist_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """See `Folder`."""
        try:
            with only_os_errors():
                infos = self._fresh.ls(self._at(folder).rstrip("/"), detail=True)
        except FileNotFoundError:
            return []
        return [each["name"].rpartition("/")[2] for each in infos if each["type"] == "file"]

    def walk(self, folder: str = "", into: Callable[[str], bool] = any_folder) -> list[str]:
        """See `Folder`."""
        begin = f"{self._at(folder).rstrip('/')}/"
        try:
            with only_os_errors():
                paths = self._fresh.find(begin.rstrip("/"))
        except FileNotFoundError:
            return []
        return [
            path[len(self._path) + 1 :]
            for path in paths
            if path.startswith(begin) and all(map(into, path[len(begin) :].split("/")[:-1]))
        ]

    def location(self, name: str) -> str:
        """See `Folder`."""
        return f"{self.place}/{name}"

    def open(self, name: str) -> BinaryIO:
        """See `Folder`."""
        with only_os_errors():
            found = self._fresh.info(self._at(name))
        if found["type"] != "file":
            raise IsADirectoryError(f"{self.location(name)} is a folder")
        ranges = _Ranges(self._files, self._at(name), int(found["size"]))
        return BufferedReader(ranges, _READ_BYTES)

    def read(self, name: str) -> bytes | None:
        """See `Folder`."""
        try:
            with only_os_errors():
                data: bytes = self._fresh.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return data

    def look(self, name: str) -> FileFacts | None:
        """See `Folder`."""
        path = self._at(name)
        try:
            with only_os_errors():
                info = self._fresh.info(path)
        except FileNotFoundError:
            return None
        time = next((info[key] for key in _TIME_KEYS if info.get(key)), None)
        if time is None:
            with suppress(OSError, NotImplementedError), only_os_errors(NotImplementedError):
                time = self._files.modified(path)
        return FileFacts(int(info.get("size") or 0), _ms_of(time))

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Folder`; sees whether it is there, as some file systems fail in silence."""
        path = self._at(name)
        size = self._put_whole(path, chunks) if self._puts_whole else self._moved(path, chunks)
        with only_os_errors():
            found = self._fresh.info(path)
        if found["type"] != "file" or found["size"] != size:
            raise OSError(f"{path} was stored with {size} bytes, found is {found}")

    def _put_whole(self, path: str, chunks: Iterable[bytes]) -> int:
        # Not straight into the store: there, a stream that breaks off may count as a whole file.
        with NamedTemporaryFile(prefix="gearpy-", suffix=TEMPORARY) as file:
            size = sum(map(file.write, chunks))
            file.flush()
            with only_os_errors():
                self._files.put_file(file.name, path)
        return size

    def _moved(self, path: str, chunks: Iterable[bytes]) -> int:
        folder, _, last = path.rpartition("/")
        temporary = f"{folder}/.{last}.{uuid4().hex}{TEMPORARY}"
        size = 0
        try:
            with only_os_errors():
                self._files.makedirs(folder, exist_ok=True)
                file = self._files.open(temporary, "wb")
            with file:
                for chunk in chunks:
                    size += len(chunk)
                    with only_os_errors():
                        file.write(chunk)
            self._move(temporary, path)
        except BaseException:
            with suppress(OSError), only_os_errors():
                self._files.rm_file(temporary)
            raise
        return size

    def _move(self, path: str, to: str) -> None:
        with only_os_errors():
            try:
                self._files.mv(path, to)
            except FileExistsError:  # Some file systems never replace.
                self._files.rm_file(to)
                self._files.mv(path, to)

    def put(self, name: str, data: bytes) -> None:
        """See `Folder`."""
        if not self._puts_whole:
            self.write(name, [data])
            return
        with only_os_errors():
            self._files.pipe_file(self._at(name), data)

    def put_new(self, name: str, data: bytes) -> bool:
        """See `Folder`; of two that do it at once both may think that they were first."""
        if self.look(name) is not None:
            return False
        self.put(name, data)
        return True

    def create(self, name: str) -> BinaryIO:
        """See `Folder`."""
        with only_os_errors():
            created: BinaryIO = self._files.open(self._at(name), "wb")
        return created

    def sync(self, file: BinaryIO) -> None:
        """See `Folder`; closes it."""
        with only_os_errors():
            file.close()

    def move(self, name: str, *, to: str) -> bool:
        """See `Folder`."""
        try:
            self._move(self._at(name), self._at(to))
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        """See `Folder`."""
        with suppress(FileNotFoundError), only_os_errors():
            self._files.rm_file(self._at(name))

    def remove_tree(self, name: str) -> None:
        """See `Folder`."""
        with suppress(FileNotFoundError), only_os_errors():
            self._fresh.rm(self._at(name), recursive=True)

    def prune(self, folder: str) -> None:
        """See `Folder`; most stores have no empty folders."""

    def sync_names(self, folder: str = "") -> None:
        """See `Folder`; the store does it."""

    def sync_tree(self, into: Callable[[str], bool]) -> None:
        """See `Folder`; the store does it."""

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}" if self._path else name

    @property
    def _fresh(self) -> Any:
        """The file system, which has forgotten its listings: others write there, too."""
        self._files.invalidate_cache()
        return self._files


class _Ranges(RawIOBase):
    """Reads a file in ranges, each with a request of its own, which shares no state with others."""

    def __init__(self, files: Any, path: str, size: int) -> None:
        self._files = files
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
        with only_os_errors():
            data = self._files.cat_file(self._path, start=self._at, end=end)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


@contextmanager
def only_os_errors(*others: type[Exception]) -> Iterator[None]:
    """Turn errors of libraries of object stores, each its own, into `OSError`."""
    passed: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except passed:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _ms_of(time: Any) -> int:
    if hasattr(time, "timestamp"):
        return int(time.timestamp() * _MS_PER_S)
    return int(time * _MS_PER_S) if isinstance(time, int | float) else 0
