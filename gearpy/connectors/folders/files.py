"""Files of a folder in two places: pending ones, which readers pass over, and shown ones.

Steps are small enough to think about a crash between any two of them. What was written is durable
after `Folder.sync`, and which files there are after `Folder.sync_pending` and `Folder.sync_shown`;
before that, a power cut may undo it.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

from gearpy.storage.disk import create_file, sync_file, sync_folder

__all__ = [
    "PENDING_FOLDER",
    "Folder",
    "OsFolder",
    "Part",
    "PartNames",
    "drop_pending_of",
    "run_in_names",
]

#: Spark, Hive and Arrow pass over folders whose name begins with an underscore.
PENDING_FOLDER: Final = "_pending"
#: So that a pattern such as ``**/*.jsonl`` does not find pending files either.
_PENDING_ENDING: Final = ".pending"

_BUFFER_BYTES: Final = 1 << 17
_RUN_CHARS_MAX: Final = 100  # Names of files have 255 at most.
_RUN_CHARS_KEPT: Final = 60
_DIGEST_CHARS: Final = 32


class Folder(Protocol):
    """A folder with a place for pending files. Each step may raise `OSError`.

    Runs on: one thread at a time; others may be at the same folder.
    """

    @property
    def place(self) -> str:
        """The folder, for people."""
        ...

    def make(self) -> None:
        """Make it, durably, if it is not there."""
        ...

    def pending(self) -> list[str]:
        """Return the names of the pending files."""
        ...

    def shown(self) -> list[str]:
        """Return the names of the files that readers see."""
        ...

    def create(self, name: str) -> BinaryIO:
        """Make a pending file that nobody else has made."""
        ...

    def sync(self, file: BinaryIO) -> None:
        """Make the content of a pending file durable."""
        ...

    def pending_size(self, name: str) -> int | None:
        """Return the size of a pending file; None if there is none."""
        ...

    def show(self, pending: str, *, name: str) -> bool:
        """Let readers see a pending file under a name, in one step; False if there is none."""
        ...

    def has_shown(self, name: str) -> bool:
        """Tell whether readers see a file of this name."""
        ...

    def drop_pending(self, name: str) -> None:
        """Remove a pending file, if it is there."""
        ...

    def drop_shown(self, name: str) -> None:
        """Remove a file that readers see, if it is there."""
        ...

    def sync_pending(self) -> None:
        """Make durable which pending files there are."""
        ...

    def sync_shown(self) -> None:
        """Make durable which files readers see."""
        ...


class OsFolder:
    """`Folder` on a disk; the folder above must be there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending = path / PENDING_FOLDER

    @property
    def place(self) -> str:
        """See `Folder`."""
        return str(self._path)

    def make(self) -> None:
        """See `Folder`."""
        self._path.mkdir(exist_ok=True)
        self._pending.mkdir(exist_ok=True)
        with suppress(PermissionError):  # Who may not list the one above has not made this one.
            sync_folder(self._path.parent)
        sync_folder(self._path)

    def pending(self) -> list[str]:
        """See `Folder`."""
        return _files_in(self._pending)

    def shown(self) -> list[str]:
        """See `Folder`."""
        return _files_in(self._path)

    def create(self, name: str) -> BinaryIO:
        """See `Folder`."""
        return create_file(self._pending / name, "xb", buffering=_BUFFER_BYTES)

    def sync(self, file: BinaryIO) -> None:
        """See `Folder`."""
        sync_file(file)

    def pending_size(self, name: str) -> int | None:
        """See `Folder`."""
        try:
            return (self._pending / name).stat().st_size
        except FileNotFoundError:
            return None

    def show(self, pending: str, *, name: str) -> bool:
        """See `Folder`."""
        try:
            (self._pending / pending).replace(self._path / name)
        except FileNotFoundError:
            return False
        return True

    def has_shown(self, name: str) -> bool:
        """See `Folder`."""
        return (self._path / name).is_file()

    def drop_pending(self, name: str) -> None:
        """See `Folder`."""
        (self._pending / name).unlink(missing_ok=True)

    def drop_shown(self, name: str) -> None:
        """See `Folder`."""
        (self._path / name).unlink(missing_ok=True)

    def sync_pending(self) -> None:
        """See `Folder`."""
        sync_folder(self._pending)

    def sync_shown(self) -> None:
        """See `Folder`."""
        sync_folder(self._path)


class Part(NamedTuple):
    """What the name of a file tells: who has written it, and for which epoch.

    ``name`` is as it was given: a path where files are in folders below. ``run`` is as in names.
    Of one task and run, later starts have greater incarnations.
    """

    name: str
    task: int
    run: str
    incarnation: int
    epoch: int = 0  #: 0 for a pending file: the epoch that it ends in is not known when it begins.


class PartNames:
    """How files of one sink are called; a name says whose a file is, and sorts by task and epoch.

    No two files have one name: that of a pending file has the incarnation of its writer and a
    number, and an incarnation shows one file for an epoch at most.

    Args:
        prefix: of all names; letters, digits and underscores.
        ending: such as ``.jsonl``.
    """

    def __init__(self, prefix: str, ending: str) -> None:
        self._prefix = prefix
        self._ending = ending
        run, incarnation = r"(?P<run>[A-Za-z0-9_~-]+)", r"(?P<incarnation>[0-9a-f]{16,})"
        begin, end = rf"{re.escape(prefix)}-(?P<task>\d{{5,}})", re.escape(ending)
        self._shown = re.compile(
            rf"{begin}-(?P<epoch>\d{{10,}})-{run}-{incarnation}{end}", re.ASCII
        )
        self._pending = re.compile(
            rf"{begin}-{run}-{incarnation}-\d{{6,}}{end}{re.escape(_PENDING_ENDING)}", re.ASCII
        )

    def shown(self, *, task: int, epoch: int, run: str, incarnation: int) -> str:
        """Return the name by which readers see the file of a task and epoch."""
        return f"{self._prefix}-{task:05d}-{epoch:010d}-{run}-{incarnation:016x}{self._ending}"

    def pending(self, *, task: int, run: str, incarnation: int, number: int) -> str:
        """Return the name of the file that an incarnation of a task begins."""
        name = f"{self._prefix}-{task:05d}-{run}-{incarnation:016x}-{number:06d}"
        return f"{name}{self._ending}{_PENDING_ENDING}"

    def shown_parts(self, names: Iterable[str]) -> list[Part]:
        """Return what names or paths tell, in their order; those of others are passed over."""
        return _parts(self._shown, names)

    def pending_parts(self, names: Iterable[str]) -> list[Part]:
        """Return what the names of pending files tell; those of others are passed over."""
        return _parts(self._pending, names)


def run_in_names(run: str) -> str:
    """Return the name of a run as it stands in names of files; no two runs have the same."""
    text = re.sub(r"[^A-Za-z0-9_-]", _escaped, run) or "~"
    if len(text) <= _RUN_CHARS_MAX:
        return text
    digest = hashlib.sha256(run.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{text[:_RUN_CHARS_KEPT]}~{digest}"


def drop_pending_of(run: str, folder: Path) -> None:
    """Remove what a run that is over, and cannot be resumed, has left in a folder of pending files.

    Raises:
        OSError: it cannot be removed.
    """
    mark = f"-{run_in_names(run)}-"
    for name in _files_in(folder):
        if mark in name and name.endswith(_PENDING_ENDING):
            (folder / name).unlink(missing_ok=True)


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"~{byte:02x}" for byte in match[0].encode())


def _parts(pattern: re.Pattern[str], names: Iterable[str]) -> list[Part]:
    return [
        Part(
            name=name,
            task=int(match["task"]),
            run=match["run"],
            incarnation=int(match["incarnation"], 16),
            epoch=int(match.groupdict().get("epoch") or 0),
        )
        for name in sorted(names)
        if (match := pattern.fullmatch(name.rpartition("/")[2])) is not None
    ]


def _files_in(folder: Path) -> list[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return [each.name for each in entries if each.is_file()]
    return []
