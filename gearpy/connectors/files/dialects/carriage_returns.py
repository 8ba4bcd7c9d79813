"""Files whose lines end with a carriage return alone, as an old Mac wrote them."""

import io
from typing import BinaryIO, Final

from gearpy.connectors.locations import DamagedFile

_HEAD_BYTES: Final = 1 << 16


class _OldLines(io.BufferedIOBase):
    """Such a file with other line endings, of the same length."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        return self._opened.seek(place, whence)

    def tell(self) -> int:
        return self._opened.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            data = self._opened.read(-1 if size is None else size)
        except DamagedFile as damaged:
            damaged.data = damaged.data.replace(b"\r", b"\n")
            raise
        return data.replace(b"\r", b"\n")

    def close(self) -> None:
        self._opened.close()
        super().close()


def with_lines(opened: BinaryIO) -> BinaryIO:
    """Return a file with line endings; it looks whether the file has carriage returns only."""
    try:
        head = opened.read(_HEAD_BYTES)
        opened.seek(0)
    except DamagedFile as damaged:  # Its reader tells when it comes to the damage.
        head = damaged.data
    is_old = b"\r" in head.removesuffix(b"\r") and b"\n" not in head
    return _OldLines(opened) if is_old else opened  # type: ignore[return-value] # It has what is asked.
