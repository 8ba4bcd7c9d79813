"""The files of one task in a folder: begun, prepared, shown, and left by earlier starts."""

import errno
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypedDict

from gearpy.config.hidden import without_password
from gearpy.connectors.folders.part_names import FilePart, PartNames, run_in_names
from gearpy.core.handover.ledger import given_up
from gearpy.core.handover.window_log import PENDING
from gearpy.errors import ConfigError, StoreAway
from gearpy.storage.folder.api import Folder, parent_of, reveal
from gearpy.storage.folder.promises import PROMISES, promises_of

_log = logging.getLogger(__name__)

#: Begins the names of files, unless a sink says otherwise.
PREFIX: Final = "part"
_LOCAL: Final = ("file", "local")


class PreparedPart(TypedDict):
    """A pending file and how to commit it."""

    pending: str
    name: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderShare:
    """The files of a folder that belong to one task of one sink."""

    task: int
    tasks: int = 1
    prefix: str = PREFIX
    overwrite: bool = False  #: Whether files of earlier runs are removed.


def prefix_mistakes(name: str, prefix: str) -> list[str]:
    if prefix.isascii() and prefix.isidentifier() and not prefix.startswith("_"):
        return []
    cure = "take letters, digits and underscores, a letter first"
    return [f"{name}: prefix {prefix!r} cannot begin names of files: {cure}"]


def store_mistakes(name: str, place: str) -> list[str]:
    """Return why results cannot be committed once in a place; empty if they can."""
    scheme = place.partition("://")[0]
    if "://" not in place or scheme in _LOCAL or promises_of(scheme).shows_once:
        return []
    known = ", ".join(f"{each}://" for each, promises in PROMISES.items() if promises.shows_once)
    mistake = (
        f"{name}: {without_password(place)} is in a store that does not promise to show a file as "
        f"a whole, so results could be there twice or in part: take a folder of this machine, or "
        f"one of {known}"
    )
    return [mistake]


def target_folder(name: str, path: Path) -> Path:
    """Return where a sink writes; the folder itself need not be there yet."""
    path = path.resolve()
    if not path.parent.is_dir():
        missing = FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
        raise ConfigError(
            f"{name}: folder {path.parent} does not exist: make it first"
        ) from missing
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{name}: {path} is a file: give a folder")
    return path


class PartFolder:
    """Keeps the files of one task: drafts, and those that readers see.

    A process that was given up and goes on does no harm: what it writes are files of its own that
    nobody shows, what it has prepared it can only show if its successor has not removed that, and
    it removes nothing of later incarnations.

    Args:
        listed: tells people of files that are removed; continues a sentence.
        depth: readers see files in folders of folders, so many, such as ``country=de/day=1``.
    """

    def __init__(
        self,
        name: str,
        folder: Folder,
        ending: str,
        share: FolderShare,
        *,
        listed: Callable[[Sequence[FilePart]], str],
        depth: int = 0,
    ) -> None:
        self._name = name
        self._folder = folder
        self._names = PartNames(share.prefix, ending)
        self._share = share
        self._listed = listed
        self._depth = depth
        self._run = ""
        self._over: frozenset[str] = frozenset()  # Runs whose files are removed.
        self._incarnation = 0
        self._number = 0  # Pending files begun so far.

    def recover(
        self,
        prepared: Iterable[Sequence[PreparedPart]],
        *,
        epoch: int,
        run: str,
        incarnation: int,
        is_there: bool = False,
    ) -> None:
        """Show prepared files by epoch, remove files that earlier incarnations have left."""
        self._run, self._incarnation = run_in_names(run), incarnation
        try:
            # Before all else: a run that begins from now on is not an earlier one.
            self._over = frozenset()
            if epoch == 0 and self._share.overwrite:
                found = {part.run for part in (*self._pending_parts(), *self._shown_parts())}
                self._over = frozenset(found - {self._run})
            if is_there:
                self._folder.sync_names(PENDING)
            else:
                self._folder.make(PENDING)
            parts = [*self._pending_parts(), *self._shown_parts()]
            mine = (self._share.task, self._run)
            own = [each.incarnation for each in parts if (each.task, each.run) == mine]
            owner = max(own, default=-1)
            if owner >= self._incarnation:
                what = f"what task {self._share.task} writes to {self._folder.place}"
                raise given_up(f"{self._name}: {what}", owner=owner, mine=self._incarnation)
            for files in prepared:
                self.show(files)
            # Pending files first: one that an earlier incarnation shows meanwhile is then found.
            for part in self._pending_parts():
                if self._is_left_by_me(part) or self._is_over(part):
                    self._folder.remove(PENDING + part.name)
            self._folder.sync_names(PENDING)
            shown = self._shown_parts()
            undone = [part for part in shown if self._is_left_by_me(part) and part.epoch > epoch]
            if undone:
                _log.warning(
                    "%s: back to epoch %d, so %d files are removed from %s, whose records come "
                    "again%s",
                    self._name,
                    epoch,
                    len(undone),
                    self._folder.place,
                    self._listed(undone),
                )
            for part in [*undone, *filter(self._is_over, shown)]:
                self._folder.remove(part.name)
            # A power cut must not bring back what an earlier start has removed, either.
            depth = self._depth
            self._folder.sync_tree(lambda folder: bool(depth) and "=" in folder)
        except OSError as error:
            raise ConfigError(
                f"{self._name}: cannot write {self._folder.place}: {error.strerror or error}"
            ) from error

    # -- one file after the other ----------------------------------------------------------

    def begin(self) -> tuple[str, BinaryIO]:
        assert self._run, "recover() comes first"
        self._number += 1
        name = self._names.pending(
            task=self._share.task, run=self._run, incarnation=self._incarnation, number=self._number
        )
        return name, self._folder.create(PENDING + name)

    def finish(
        self,
        pending: str,
        file: BinaryIO,
        *,
        epoch: int,
        rows: int,
        below: str = "",
        piece: int = 0,
    ) -> PreparedPart:
        """Wait until the content of a file is on disk, and close it; then `sync_pending`."""
        with file:
            self._folder.sync(file)
            size = file.tell()
        task, run, incarnation = self._share.task, self._run, self._incarnation
        name = self._names.shown(
            task=task, epoch=epoch, run=run, incarnation=incarnation, piece=piece
        )
        path = f"{below}/{name}" if below else name
        return {"pending": pending, "name": path, "rows": rows, "size": size}

    def sync_pending(self) -> None:
        self._folder.sync_names(PENDING)

    def drop(self, pending: str) -> None:
        with suppress(OSError):
            self._folder.remove(PENDING + pending)

    def show(self, files: Sequence[PreparedPart]) -> None:
        names = [each["name"] for each in files]
        if below := set(map(parent_of, names)) - {""}:
            self._folder.sync_names(
                PENDING
            )  # A folder that is away must fail here, before anything is made.
            self._folder.make(*sorted(below))
        for each in files:
            pending, name = each["pending"], each["name"]
            path, size = PENDING + pending, each["size"]
            if not reveal(self._folder, path, to=name, written=size, who=self._name):
                missing = f"{self._name}: {self._folder.place} has neither {name} nor {pending}"
                if all(part.run == self._run for part in self._names.shown_parts([name])):
                    raise StoreAway(
                        f"{missing}, which was written before: bring it back if it was moved or "
                        "removed; or this is not the same folder on all machines, or this task "
                        "was given up and another has its place"
                    )
                # It goes on from a checkpoint of another run, which may have had another folder.
                _log.warning("%s, which an earlier run has written", missing)
        for folder in sorted(set(map(parent_of, names))):
            with suppress(FileNotFoundError):  # Others have removed it.
                self._folder.sync_names(folder)

    # -- what others have left -------------------------------------------------------------

    def _is_left_by_me(self, part: FilePart) -> bool:
        is_mine = part.task == self._share.task and part.run == self._run
        return is_mine and part.incarnation < self._incarnation

    def _is_over(self, part: FilePart) -> bool:
        return part.run in self._over and part.task % self._share.tasks == self._share.task

    def _pending_parts(self) -> list[FilePart]:
        return self._names.pending_parts(self._folder.names(PENDING))

    def _shown_parts(self) -> list[FilePart]:
        if not self._depth:
            return self._names.shown_parts(self._folder.names())
        paths = self._folder.walk(into=lambda folder: "=" in folder)
        return self._names.shown_parts(each for each in paths if each.count("/") == self._depth)
