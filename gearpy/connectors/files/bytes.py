"""Where lines have their bytes from: a file that is complete, or one that is still written to."""

import os
from typing import Any, BinaryIO, Protocol

from gearpy.errors import GearpyError


class ReadableFile(Protocol):
    """Where a `FileReader` has its bytes from."""

    grows: bool  #: Whether there may be more bytes later.

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes from the offset on, fewer than asked for only at the end."""
        ...

    def has_changed(self, read_to: int) -> bool:
        """Whether another file is there now than the one that was read up to here."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class RegularFile:
    """A file that is complete. Opened for each block, so that any number can be read in turns.

    Args:
        path: the file.
        info: what `os.stat` said of it.
    """

    grows = False

    def __init__(self, path: str, info: os.stat_result) -> None:
        self._path = path
        self._identity = _identity(info)

    def read_at(self, offset: int, size: int) -> bytes:
        """Read a block.

        Raises:
            GearpyError: it is not the same file any more.
        """
        with open(self._path, "rb", buffering=0) as file:  # noqa: PTH123 - Path is slow
            if _identity(os.fstat(file.fileno())) != self._identity:
                raise GearpyError(
                    f"{self._path} was replaced by another file while it was read, at {offset} "
                    "bytes: read files that are complete, or use follow=True"
                )
            return _read(file, offset, size)

    def has_changed(self, read_to: int) -> bool:
        """Not asked: `read_at` says so."""
        return False

    def close(self) -> None:
        """Nothing is open."""


class GrowingFile:
    """A file that is still written to. Stays open, to read a replaced file to its end."""

    grows = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: Any = None

    def read_at(self, offset: int, size: int) -> bytes:
        """Read a block; nothing as long as there is no file."""
        if self._file is None:
            try:
                self._file = open(self._path, "rb", buffering=0)  # noqa: PTH123, SIM115
            except FileNotFoundError:
                return b""
        return _read(self._file, offset, size)

    def has_changed(self, read_to: int) -> bool:
        """Look whether the file was replaced or has become shorter; if so, go to the new one."""
        try:
            info = os.stat(self._path)  # noqa: PTH116 - asked often
        except FileNotFoundError:
            return False  # It may be on its way to be replaced.
        opened = os.fstat(self._file.fileno()) if self._file else info
        if _identity(info) == _identity(opened):
            changed = info.st_size < read_to
        else:
            changed = opened.st_size <= read_to  # Else there is more to read before.
        if changed:
            self.close()
        return changed

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _read(file: BinaryIO | Any, offset: int, size: int) -> bytes:
    """Read until there are ``size`` bytes or no more; a single read may give fewer."""
    file.seek(offset)
    data: bytes = file.read(size)
    while data and len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _identity(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino
