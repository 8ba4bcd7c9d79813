"""Log files: of daemons, and of the processes of applications; `log_reader` reads them.

A log is a file ``name.log``; what was set aside is ``name.log.1`` and so on, oldest last.
"""

import json
import logging
import os
import shutil
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from gearpy.cluster.host.folders import private_folder
from gearpy.cluster.host.log_reader import log_folder_of, log_name_of
from gearpy.config.schema import Config, LogConfig
from gearpy.errors import ConfigError
from gearpy.ids import AppId, ExecutorId

LogFormat: TypeAlias = Literal["text", "json"]

#: A line without an end is cut here; so much of it is kept in memory.
_LINE_BYTES_MAX: Final = 64 * 1024
_LINE_ENDS: Final = str.maketrans({"\n": "\\n", "\r": "\\r"})


class LogSettings(Struct, frozen=True, kw_only=True):
    """The place of logs, and their form."""

    folder: Path
    format: LogFormat
    file_bytes_max: int = 10 << 20  #: A log file of this size is set aside and a new one begun.
    files: int = 5  #: So many files that were set aside are kept of each log.

    @classmethod
    def of(cls, config: Config) -> "LogSettings":
        log = config.log
        return cls(folder=private_folder(Path(log.folder), "log.folder"), format=log.format)

    def open(self, name: str) -> "LogFile":
        path = self.folder / name
        private_folder(path.parent, "log.folder")
        return LogFile(path, bytes_max=self.file_bytes_max, files=self.files)

    def set_aside(self, app_id: AppId) -> None:
        """Move the logs of an earlier application with the same number out of the way.

        A cluster that keeps nothing, such as a local one, numbers its applications from 1 again.
        """
        folder = log_folder_of(self.folder, app_id)
        aside = folder.with_name(f"{folder.name}.old")
        with suppress(OSError):
            if folder.exists():
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)


def application_log(app_id: AppId, executor_id: ExecutorId, launch: int) -> str:
    return f"{log_folder_of('', app_id)}/{log_name_of(executor_id, launch)}"


class LogFile:
    """A file that lines are added to; at a size it is set aside and a new one begun.

    What cannot be written (full disk, folder gone) is lost: a daemon does not end because of its
    log.

    Runs on: any thread.
    """

    def __init__(self, path: Path, *, bytes_max: int, files: int) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._files = files
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._size = 0
        self._closed = False

    def check(self) -> None:
        """Open the file, so that a daemon whose log would be lost says so when it starts."""
        try:
            with self._lock:
                self._opened()
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise ConfigError(
                f"log.folder {self.path.parent} cannot be used: {self.path.name} cannot be written "
                f"({reason}): open it to this user (in a unit of systemd by LogsDirectory=), or "
                "name another"
            ) from error

    def write(self, lines: bytes) -> None:
        """Add whole lines; more than fits into one file is spread over several."""
        with self._lock:
            while lines and not self._closed:
                end = len(lines)
                if end > self._bytes_max:
                    end = lines.rfind(b"\n", 0, self._bytes_max) + 1 or self._bytes_max
                piece, lines = lines[:end], lines[end:]
                with suppress(OSError):
                    handle = self._opened()
                    if self._size and self._size + len(piece) > self._bytes_max:
                        self._set_aside()
                        handle = self._opened()
                    self._size += os.write(handle, piece)

    def _set_aside(self) -> None:
        self._close()
        older = [self.path.with_name(f"{self.path.name}.{n + 1}") for n in range(self._files)]
        names = [self.path, *older]
        for old, new in zip(reversed(names), reversed(names[:-1]), strict=False):
            with suppress(FileNotFoundError):
                new.replace(old)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._close()

    def _opened(self) -> int:
        if self._handle is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._handle = os.open(self.path, flags, 0o600)
            self._size = os.fstat(self._handle).st_size  # An earlier process may have begun it.
        return self._handle

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle, self._size = None, 0


class WritesLines(Protocol):
    """Takes whole lines: a `LogFile`, or what counts them, or passes them on."""

    def write(self, lines: bytes) -> None: ...


class StreamLog:
    """One output of a process, line by line into its log; lines of two streams never mix.

    In a JSON log, what is no JSON object itself becomes the message of one.

    Runs on: one thread.
    """

    def __init__(self, file: WritesLines, name: str, log_format: LogFormat) -> None:
        self._file = file
        self._name = name
        self._is_json = log_format == "json"
        self._rest = b""

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) >= _LINE_BYTES_MAX:
            data, end = data + b"\n", len(data) + 1
        self._rest = data[end:]
        lines = data[:end]
        if self._is_json:
            lines = b"".join(self._as_json(line) for line in lines.splitlines())
        self._file.write(lines)

    def end(self) -> None:
        if self._rest:
            self.feed(b"\n")

    def _as_json(self, line: bytes) -> bytes:
        text = line.decode("utf-8", "replace")
        try:
            is_object = text.startswith("{") and isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object:
            text = json.dumps(
                {"time": _utc(datetime.now(UTC)), "logger": self._name, "message": text}
            )
        return text.encode() + b"\n"


class LogHandler(logging.Handler):
    """Puts log records into a `LogFile`."""

    def __init__(self, file: LogFile) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - a wrong log call must not end what it is about
            self.handleError(record)
            return
        self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def close(self) -> None:
        self._file.close()
        super().close()


class _TextFormatter(logging.Formatter):
    """``time level logger: message``; a message stays on its line, a traceback follows it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return _utc(datetime.fromtimestamp(record.created, UTC))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line; user data in it must not look like another line."""
        record.message = record.message.translate(_LINE_ENDS)
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _utc(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def formatter(log_format: LogFormat) -> logging.Formatter:
    return _JsonFormatter() if log_format == "json" else _TextFormatter()


def _utc(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def log_to(handler: logging.Handler, config: LogConfig, logger: str | None = None) -> None:
    handler.setFormatter(formatter(config.format))
    handler.setLevel(config.level.upper())
    source = logging.getLogger(logger)
    source.addHandler(handler)
    if logger is None:  # Another owner of the process decides itself what is logged.
        source.setLevel(min(source.level, handler.level))
