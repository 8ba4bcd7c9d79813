"""Files whose lines end with a carriage return alone, as an old Mac wrote them."""

import io
from typing import BinaryIO, Final

_HEAD_BYTES: Final = 1 << 16


class _OldLines(io.RawIOBase):
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

    def readinto(self, room: memoryview, /) -> int:  # type: ignore[override]
        data = self._opened.read(len(room)).replace(b"\r", b"\n")
        room[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._opened.close()
        super().close()


def with_lines(opened: BinaryIO) -> BinaryIO:
    """Return a file with line endings; it looks whether the file has carriage returns only."""
    head = opened.read(_HEAD_BYTES)
    opened.seek(0)
    is_old = b"\r" in head.removesuffix(b"\r") and b"\n" not in head
    return io.BufferedReader(_OldLines(opened)) if is_old else opened
