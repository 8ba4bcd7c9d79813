"""Reads the bytes of lines from a file that is complete, or from one that still grows."""

import logging
import lzma
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from gearpy.connectors.files.rotation import FileMark, found_again, mark_of, successor
from gearpy.errors import GearpyError, OperatorError

_LOG: Final = logging.getLogger(__name__)

_BEFORE_BYTES: Final = 256  #: Are looked at again with what follows them.
#: The fate of lines that were added to a file which is gone.
OnLost: TypeAlias = Literal["fail", "skip"]


class ReadableFile(ABC):
    """The file from which a `FileReader` has its bytes; by default it is complete."""

    grows = False  #: Whether there may be more bytes later.

    @abstractmethod
    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes from the offset on, fewer than asked for only at the end."""

    def has_changed(self, read_to: int) -> bool:
        """Whether another file is there now than the one that was read up to here."""
        return False

    def look_for_change(self, read_to: int) -> Callable[[], bool] | None:
        """Return what tells, on any thread, that there is more than this; None: nothing does."""
        return None

    def mark(self, offset: int) -> FileMark | None:
        """Return the mark of the file that was read up to here; None if it stays where it is."""
        return None

    @property
    def size(self) -> int | None:
        """The bytes that it has now; None where nothing is open."""
        return None

    def close(self) -> None:  # noqa: B027 - most have nothing open
        pass


class RegularFile(ReadableFile):
    """A file that is complete. Opened for each block, so that any number can be read in turns."""

    def __init__(self, path: str, info: os.stat_result) -> None:
        self._path = path
        self._identity = _identity(info)

    def read_at(self, offset: int, size: int) -> bytes:
        with open(self._path, "rb", buffering=0) as file:  # noqa: PTH123 - Path is slow
            if _identity(os.fstat(file.fileno())) != self._identity:
                raise GearpyError(
                    f"{self._path} was replaced by another file while it was read, at {offset} "
                    "bytes: read files that are complete, or use follow=True"
                )
            return _read(file, offset, size)


class PackedFile(ReadableFile):
    """A file that is complete and packed. Stays open until its end: each other time begins anew."""

    def __init__(self, path: str, unpack: Callable[[str], BinaryIO]) -> None:
        self._path = path
        self._unpack = unpack
        self._content: BinaryIO | None = None

    def read_at(self, offset: int, size: int) -> bytes:
        try:
            if self._content is None:
                self._content = self._unpack(self._path)
                if (end := self._content.seek(offset)) < offset:
                    raise GearpyError(
                        f"{self._path} has {end} bytes in it, cannot resume at {offset}: it was "
                        "changed since it was read"
                    )
            data = _read(self._content, offset, size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise GearpyError(
                f"{self._path} cannot be unpacked behind byte {offset} of its content: {error}: "
                "is it complete?"
            ) from error
        if len(data) < size:
            self.close()
        return data

    def close(self) -> None:
        if self._content is not None:
            self._content.close()
            self._content = None


class GrowingFile(ReadableFile):
    """A file that is still written to. Stays open, to read a replaced file to its end.

    Args:
        mark: of the file that was read before, which may have been rotated since.
        on_lost: whether to go on with the new one where the one that was read is not found.
    """

    grows = True

    def __init__(
        self, path: str, *, mark: FileMark | None = None, on_lost: OnLost = "fail"
    ) -> None:
        self._path = path
        self._mark = mark
        self._marked_at = -1  # The byte up to which it was read.
        self._on_lost = on_lost
        self._file: Any = None
        self._before = b""  # The last bytes that were read, and where they end.
        self._before_end = -1
        self._is_rewritten = False
        self._is_lost = False  # The one that was read before; the file at the path is another one.

    def read_at(self, offset: int, size: int) -> bytes:
        """Read a block; nothing as long as there is no file."""
        if self._file is None and not self._opened(offset):
            return b""
        before = self._before if self._before_end == offset else b""
        data = _read(self._file, offset - len(before), size + len(before))
        if not data.startswith(before):  # It was cut, and has grown again.
            self._is_rewritten = len(data) >= len(before)
            return b""
        self._before, self._before_end = data[-_BEFORE_BYTES:], offset + len(data) - len(before)
        return data[len(before) :]

    def has_changed(self, read_to: int) -> bool:
        """Look whether the file was replaced or has become shorter; if so, go to the new one."""
        if self._file is None:
            changed, self._is_lost = self._is_lost, False
            return changed
        opened = os.fstat(self._file.fileno())
        try:
            info = os.stat(self._path)  # noqa: PTH116 - asked often
        except FileNotFoundError:
            return False  # It may be on its way to be replaced.
        if _identity(info) == _identity(opened):
            changed = info.st_size < read_to or self._is_rewritten
        else:  # The rest of the old file is read first.
            changed = opened.st_size <= read_to and self._goes_on_behind(opened)
        if changed:
            self._mark, self._marked_at = None, -1
            self._before_end, self._is_rewritten = -1, False
        return changed

    def look_for_change(self, read_to: int) -> Callable[[], bool] | None:
        if self._file is None:
            return None
        opened, path = os.fstat(self._file.fileno()), self._path

        def has_changed() -> bool:
            info = os.stat(path)  # noqa: PTH116 - asked often
            return info.st_size != read_to or info.st_ino != opened.st_ino

        return has_changed

    def _goes_on_behind(self, read: os.stat_result) -> bool:
        following = successor(self._path, read)
        try:
            file: Any = open(following, "rb", buffering=0)  # noqa: PTH123, SIM115
        except FileNotFoundError:
            return False
        # Files may have been rotated since, and another one be the next.
        with suppress(FileNotFoundError):
            is_next = successor(self._path, read) == following
            if is_next and _identity(os.stat(following)) == _identity(os.fstat(file.fileno())):  # noqa: PTH116 - as above
                self.close()
                self._file = file
                return True
        file.close()
        return False

    def mark(self, offset: int) -> FileMark | None:
        if self._file is not None and offset != self._marked_at:
            self._mark, self._marked_at = mark_of(self._file, offset), offset
        return self._mark

    @property
    def size(self) -> int | None:
        return None if self._file is None else os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self, offset: int) -> bool:
        """Open the file that was read up to here; tell whether there is one."""
        if self._is_lost:
            return False
        if self._mark is None:
            return self._open(self._path)
        found = found_again(self._path, self._mark, offset)
        if found is not None:
            if found != self._path:
                _LOG.info(
                    "%s was rotated: its lines from byte %d on are in %s", self._path, offset, found
                )
            return self._open(found)
        if not os.path.exists(self._path):  # noqa: PTH110 - as above
            return False
        if offset and self._on_lost == "fail":
            raise OperatorError(
                operator="files",
                cause=f"{self._path} is not the file that was read up to byte {offset:,}, and no "
                "file beside it is, so lines may be lost that came while nothing was read. Bring "
                f"it back, as {self._path}.1, or go on without them with "
                'gp.files(..., on_lost="skip")',
                is_final=True,
            )
        _LOG.warning(
            "%s is not the file that was read up to byte %d, which is gone", self._path, offset
        )
        self._mark, self._is_lost = None, True
        return False

    def _open(self, path: str) -> bool:
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: PTH123, SIM115
        except FileNotFoundError:
            return False
        self._marked_at = -1
        return True


def _read(file: BinaryIO | Any, offset: int, size: int) -> bytes:
    """Read until there are ``size`` bytes or no more; a single read may give fewer."""
    file.seek(offset)
    data: bytes = file.read(size)
    while data and len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _identity(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino
