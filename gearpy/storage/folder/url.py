"""A folder at a URL: object stores, distributed file systems, any system that fsspec knows."""

import errno
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader, BufferedWriter, FileIO, RawIOBase
from pathlib import Path
from random import Random
from tempfile import NamedTemporaryFile, mkstemp
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from uuid import uuid4

from gearpy.clocks import monotonic_ms
from gearpy.core.base.pauses import pause_after
from gearpy.errors import causes_of
from gearpy.storage.folder.api import TEMPORARY, FileFacts, any_folder
from gearpy.storage.folder.promises import promises_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


#: Half of the time in which a task has to start: else nobody would hear which store is away.
PATIENCE_MS: Final = 15_000
_FIRST_MS: Final = 100
_LONGEST_MS: Final = 5_000

_NUMBERS: Final = frozenset(
    {
        *(errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET),
        *(errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EPIPE, errno.ETIMEDOUT),
        getattr(errno, "EREMOTEIO", errno.EAGAIN),
    }
)
#: Names of classes in the libraries of stores: none of them is imported here.
_CLASSES: Final = frozenset(
    {
        *("ConnectionError", "TimeoutError", "Timeout", "ChunkedEncodingError"),  # requests
        *("HTTPClientError", "ConnectionClosedError", "ResponseParserError"),  # botocore
        *("ClientConnectionError", "ClientPayloadError", "ServerDisconnectedError"),  # aiohttp
        *("ServiceRequestError", "ServiceResponseError"),  # azure
        "FSTimeoutError",
    }
)
_TOO_MANY: Final = 429
_NOT_IMPLEMENTED: Final = 501
_SERVER_FAILED: Final = 500
_STATUSES: Final = ("status_code", "status", "code")


class Retries:
    """The tries of one step: pauses double up to 5 s, and end when patience does.

    Args:
        rng: draws a part of each pause, so that many do not come back at once.
        patience_ms: no try begins later than this after the first.
    """

    def __init__(self, now_ms: float, rng: Random, *, patience_ms: float = PATIENCE_MS) -> None:
        self._until_ms = now_ms + patience_ms
        self._rng = rng
        self._failures = 0

    def pause_ms(self, error: BaseException, now_ms: float) -> float | None:
        """Return how long to wait before the step is tried again; None if it is not."""
        if not passes(error):
            return None
        self._failures += 1
        pause = pause_after(self._failures, _FIRST_MS, _LONGEST_MS, self._rng)
        return pause if now_ms + pause <= self._until_ms else None


def passes(error: BaseException) -> bool:
    """Tell whether an error may be gone in a moment: a busy server, or one out of reach.

    An error that a library has made of another is judged by that one, too.
    """
    for seen in causes_of(error):
        if isinstance(seen, OSError) and seen.errno in _NUMBERS:
            return True
        if not _CLASSES.isdisjoint(each.__name__ for each in type(seen).__mro__):
            return True
        sources = (seen, getattr(seen, "response", None))
        for status in (getattr(each, name, None) for each in sources for name in _STATUSES):
            if isinstance(status, int) and (
                status == _TOO_MANY or (status >= _SERVER_FAILED and status != _NOT_IMPLEMENTED)
            ):
                return True
    return False


_log = logging.getLogger(__name__)

#: So much is read ahead: few requests, and little memory for each open file.
_READ_BYTES: Final = 4 << 20
_MS_PER_S: Final = 1000
#: Names that file systems of fsspec have for the time of the last change.
_TIME_KEYS: Final = ("mtime", "LastModified", "last_modified", "updated")


class UrlFolder:
    """`Folder` on a file system of fsspec.

    A file is complete, and as durable as the store makes it, once it is stored. Where its promises
    say so, it is gathered in a temporary file of this machine and put in one request, which may be
    repeated: in an object store under its own name, elsewhere under another one, and then moved.
    Steps that fail because a server is busy or out of reach are tried again for 15 s.

    Args:
        puts_whole: whether a file that is being put is seen only when it is whole; default: as
            the store promises.
        patience_ms: how long a step is tried again.
    """

    def __init__(
        self,
        files: Any,
        path: str,
        *,
        place: str = "",
        puts_whole: bool | None = None,
        patience_ms: float = PATIENCE_MS,
    ) -> None:
        self._files = files
        self._path = path.rstrip("/")
        self.place = place or str(files.unstrip_protocol(self._path))  #: See `Folder`.
        self.promises = promises_of(files.protocol)  #: See `Folder`.
        if puts_whole is not None:
            self.promises = self.promises._replace(puts_whole=puts_whole)
        self._is_gathered = self.promises.puts_whole or self.promises.puts_new
        self._patience_ms = patience_ms

    def make(self, *folders: str) -> None:
        """See `Folder`; does nothing in a store of objects."""
        if not self.promises.puts_whole:
            for folder in ("", *folders):
                path = self._at(folder).rstrip("/")
                self._tried(self._files.makedirs, path, exist_ok=True)

    def hold(self, folder: str) -> None:
        """See `Folder`; does nothing."""

    def names(self, folder: str = "") -> list[str]:
        try:
            infos = self._tried(self._fresh.ls, self._at(folder).rstrip("/"), detail=True)
        except FileNotFoundError:
            return []
        return [each["name"].rpartition("/")[2] for each in infos if each["type"] == "file"]

    def walk(self, folder: str = "", into: Callable[[str], bool] = any_folder) -> list[str]:
        begin = f"{self._at(folder).rstrip('/')}/"
        try:
            paths = self._tried(self._fresh.find, begin.rstrip("/"))
        except FileNotFoundError:
            return []
        return [
            path[len(self._path) + 1 :]
            for path in paths
            if path.startswith(begin) and all(map(into, path[len(begin) :].split("/")[:-1]))
        ]

    def location(self, name: str) -> str:
        return f"{self.place}/{name}"

    def open(self, name: str) -> BinaryIO:
        found = self._tried(self._fresh.info, self._at(name))
        if found["type"] != "file":
            raise IsADirectoryError(f"{self.location(name)} is a folder")
        read = partial(self._tried, self._files.cat_file, self._at(name))
        return BufferedReader(_Ranges(read, int(found["size"])), _READ_BYTES)

    def read(self, name: str) -> bytes | None:
        try:
            data: bytes = self._tried(self._fresh.cat_file, self._at(name))
        except FileNotFoundError:
            return None
        return data

    def look(self, name: str) -> FileFacts | None:
        path = self._at(name)
        try:
            info = self._tried(self._fresh.info, path)
        except FileNotFoundError:
            return None
        changed = next((info[key] for key in _TIME_KEYS if info.get(key)), None)
        if changed is None:
            with suppress(OSError, NotImplementedError), only_os_errors(NotImplementedError):
                changed = self._files.modified(path)
        if changed is not None and hasattr(changed, "timestamp"):
            changed = changed.timestamp()
        changed_ms = int(changed * _MS_PER_S) if isinstance(changed, int | float) else 0
        return FileFacts(int(info.get("size") or 0), changed_ms)

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Folder`; looks whether it is there, as some file systems fail in silence."""
        path = self._at(name)
        if self.promises.puts_whole:
            size = self._put_gathered(path, chunks)
        else:
            temporary = self._temporary(path)
            try:
                size = self._put_temporary(temporary, chunks)
                # After a lost answer it is not there any more; the writer looks for its new name.
                with suppress(FileNotFoundError):
                    self._move(temporary, path)
            except BaseException:
                with suppress(OSError), only_os_errors():
                    self._files.rm_file(temporary)
                raise
        if self.promises.confirms:
            return
        found = self._tried(self._fresh.info, path)
        if found["type"] != "file" or found["size"] != size:
            raise OSError(f"{path} was stored with {size} bytes, found is {found}")

    def _put_gathered(self, path: str, chunks: Iterable[bytes]) -> int:
        # In the store, a stream that breaks off may count as a whole file.
        with NamedTemporaryFile(prefix="gearpy-", suffix=TEMPORARY) as file:
            size = sum(map(file.write, chunks))
            file.flush()
            self._tried(self._files.put_file, file.name, path)
        return size

    def _put_temporary(self, path: str, chunks: Iterable[bytes]) -> int:
        self._tried(self._files.makedirs, path.rpartition("/")[0], exist_ok=True)
        if self._is_gathered:
            return self._put_gathered(path, chunks)
        size = 0
        with only_os_errors():
            file = self._files.open(path, "wb")
        with file:
            for chunk in chunks:
                size += len(chunk)
                with only_os_errors():
                    file.write(chunk)
        return size

    def _temporary(self, path: str) -> str:
        folder, _, last = path.rpartition("/")
        return f"{folder}/.{last}.{uuid4().hex}{TEMPORARY}"

    def _move(self, path: str, to: str) -> None:
        try:
            self._tried(self._files.mv, path, to)
        except FileExistsError:  # Some file systems never replace.
            self._tried(self._files.rm_file, to)
            self._tried(self._files.mv, path, to)

    def put(self, name: str, data: bytes) -> None:
        if self.promises.puts_whole:
            self._tried(self._files.pipe_file, self._at(name), data)
        else:
            self.write(name, [data])

    def put_new(self, name: str, data: bytes) -> bool:
        """See `Folder`; where the store does not promise it, two may think that they were first.

        After a lost answer the file itself tells whose it is, so the data of two differ.
        """
        if not self.promises.puts_new:
            if self.look(name) is not None:
                return False
            self.put(name, data)
            return True
        path = self._at(name)
        if not self.promises.puts_whole:
            temporary = self._temporary(path)
            self._put_temporary(temporary, [data])
            try:
                if self._tried(self._files.move_new, temporary, path):
                    return True

                # It was moved, and the answer was lost.
                try:
                    self._tried(self._fresh.info, temporary)
                except FileNotFoundError:
                    return True
                return False
            finally:
                with suppress(OSError), only_os_errors():
                    self._files.rm_file(temporary)
        try:
            self._tried(self._files.pipe_file, path, data, mode="create")
        except FileExistsError:
            return self.read(name) == data
        return True

    def create(self, name: str) -> BinaryIO:
        """See `Folder`; where it is gathered, it is in the store once it is synced."""
        path = self._at(name)
        if self._is_gathered:
            return cast("BinaryIO", _Gathered(path))
        with only_os_errors():
            created: BinaryIO = self._files.open(path, "wb")
        return created

    def sync(self, file: BinaryIO) -> None:
        if isinstance(file, _Gathered):
            file.flush()
            self._tried(self._files.put_file, file.name, file.path)
            return
        with only_os_errors():
            file.close()

    def move(self, name: str, *, to: str) -> bool:
        try:
            self._move(self._at(name), self._at(to))
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._tried(self._files.rm_file, self._at(name))

    def remove_tree(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._tried(self._fresh.rm, self._at(name), recursive=True)

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
        self._files.invalidate_cache()
        return self._files

    def _tried(self, step: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Do a step, again and again while its error may pass."""
        retries = Retries(monotonic_ms(), Random(), patience_ms=self._patience_ms)
        while True:
            try:
                with only_os_errors():
                    return step(*args, **options)
            except OSError as error:
                pause_ms = retries.pause_ms(error, monotonic_ms())
                if pause_ms is None:
                    raise
                _log.warning(
                    "%s: %s; tried again in %.1f s", self.place, error, pause_ms / _MS_PER_S
                )
                time.sleep(pause_ms / _MS_PER_S)


class _Gathered(BufferedWriter):
    """A file that is being written here, and put into a store when it is complete."""

    def __init__(self, path: str) -> None:
        handle, name = mkstemp(prefix="gearpy-", suffix=TEMPORARY)
        super().__init__(FileIO(handle, "wb"))
        self.path = path  # The path in the store.
        self._here = name

    @property
    def name(self) -> str:
        return self._here

    def close(self) -> None:
        super().close()
        Path(self._here).unlink(missing_ok=True)


class _Ranges(RawIOBase):
    """Reads a file in ranges, each with a request of its own, which shares no state with others."""

    def __init__(self, read: Callable[..., bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readall(self) -> bytes:
        """Return the rest with one request; the inherited one asks for 8 KiB at a time."""
        if self._at >= self._size:
            return b""
        data = self._read(start=self._at, end=self._size)
        self._at += len(data)
        return data

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._size)
        if end <= self._at:
            return 0
        data = self._read(start=self._at, end=end)
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
