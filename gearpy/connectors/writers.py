"""The writing half of the file sinks: records to lines, lines to a file."""

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, BinaryIO, Final, SupportsIndex, TypeAlias

from gearpy.connectors.stamps import each
from gearpy.errors import ConfigError
from gearpy.task.api import Batch, Sink, SinkWriter

__all__ = ["FileSink", "FileWriter", "LinesOf", "json_lines", "text_lines"]

#: Makes the bytes of some lines of some records; is told the name of the sink for errors.
LinesOf: TypeAlias = Callable[[str, Sequence[Any]], bytes]

_BUFFER_BYTES: Final = 1 << 17
_to_json: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=True
).encode


class FileSink(Sink):
    """A file, or one for each task; see `text_file` and `jsonl_file`.

    Args:
        name: of the sink, for people.
        path: where to write.
        lines_of: makes lines of records.
        append: whether to keep what the file holds.
    """

    def __init__(self, name: str, path: str | Path, lines_of: LinesOf, *, append: bool) -> None:
        self._name = name
        self._path = Path(path).expanduser()
        self._lines_of = lines_of
        self._append = append

    @property
    def description(self) -> str:
        """The function and the path."""
        return f"{self._name}({self._path})"

    def open(self, task_index: int, parallelism: int) -> "FileWriter":
        """Open the file of one task.

        Raises:
            ConfigError: it cannot be opened.
        """
        path = self._path
        if parallelism > 1:
            part = f"-{task_index:05d}-of-{parallelism:05d}"
            path = path.with_name(f"{path.stem}{part}{path.suffix}")
        if not path.parent.is_dir():
            raise ConfigError(f"{self._name}: folder {path.parent} does not exist: make it first")
        try:
            file = path.open("ab" if self._append else "wb", buffering=_BUFFER_BYTES)
        except OSError as error:
            raise ConfigError(f"{self._name}: cannot write {path}: {error.strerror}") from error
        return FileWriter(self._name, file, self._lines_of)


class FileWriter(SinkWriter):
    """Writes lines into an open file, which others see whenever event time has moved."""

    def __init__(self, name: str, file: BinaryIO, lines_of: LinesOf) -> None:
        self._name = name
        self._file = file
        self._lines_of = lines_of

    def write_batch(self, batch: Batch) -> None:
        """Put the lines into the buffer."""
        self._file.write(self._lines_of(self._name, batch.values))

    def on_watermark(self, watermark_ms: int) -> None:
        """Hand the buffer to the operating system."""
        self._file.flush()

    def close(self, *, completed: bool) -> None:
        """Close the file; when all went well, after it is on disk."""
        with self._file:
            self._file.flush()
            if completed:
                os.fsync(self._file.fileno())


def text_lines(operator: str, values: Sequence[Any]) -> bytes:
    """Return ``str(value)`` of each, in UTF-8, with line endings."""
    lines = each(operator, str, values)
    try:
        return "\n".join([*lines, ""]).encode()
    except UnicodeEncodeError:
        return b"\n".join([*each(operator, str.encode, lines, records=values), b""])


def json_lines(operator: str, values: Sequence[Any]) -> bytes:
    """Return the JSON of each, in UTF-8, with line endings."""
    lines = each(operator, _json, values)
    return "\n".join([*lines, ""]).encode()


def _json(value: Any) -> str:
    text = _to_json(_plain(value))
    text.encode()  # Half of a surrogate pair is no text; said here, where the record is known.
    return text


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one line for each kind
    """Return what the JSON encoder can take; it would write a NamedTuple as a list."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in _fields(value)}
    if isinstance(value, date | time):
        return value.isoformat()
    return _rare(value)


def _fields(value: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(value)


def _rare(value: Any) -> Any:
    if isinstance(value, SupportsIndex):
        return value.__index__()
    kind = type(value).__name__
    fix = "decode them" if isinstance(value, bytes | bytearray) else "map it to text or numbers"
    raise TypeError(f"JSON has no form for {kind} {value!r:.100}: {fix} before")
