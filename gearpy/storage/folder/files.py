"""Single files of a disk, with errors that name the file and a remedy."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _ToldFile(FileIO):
    """A file whose errors of writing name it; those of the system do not."""

    def write(self, data: "ReadableBuffer", /) -> int:
        with told(Path(os.fsdecode(self.name))):
            return super().write(data)


def create_file(
    path: Path,
    mode: Literal["xb", "wb", "ab"],
    *,
    buffering: int,
    opener: Callable[[str, int], int] | None = None,
) -> BinaryIO:
    """Open a file to write; an error of writing names it and, on a full disk, a remedy."""
    with told(path):
        file = _ToldFile(path, mode, opener=opener)
    return cast("BinaryIO", BufferedWriter(file, buffering) if buffering else file)


def sync_file(file: BinaryIO) -> None:
    file.flush()
    with told(Path(os.fsdecode(file.name))):
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Make errors of the system name a file and, on a full disk, its free space and a remedy."""
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
