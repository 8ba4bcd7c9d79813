"""Names of the files of one sink in a folder: pending files, and files that readers see."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from gearpy.storage.folder.local import LocalFolder

#: A pattern such as ``**/*.jsonl`` must not find pending files, either.
_PENDING_ENDING: Final = ".pending"

_RUN_CHARS_MAX: Final = 100  # Names of files have 255 at most.
_RUN_CHARS_KEPT: Final = 60
_DIGEST_CHARS: Final = 32


class FilePart(NamedTuple):
    """The parts of the name of a file: its writer, and its epoch.

    ``name`` is as it was given: a path where files are in folders below. ``run`` is as in names.
    Of one task and run, later starts have greater incarnations.
    """

    name: str
    task: int
    run: str
    incarnation: int
    epoch: int = 0  #: 0 for a pending file: the epoch that it ends in is not known when it begins.


class PartNames:
    """The names of files of one sink; a name says whose file it is, and sorts by task and epoch.

    No two files have one name: that of a pending file has the incarnation of its writer and a
    number, and the files that an incarnation shows for an epoch are numbered.
    """

    def __init__(self, prefix: str, ending: str) -> None:
        self._prefix = prefix
        self._ending = ending
        run, incarnation = r"(?P<run>[A-Za-z0-9_~-]+)", r"(?P<incarnation>[0-9a-f]{16,})"
        begin, end = rf"{re.escape(prefix)}-(?P<task>\d{{5,}})", re.escape(ending)
        self._shown = re.compile(
            rf"{begin}-(?P<epoch>\d{{10,}})(?:\.\d{{4,}})?-{run}-{incarnation}{end}", re.ASCII
        )
        self._pending = re.compile(
            rf"{begin}-{run}-{incarnation}-\d{{6,}}{end}{re.escape(_PENDING_ENDING)}", re.ASCII
        )

    def shown(self, *, task: int, epoch: int, run: str, incarnation: int, piece: int = 0) -> str:
        place = f"{epoch:010d}.{piece:04d}" if piece else f"{epoch:010d}"
        return f"{self._prefix}-{task:05d}-{place}-{run}-{incarnation:016x}{self._ending}"

    def pending(self, *, task: int, run: str, incarnation: int, number: int) -> str:
        name = f"{self._prefix}-{task:05d}-{run}-{incarnation:016x}-{number:06d}"
        return f"{name}{self._ending}{_PENDING_ENDING}"

    def shown_parts(self, names: Iterable[str]) -> list[FilePart]:
        return _parts(self._shown, names)

    def pending_parts(self, names: Iterable[str]) -> list[FilePart]:
        return _parts(self._pending, names)


def run_in_names(run: str) -> str:
    """Return the name of a run as it stands in names of files; no two runs have the same."""

    def escaped(match: re.Match[str]) -> str:
        return "".join(f"~{byte:02x}" for byte in match[0].encode())

    text = re.sub(r"[^A-Za-z0-9_-]", escaped, run) or "~"
    if len(text) <= _RUN_CHARS_MAX:
        return text
    digest = hashlib.sha256(run.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{text[:_RUN_CHARS_KEPT]}~{digest}"


def drop_pending_of(run: str, folder: Path) -> None:
    mark = f"-{run_in_names(run)}-"
    pending = LocalFolder(folder)
    for name in pending.names():
        if mark in name and name.endswith(_PENDING_ENDING):
            pending.remove(name)


def _parts(pattern: re.Pattern[str], names: Iterable[str]) -> list[FilePart]:
    return [
        FilePart(
            name=name,
            task=int(match["task"]),
            run=match["run"],
            incarnation=int(match["incarnation"], 16),
            epoch=int(match.groupdict().get("epoch") or 0),
        )
        for name in sorted(names)
        if (match := pattern.fullmatch(name.rpartition("/")[2])) is not None
    ]
