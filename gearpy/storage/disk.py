"""Files of one folder, in steps small enough to think about a crash between any two of them.

What is written to a file is durable after `Disk.sync`, and which files there are is durable after
`Disk.sync_names`; before that, a power cut may undo all, a part, or nothing of it.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, Protocol, cast

from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from random import Random

    from _typeshed import ReadableBuffer

__all__ = [
    "TEMPORARY",
    "Disk",
    "FolderDisk",
    "MemoryDisk",
    "create_file",
    "replace",
    "sync_file",
    "sync_folder",
    "told",
]

#: Ends the name of a file that is not complete yet.
TEMPORARY: Final = ".tmp"

_LOCK: Final = "lock"
#: Whoever can write here decides what the cluster runs.
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_PID_BYTES_MAX: Final = 20


class Disk(Protocol):
    """One folder. Each step may raise `OSError`; then nobody knows how much of it was done."""

    @property
    def place(self) -> str:
        """The folder, for people."""
        ...

    def lock(self) -> None:
        """Keep all others out, also other processes.

        Raises:
            ConfigError: another has it.
        """
        ...

    def unlock(self) -> None:
        """Let others in, and hold no file open."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files."""
        ...

    def read(self, name: str) -> bytes:
        """Return a whole file."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Add to the end of a file; make it if there is none."""
        ...

    def sync(self, name: str) -> None:
        """Make the content of a file durable."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut the end of a file off."""
        ...

    def rename(self, old: str, *, to: str) -> None:
        """Give a file another name, in place of the one that has it."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file."""
        ...

    def sync_names(self) -> None:
        """Make durable which files there are."""
        ...


def replace(disk: Disk, name: str, data: bytes, *, temporary: str = "") -> None:
    """Write a file so that after a crash there is all of it, or what was there before."""
    temporary = temporary or f"{name}{TEMPORARY}"
    disk.write(temporary, data)
    disk.sync(temporary)
    disk.rename(temporary, to=name)
    disk.sync_names()


class FolderDisk:
    """`Disk` on a folder, which is made if there is none, for its owner only.

    Runs on: one thread at a time.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder).expanduser()
        self._make(self._folder)
        self._lock: int | None = None
        self._open: tuple[str, int] | None = None  # The file that was written to last.

    @property
    def place(self) -> str:
        """See `Disk`."""
        return str(self._folder)

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=_FOLDER_MODE)
        sync_folder(folder.parent)

    def lock(self) -> None:
        """See `Disk`."""
        handle = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, _FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(handle, _PID_BYTES_MAX).decode("ascii", "replace").strip()
            os.close(handle)
            raise ConfigError(
                f"folder {self._folder} is in use by process {pid or 'unknown'}: "
                "stop that one first, or choose another folder"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        self._lock = handle

    def unlock(self) -> None:
        """See `Disk`."""
        self._close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def names(self) -> list[str]:
        """See `Disk`."""
        with os.scandir(self._folder) as entries:
            return [each.name for each in entries if each.is_file() and each.name != _LOCK]

    def read(self, name: str) -> bytes:
        """See `Disk`."""
        return (self._folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """See `Disk`."""
        left = memoryview(data)
        with told(self._folder / name):
            handle = self._handle(name)
            while left:
                left = left[os.write(handle, left) :]

    def sync(self, name: str) -> None:
        """See `Disk`."""
        with told(self._folder / name):
            os.fsync(self._handle(name))

    def truncate(self, name: str, size: int) -> None:
        """See `Disk`."""
        os.ftruncate(self._handle(name), size)

    def rename(self, old: str, *, to: str) -> None:
        """See `Disk`."""
        self._close()
        (self._folder / old).replace(self._folder / to)

    def remove(self, name: str) -> None:
        """See `Disk`."""
        self._close()
        (self._folder / name).unlink()

    def sync_names(self) -> None:
        """See `Disk`."""
        sync_folder(self._folder)

    def _handle(self, name: str) -> int:
        # One handle from the write to the sync: a new one might not hear of an error before it.
        if self._open is None or self._open[0] != name:
            self._close()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            self._open = (name, os.open(self._folder / name, flags, _FILE_MODE))
        return self._open[1]

    def _close(self) -> None:
        if self._open is not None:
            handle, self._open = self._open[1], None
            os.close(handle)


class _ToldFile(FileIO):
    """A file whose errors of writing name it; those of the system do not."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write; see `FileIO`."""
        with told(Path(os.fsdecode(self.name))):
            return super().write(data)


def create_file(path: Path, mode: Literal["xb", "wb", "ab"], *, buffering: int) -> BinaryIO:
    """Open a file to write; an error of writing names it and, on a full disk, says what to do.

    ``buffering`` is in bytes; 0: each write goes to the system.

    Raises:
        OSError: it cannot be made.
    """
    with told(path):
        file = _ToldFile(path, mode)
    return cast("BinaryIO", BufferedWriter(file, buffering) if buffering else file)


def sync_file(file: BinaryIO) -> None:
    """Make what was written to a file durable.

    Raises:
        OSError: it is not; the file is named.
    """
    file.flush()
    with told(Path(os.fsdecode(file.name))):
        os.fsync(file.fileno())


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Have errors of the system name a file and, on a full disk, how full it is and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason = f"{error.strerror}{_advice(error.errno, path)}"
        raise OSError(error.errno, reason, str(path)) from error


def _advice(number: int, path: Path) -> str:
    if number == errno.EFBIG:
        return " (a limit of this process: raise executor.file-max-bytes, or what ulimit -f says)"
    if number not in {errno.ENOSPC, errno.EDQUOT}:
        return ""
    free = ""
    with suppress(OSError):
        found = os.statvfs(path.parent)
        size, left = found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail
        free = f"{left:,} of {size:,} bytes are free: "
    return f" ({free}make room in {path.parent}, or choose another folder)"


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(slots=True)
class _File:
    """What a process sees of a file, and what a power cut leaves of it."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""


class MemoryDisk:
    """`Disk` in memory that can lose power.

    ``on_step`` is called with the name of each step before it is done, and may raise instead.

    Runs on: one thread at a time.
    """

    def __init__(self, on_step: Callable[[str], None] = lambda _: None) -> None:
        self.on_step = on_step
        self._files: dict[str, _File] = {}
        self._states: list[dict[str, _File]] = [{}]  # The durable names, then those since.
        self._is_locked = False

    @property
    def place(self) -> str:
        """See `Disk`."""
        return "memory"

    def crash(self, rng: "Random | None" = None) -> None:
        """Lose power, then have it back.

        What was not synced is lost; with ``rng``, a random part of it.
        """
        kept = self._states[0] if rng is None else rng.choice(self._states)
        self._files = {name: self._surviving(file, rng) for name, file in kept.items()}
        self._states = [dict(self._files)]
        self._is_locked = False

    def _surviving(self, file: _File, rng: "Random | None") -> _File:
        data = file.durable if rng is None else _torn(bytes(file.data), file.durable, rng)
        return _File(bytearray(data), data)

    def lock(self) -> None:
        """See `Disk`."""
        if self._is_locked:
            raise ConfigError("folder memory is in use by this process: close the other one first")
        self._is_locked = True

    def unlock(self) -> None:
        """See `Disk`."""
        self._is_locked = False

    def names(self) -> list[str]:
        """See `Disk`."""
        return list(self._files)

    def read(self, name: str) -> bytes:
        """See `Disk`."""
        return bytes(self._files[name].data)

    def write(self, name: str, data: bytes) -> None:
        """See `Disk`."""
        self.on_step("write")
        if name not in self._files:
            self._files[name] = _File()
            self._on_names_changed()
        self._files[name].data += data

    def sync(self, name: str) -> None:
        """See `Disk`."""
        self.on_step("sync")
        file = self._files[name]
        file.durable = bytes(file.data)

    def truncate(self, name: str, size: int) -> None:
        """See `Disk`."""
        self.on_step("truncate")
        del self._files[name].data[size:]

    def rename(self, old: str, *, to: str) -> None:
        """See `Disk`."""
        self.on_step("rename")
        self._files[to] = self._files.pop(old)
        self._on_names_changed()

    def remove(self, name: str) -> None:
        """See `Disk`."""
        self.on_step("remove")
        del self._files[name]
        self._on_names_changed()

    def sync_names(self) -> None:
        """See `Disk`."""
        self.on_step("sync_names")
        self._states = [dict(self._files)]

    def _on_names_changed(self) -> None:
        self._states.append(dict(self._files))


def _torn(data: bytes, durable: bytes, rng: "Random") -> bytes:
    """Return what may be left of a file: some of what was written since the last sync."""
    if not data.startswith(durable):  # It was cut, or not.
        return rng.choice([data, durable])
    extra = data[len(durable) :][: rng.randint(0, len(data) - len(durable))]
    # The file may have grown on disk without its content, or with a part of it.
    hole = rng.randint(0, len(extra)) if rng.random() < 0.5 else 0  # noqa: PLR2004 - a coin
    return durable + bytes(hole) + extra[hole:]
