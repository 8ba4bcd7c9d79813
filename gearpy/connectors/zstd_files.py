"""Reads what was packed by zstd, for which this Python has no module of its own."""

import io
from pathlib import Path
from typing import Any, BinaryIO

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

_SKIP_BYTES = 1 << 20


def open_zstd(source: Any) -> BinaryIO:
    opened = open(source, "rb") if isinstance(source, str | Path) else source  # noqa: PTH123, SIM115
    return io.BufferedReader(_Unpacked(opened))


class _Unpacked(io.RawIOBase):
    """The content of a packed file; a step back in it begins anew."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._begin()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def readinto(self, target: Any) -> int:
        data = self._content.read(len(target))
        target[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("nobody knows where the content of a packed file ends")
        target = offset + self._at if whence == io.SEEK_CUR else offset
        if target < self._at:
            self._begin()
        while self._at < target:
            data = self._content.read(min(_SKIP_BYTES, target - self._at))
            if not data:
                break
            self._at += len(data)
        return self._at

    def close(self) -> None:
        self._packed.close()
        super().close()

    def _begin(self) -> None:
        self._packed.seek(0)
        self._at = 0
        self._content = pa.CompressedInputStream(pa.PythonFile(_Lent(self._packed), "r"), "zstd")


class _Lent(io.RawIOBase):
    """A file that stays open when Arrow closes it, so that it can be read anew."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)
