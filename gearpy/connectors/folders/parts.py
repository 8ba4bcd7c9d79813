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
from gearpy.storage.folder.api import Folder, parent_of
from gearpy.storage.folder.pending import reveal
from gearpy.storage.folder.promises import PROMISES, promises_of

_log = logging.getLogger(__name__)

#: Begins the names of files, unless a sink says otherwise.
PREFIX: Final = "part"
_LOCAL: Final = ("file", "local")


class PreparedPart(TypedDict):
    """A pending file and how to show it."""

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
    """Return why names of files cannot begin so; empty if they can.

    Args:
        name: of the sink, for people.
        prefix: as users give it.
    """
    if prefix.isascii() and prefix.isidentifier() and not prefix.startswith("_"):
        return []
    mistake = (
        f"{name}: prefix {prefix!r} cannot begin names of files: take letters, digits and "
        "underscores, a letter first"
    )
    return [mistake]


def store_mistakes(name: str, place: str) -> list[str]:
    """Return why results cannot be shown once in a place; empty if they can.

    Args:
        name: of the sink, for people.
        place: path or URL of its folder.
    """
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
    """Return where a sink writes; the folder itself need not be there yet.

    Args:
        name: of the sink, for people.
        path: the folder, as users give it.

    Raises:
        ConfigError: it cannot be made there.
    """
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
        name: of the sink, for people.
        folder: where the files are.
        ending: of their names.
        share: which files are this task's.
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
        self._number = 0  # Of pending files.

    def recover(
        self,
        prepared: Iterable[Sequence[PreparedPart]],
        *,
        epoch: int,
        run: str,
        incarnation: int,
        is_there: bool = False,
    ) -> None:
        """Show prepared files, remove files that earlier incarnations have left.

        Args:
            prepared: for each epoch, in their order.
            epoch: that the task goes on from.
            run: of the application.
            incarnation: of the task.
            is_there: the folder was there before, and is not made anew.

        Raises:
            ConfigError: the folder cannot be written, or is away.
            GearpyError: what was prepared is gone, or a later incarnation is at work.
        """
        self._run, self._incarnation = run_in_names(run), incarnation
        try:
            # Before all else: a run that begins from now on is not an earlier one.
            self._over = self._earlier_runs() if epoch == 0 else frozenset()
            if is_there:
                self._folder.sync_names(PENDING)
            else:
                self._folder.make(PENDING)
            parts = [*self._pending_parts(), *self._shown_parts()]
            owner = max((each.incarnation for each in parts if self._is_mine(each)), default=-1)
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
            self._drop_shown(epoch)
        except OSError as error:
            raise ConfigError(
                f"{self._name}: cannot write {self._folder.place}: {error.strerror or error}"
            ) from error

    # -- one file after the other ----------------------------------------------------------

    def begin(self) -> tuple[str, BinaryIO]:
        """Make a pending file; return its name, too."""
        assert self._run, "recover() comes first"
        self._number += 1
        name = self._names.pending(
            task=self._share.task,
            run=self._run,
            incarnation=self._incarnation,
            number=self._number,
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
        """Wait until the content of a file is on disk, and close it.

        Its name is on disk after `sync_pending`.

        Args:
            pending: its name.
            file: which was begun.
            epoch: that it is of.
            rows: how many it has, for people.
            below: a folder in which it is to be shown.
            piece: which of the files of its epoch and folder it is, from 0.
        """
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
        """Wait until the names of pending files are on disk."""
        self._folder.sync_names(PENDING)

    def drop(self, pending: str) -> None:
        with suppress(OSError):
            self._folder.remove(PENDING + pending)

    def show(self, files: Sequence[PreparedPart]) -> None:
        """Show the files of an epoch, unless they are shown.

        Raises:
            GearpyError: one is gone, or is not what was prepared.
        """
        names = [each["name"] for each in files]
        if below := set(map(parent_of, names)) - {""}:
            self._folder.sync_names(PENDING)  # Where it is away, nothing is made.
            self._folder.make(*sorted(below))
        for each in files:
            pending, name = each["pending"], each["name"]
            path, size = PENDING + pending, each["size"]
            if not reveal(self._folder, path, to=name, written=size, who=self._name):
                self._miss(pending, name)
        self._sync_shown(names)  # Also those that another incarnation has given.

    def _sync_shown(self, names: Iterable[str]) -> None:
        for folder in sorted(set(map(parent_of, names))):
            with suppress(FileNotFoundError):  # Others have removed it.
                self._folder.sync_names(folder)

    def _miss(self, pending: str, name: str) -> None:
        missing = f"{self._name}: {self._folder.place} has neither {name} nor {pending}"
        if any(part.run != self._run for part in self._names.shown_parts([name])):
            # It goes on from a checkpoint of another run, which may have had another folder.
            _log.warning("%s, which an earlier run has written", missing)
            return
        raise StoreAway(
            f"{missing}, which was written before: bring it back if it was moved or removed; or "
            "this is not the same folder on all machines, or this task was given up and another "
            "has its place"
        )

    # -- what others have left -------------------------------------------------------------

    def _earlier_runs(self) -> frozenset[str]:
        if not self._share.overwrite:
            return frozenset()
        found = {part.run for part in (*self._pending_parts(), *self._shown_parts())}
        return frozenset(found - {self._run})

    def _drop_shown(self, epoch: int) -> None:
        shown = self._shown_parts()
        undone = [part for part in shown if self._is_left_by_me(part) and part.epoch > epoch]
        if undone:
            _log.warning(
                "%s: back to epoch %d, so %d files are removed from %s, whose records come again%s",
                self._name,
                epoch,
                len(undone),
                self._folder.place,
                self._listed(undone),
            )
        gone = [*undone, *(part for part in shown if self._is_over(part))]
        for part in gone:
            self._folder.remove(part.name)
        # Also of those that an earlier start has removed: a power cut must not bring them back.
        self._folder.sync_tree(_is_partition if self._depth else _no_folder)

    def _is_mine(self, part: FilePart) -> bool:
        return part.task == self._share.task and part.run == self._run

    def _is_left_by_me(self, part: FilePart) -> bool:
        return self._is_mine(part) and part.incarnation < self._incarnation

    def _is_over(self, part: FilePart) -> bool:
        return part.run in self._over and part.task % self._share.tasks == self._share.task

    def _pending_parts(self) -> list[FilePart]:
        return self._names.pending_parts(self._folder.names(PENDING))

    def _shown_parts(self) -> list[FilePart]:
        if not self._depth:
            return self._names.shown_parts(self._folder.names())
        paths = self._folder.walk(into=_is_partition)
        return self._names.shown_parts(each for each in paths if each.count("/") == self._depth)


def _is_partition(folder: str) -> bool:
    return "=" in folder


def _no_folder(_: str) -> bool:
    return False
