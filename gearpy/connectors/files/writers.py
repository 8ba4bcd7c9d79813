"""The writing half of the file sinks: records to lines, lines to a file."""

import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, TypedDict

from gearpy.columns.json_text import json_of
from gearpy.connectors.files.stamps import each
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.table import Table
from gearpy.storage.folder.files import create_file, sync_file, sync_folder
from gearpy.task.api.interfaces import Batch, Sink, SinkWriter
from gearpy.task.api.window_result import rows_in

#: Makes the bytes of some lines of some records; is told the name of the sink for errors.
LinesOf: TypeAlias = Callable[[str, Sequence[Any]], bytes]

_BUFFER_BYTES: Final = 1 << 17
_COPY_BYTES: Final = 1 << 20


class FileSink(Sink):
    one_task = True

    def __init__(self, name: str, path: str | Path, lines_of: LinesOf, *, append: bool) -> None:
        self._name = name
        self._path = Path(path).expanduser()
        self._lines_of = lines_of
        self._append = append
        self.columnar = lines_of is json_lines
        # A failure before the first snapshot leaves what it finds.
        self.takes_back = not append

    @property
    def description(self) -> str:
        return f"{self._name}({self._path})"

    def open(self, task_index: int, parallelism: int) -> "FileWriter":
        path = self._path
        if parallelism > 1:
            part = f"-{task_index:05d}-of-{parallelism:05d}"
            path = path.with_name(f"{path.stem}{part}{path.suffix}")
        if not path.parent.is_dir():
            raise ConfigError(f"{self._name}: folder {path.parent} does not exist: make it first")
        return FileWriter(self._name, path, self._lines_of, append=self._append)


class WrittenPlace(TypedDict):
    """Snapshot of a writer: so many bytes of the file are on disk and stay."""

    size: int


class FileWriter(SinkWriter):
    """Writes lines into a file, which others see whenever event time has moved.

    A restart goes on where the snapshot was taken: what was written later is cut off, for it will
    come again, and so is half a line. It goes on in a new file of the same name, so that a process
    that was only believed to be dead writes into one that nobody sees any more.
    """

    atomic = True

    def __init__(self, name: str, path: Path, lines_of: LinesOf, *, append: bool) -> None:
        self._name = name
        self._path = path
        self._lines_of = lines_of
        self._append = append
        self._file: BinaryIO | None = None
        self._is_regular = True
        self._durable = -1  # Bytes on disk.

    def restore(self, state: WrittenPlace | None) -> None:
        """Open the file at its snapshot, or empty; at its end if it is to be kept."""
        try:
            try:
                mode = self._path.stat().st_mode
                kinds = (stat.S_ISCHR, stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISDIR)
                self._is_regular = not any(is_kind(mode) for is_kind in kinds)
            except FileNotFoundError:
                self._is_regular = True
            if not self._is_regular:  # A pipe or a device has no place to go back to.
                self._file = create_file(self._path, "wb", buffering=_BUFFER_BYTES)
            elif self._append and state is None:
                self._file = create_file(self._path, "ab", buffering=_BUFFER_BYTES)
            else:
                self._file = self._renewed(0 if state is None else state["size"])
        except OSError as error:
            raise ConfigError(
                f"{self._name}: cannot write {self._path}: {error.strerror}"
            ) from error

    def write_batch(self, batch: Batch) -> None:
        self._opened.write(self._lines_of(self._name, batch.values))

    def on_watermark(self, watermark_ms: int) -> None:
        self._opened.flush()

    def snapshot(self) -> WrittenPlace | None:
        self._opened.flush()
        if not self._is_regular:
            return None
        size = self._opened.tell()
        if size != self._durable:
            sync_file(self._opened)
            if self._durable < 0:
                sync_folder(self._path.resolve().parent)
            self._durable = size
        return {"size": size}

    def close(self, *, completed: bool) -> None:
        if self._file is None:
            return
        with self._file:
            self._file.flush()
            if completed and self._is_regular:
                sync_file(self._file)

    @property
    def _opened(self) -> BinaryIO:
        assert self._file is not None, "restore() comes first"
        return self._file

    def _renewed(self, size: int) -> BinaryIO:
        """Put a new file in the place of the old one; it begins with some bytes of that."""
        path = self._path.resolve()  # The file that a link points to is renewed.
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        file = create_file(fresh, "xb", buffering=_BUFFER_BYTES)
        try:
            if path.exists():
                fresh.chmod(stat.S_IMODE(path.stat().st_mode))
            if size:
                self._copy(path, file, size)
                sync_file(file)
            fresh.replace(path)
        except BaseException:
            file.close()
            fresh.unlink(missing_ok=True)
            raise
        return file

    def _copy(self, path: Path, file: BinaryIO, size: int) -> None:
        left = size
        if path.exists():
            with path.open("rb") as old:
                while part := old.read(min(left, _COPY_BYTES)):
                    file.write(part)
                    left -= len(part)
        if left:
            raise GearpyError(
                f"{self._name}: {path} has {size - left} bytes, cannot go on at {size}: it was "
                "changed, or the task was restarted on a machine that does not have it"
            )


def text_lines(operator: str, values: Sequence[Any]) -> bytes:
    lines = each(operator, str, values)
    try:
        return "\n".join([*lines, ""]).encode()
    except UnicodeEncodeError:
        return b"\n".join([*each(operator, str.encode, lines, records=values), b""])


def json_lines(operator: str, values: Sequence[Any]) -> bytes:
    if type(values) is Table:
        from gearpy.columns.json_columns import json_of_rows  # noqa: PLC0415 - Arrow is there

        with suppress(TypeError, ValueError, ArithmeticError):  # The rows tell whose fault it is.
            return json_of_rows(values.batch)
        values = rows_in(values)
    lines = each(operator, json_of, values)
    return "\n".join([*lines, ""]).encode()
