"""LogReader: the last lines of an application's log files, by ids."""

import codecs
import os
import re
import stat
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.client import LogText, ReadLog, Refused

#: With each broken byte shown as three, this still fits into a control frame of 1 MiB.
_ANSWER_BYTES_MAX: Final = 256 * 1024
_PARTS_MAX: Final = 1001  # See `LogSettings.files`.
_LOG_NAME: Final = re.compile(
    r"(?:appmaster|executor-(\d{1,9}))-launch-(\d{1,9})\.log(?:\.\d{1,4})?", re.ASCII
)
_POSITION: Final = re.compile(r"(\d{1,20}):(\d{1,20})", re.ASCII)
#: What executors may have put in the place of a log must lead nowhere and block nobody.
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def log_folder_of(folder: str | Path, app_id: int) -> Path:
    return Path(folder).expanduser() / f"app-{app_id}"


def log_name_of(executor_id: int, launch: int) -> str:
    role = "appmaster" if executor_id == MASTER_EXECUTOR else f"executor-{executor_id}"
    return f"{role}-launch-{launch}.log"


class LogReader:
    """Reads logs that were written to files with names made of ids, and set aside as ``.1`` ...

    Invariant: opens nothing but regular files whose names `log_name_of` made; an answer has
    ``bytes_max`` of a log at most.

    Runs on: any thread; blocks for as long as the disk does.
    """

    def __init__(self, folder: str | Path, *, bytes_max: int = _ANSWER_BYTES_MAX) -> None:
        self._folder = folder
        self._bytes_max = bytes_max

    def answer(self, question: ReadLog) -> LogText | Refused:
        folder = log_folder_of(self._folder, question.app_id)

        launches: dict[int, list[int]] = {}
        try:
            names = [each.name for each in folder.iterdir()]
        except OSError:  # It has none, or never ran here.
            names = []
        for name in names:
            if match := _LOG_NAME.fullmatch(name):
                executor_id = MASTER_EXECUTOR if match[1] is None else int(match[1])
                launches.setdefault(executor_id, []).append(int(match[2]))
        launch = question.launch or max(launches.get(question.executor_id, ()), default=0)
        name = log_name_of(question.executor_id, launch)
        with closing(_Log(_opened_parts(folder / name))) as log:
            if not log.exists:
                subject = _role(question.executor_id)
                if question.launch:
                    subject = f"launch {question.launch} of {subject}"
                known = ", ".join(_role(each) for each in sorted(launches)) or "none"
                no_log = (
                    f"no log of {subject} of application {question.app_id}; logs there: {known}"
                )
                return Refused(reason=no_log)
            start = log.place_of(question.after)
            if start is not None:
                data = log.read(start, min(log.size, start + self._bytes_max))
            else:
                is_cut = log.size > self._bytes_max
                kept = log.read(max(0, log.size - self._bytes_max), log.size).splitlines(
                    keepends=True
                )
                if is_cut and len(kept) > 1:
                    kept = kept[1:]
                data = b"".join(kept[-question.lines :]) if question.lines > 0 else b""
                start = log.size - len(data)
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            text = decoder.decode(data)
            incomplete = len(decoder.getstate()[0])  # The rest of a character will be written.
            return LogText(
                source=f"{folder.name}/{name}",
                text=text,
                launch=launch,
                position=log.position_of(start + len(data) - incomplete),
            )


class _Part(NamedTuple):
    """One file of a log, open. Its inode stays the same when it is set aside."""

    file: BinaryIO
    inode: int
    size: int


class _Log:
    """Files of one log, the oldest first, as if they were one of ``size`` bytes."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self.exists = bool(parts)
        self.size = sum(part.size for part in parts)

    def read(self, start: int, end: int) -> bytes:
        data, before = b"", 0
        for part in self._parts:
            first, last = max(start - before, 0), min(end - before, part.size)
            if first < last:
                part.file.seek(first)
                data += part.file.read(last - first)
            before += part.size
        return data

    def position_of(self, place: int) -> str:
        """Return a text for a place, by which it is found after files were set aside."""
        before = 0
        for number, part in enumerate(self._parts, start=1):
            if place - before < part.size or number == len(self._parts):
                return f"{part.inode}:{place - before}"
            before += part.size
        return ""

    def place_of(self, position: str) -> int | None:
        match = _POSITION.fullmatch(position)
        before = 0
        for part in self._parts if match else ():
            assert match is not None
            if part.inode == int(match[1]):
                return before + int(match[2]) if int(match[2]) <= part.size else None
            before += part.size
        return None

    def close(self) -> None:
        for part in self._parts:
            part.file.close()


def _opened_parts(path: Path) -> list[_Part]:
    """Open a log file and its rotated parts; the newest first, as it may be set aside meanwhile."""
    found: dict[int, _Part] = {}
    for number in range(_PARTS_MAX):
        part = _opened(path.with_name(f"{path.name}.{number}") if number else path)
        if part is None:
            if number:
                break
        elif part.inode in found:
            part.file.close()
        else:
            found[part.inode] = part
    return list(reversed(found.values()))


def _opened(path: Path) -> _Part | None:
    try:
        file = open(os.open(path, _OPEN_FLAGS), "rb")  # noqa: SIM115, PTH123 - `_Log` closes it
    except OSError:
        return None
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        file.close()
        return None
    return _Part(file, status.st_ino, status.st_size)


def _role(executor_id: int) -> str:
    return "the app master" if executor_id == MASTER_EXECUTOR else f"executor {executor_id}"
