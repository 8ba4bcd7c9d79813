"""Writes a folder so that readers see each record once: a file for each task and epoch.

A file is pending until its epoch is complete, and is then shown by a rename. This works in a
folder of a file system in which a rename is one step, local or mounted; not in an object store.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypedDict

from gearpy.connectors.folder_files import Folder, OsFolder, Part, PartNames, run_in_names
from gearpy.errors import ConfigError, GearpyError
from gearpy.task.api import Batch, Sink, TransactionalWriter

__all__ = ["FolderSink", "FolderWriter", "PartFormat", "PreparedPart", "RowWriter", "Share"]

_log = logging.getLogger(__name__)
_PREFIX: Final = "part"
_NAMES_MAX: Final = 10  # In a line of the log.


class RowWriter(Protocol):
    """Writes the records of one file."""

    def write(self, values: Sequence[Any]) -> None:
        """Write records.

        Raises:
            OperatorError: one of them cannot be written; none was.
        """
        ...

    def finish(self) -> None:
        """Write what stands at the end of a file."""
        ...


class PartFormat(Protocol):
    """What is in the files of one task."""

    @property
    def ending(self) -> str:
        """Of the names of files."""
        ...

    def begin(self, file: BinaryIO) -> RowWriter:
        """Begin to write an empty file."""
        ...

    def snapshot(self) -> bytes | None:
        """Return what files have to keep to that are written later; None if nothing."""
        ...

    def restore(self, state: bytes | None) -> None:
        """Keep to what files did that were written before."""
        ...


class PreparedPart(TypedDict):
    """What `FolderWriter.prepare` returns: a pending file and how to show it."""

    pending: str
    name: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Which files of a folder belong to one task of one sink."""

    task: int
    tasks: int = 1
    prefix: str = _PREFIX
    overwrite: bool = False  #: Whether files of earlier runs are removed.


class FolderSink(Sink):
    """A folder with a file for each task and epoch; see `jsonl_folder` and `parquet_folder`.

    Args:
        name: of the sink, for people.
        path: the folder; the one above must exist.
        make_format: makes what one task needs to write files.
        prefix: of the names of files.
        overwrite: whether files of earlier runs are removed.
        columnar: whether its files are best made of tables.

    Raises:
        ConfigError: the prefix cannot be one.
    """

    transactional = True

    def __init__(
        self,
        name: str,
        path: str | Path,
        make_format: Callable[[], PartFormat],
        *,
        prefix: str,
        overwrite: bool,
        columnar: bool = False,
    ) -> None:
        if not (prefix.isascii() and prefix.isidentifier()) or prefix.startswith("_"):
            raise ConfigError(
                f"{name}: prefix {prefix!r} cannot begin names of files: take letters, digits and "
                "underscores, a letter first"
            )
        self._name = name
        self._path = Path(path).expanduser()
        self._make_format = make_format
        self._prefix = prefix
        self._overwrite = overwrite
        self.columnar = columnar

    @property
    def description(self) -> str:
        """The function, and the files: where no other sink may write."""
        files = self._path if self._prefix == _PREFIX else self._path / f"{self._prefix}-*"
        return f"{self._name}({files})"

    def open(self, task_index: int, parallelism: int) -> "FolderWriter":
        """Return the writer of one task.

        Raises:
            ConfigError: the folder cannot be made there.
        """
        path = self._path.resolve()
        if not path.parent.is_dir():
            raise ConfigError(f"{self._name}: folder {path.parent} does not exist: make it first")
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{self._name}: {path} is a file: give a folder")
        share = Share(
            task=task_index, tasks=parallelism, prefix=self._prefix, overwrite=self._overwrite
        )
        return FolderWriter(self._name, OsFolder(path), self._make_format(), share)


class FolderWriter(TransactionalWriter):
    """Writes the files of one task.

    A process that was given up and goes on does no harm: what it writes is a file of its own that
    nobody shows, what it has prepared it can only show if its successor has not removed that, and
    it removes nothing of later incarnations.

    Args:
        name: of the sink, for people.
        folder: where to write.
        form: of the files.
        share: which files are this task's.
    """

    atomic = True

    def __init__(self, name: str, folder: Folder, form: PartFormat, share: Share) -> None:
        self._name = name
        self._folder = folder
        self._format = form
        self._share = share
        self._names = PartNames(share.prefix, form.ending)
        self._incarnation = 0
        self._run = ""
        self._over: frozenset[str] = frozenset()  # Runs whose files are removed.
        self._number = 0  # Of the pending file.
        self._part: _OpenPart | None = None

    def restore(self, state: bytes | None) -> None:
        """Write files that are like those before."""
        self._format.restore(state)

    def snapshot(self) -> bytes | None:
        """Return what they are like."""
        return self._format.snapshot()

    def recover(
        self,
        prepared: Mapping[int, PreparedPart | None],
        *,
        epoch: int,
        run: str,
        incarnation: int,
    ) -> None:
        """Show what was prepared, remove what earlier incarnations have left.

        Raises:
            ConfigError: the folder cannot be written.
            GearpyError: what was prepared is gone, or a later incarnation is at work.
        """
        self._run, self._incarnation = run_in_names(run), incarnation
        try:
            # Before all else: a run that begins from now on is not an earlier one.
            self._over = self._earlier_runs() if epoch == 0 else frozenset()
            self._folder.make()
            self._check_incarnation()
            for number in sorted(prepared):
                self.commit(number, prepared[number])
            # Pending files first: one that an earlier incarnation shows meanwhile is then found.
            self._drop_pending()
            self._drop_shown(epoch)
        except OSError as error:
            raise ConfigError(
                f"{self._name}: cannot write {self._folder.place}: {error.strerror}"
            ) from error

    def write_batch(self, batch: Batch) -> None:
        """Write the records into the pending file; the first one begins it."""
        if not batch.values:
            return
        if self._part is None:
            self._part = self._begun()
        self._part.rows.write(batch.values)
        self._part.count += len(batch.values)

    def prepare(self, epoch: int) -> PreparedPart | None:
        """Wait until the file and its name are on disk."""
        part, self._part = self._part, None
        if part is None:
            return None
        if not part.count:  # Its records were refused.
            self._drop(part)
            return None
        with part.file:
            part.rows.finish()
            self._folder.sync(part.file)
            size = part.file.tell()
        self._folder.sync_pending()
        task, run, incarnation = self._share.task, self._run, self._incarnation
        name = self._names.shown(task=task, epoch=epoch, run=run, incarnation=incarnation)
        return {"pending": part.name, "name": name, "rows": part.count, "size": size}

    def commit(self, epoch: int, prepared: PreparedPart | None) -> None:
        """Show the file.

        Raises:
            GearpyError: it is gone, or is not what was prepared.
        """
        if prepared is not None:
            self._show(prepared)

    def close(self, *, completed: bool) -> None:
        """Remove what is not prepared; what is prepared a successor may need."""
        part, self._part = self._part, None
        if part is not None:
            self._drop(part)

    # -- one file --------------------------------------------------------------------------

    def _begun(self) -> "_OpenPart":
        assert self._run, "recover() comes first"
        self._number += 1
        name = self._names.pending(
            task=self._share.task,
            run=self._run,
            incarnation=self._incarnation,
            number=self._number,
        )
        file = self._folder.create(name)
        return _OpenPart(name, file, self._format.begin(file))

    def _drop(self, part: "_OpenPart") -> None:
        with suppress(OSError), part.file:
            part.rows.finish()
        with suppress(OSError):
            self._folder.drop_pending(part.name)

    def _show(self, prepared: PreparedPart) -> None:
        pending, name = prepared["pending"], prepared["name"]
        size = self._folder.pending_size(pending)
        if size not in {None, prepared["size"]}:
            raise GearpyError(
                f"{self._name}: {pending} in {self._folder.place} has {size} bytes, "
                f"{prepared['size']} were written: it was changed or is damaged"
            )
        if not self._folder.show(pending, name=name) and not self._folder.has_shown(name):
            self._miss(pending, name)
        self._folder.sync_shown()  # Also of a name that another incarnation has given.

    def _miss(self, pending: str, name: str) -> None:
        missing = f"{self._name}: {self._folder.place} has neither {name} nor {pending}"
        if any(part.run != self._run for part in self._names.shown_parts([name])):
            # It goes on from a checkpoint of another run, which may have had another folder.
            _log.warning("%s, which an earlier run has written", missing)
            return
        raise GearpyError(
            f"{missing}, which was written before: it was removed, or this is not the same folder "
            "on all machines, or this task was given up and another has its place"
        )

    # -- what others have left -------------------------------------------------------------

    def _check_incarnation(self) -> None:
        found = [*self._pending_parts(), *self._shown_parts()]
        later = [
            each.name
            for each in found
            if self._is_mine(each) and each.incarnation >= self._incarnation
        ]
        if later:
            raise GearpyError(
                f"{self._name}: {self._folder.place} has {later[-1]} of a later start of task "
                f"{self._share.task}: this one was given up"
            )

    def _earlier_runs(self) -> frozenset[str]:
        if not self._share.overwrite:
            return frozenset()
        found = {part.run for part in (*self._pending_parts(), *self._shown_parts())}
        return frozenset(found - {self._run})

    def _drop_pending(self) -> None:
        for part in self._pending_parts():
            if self._is_left_by_me(part) or self._is_over(part):
                self._folder.drop_pending(part.name)
        self._folder.sync_pending()

    def _drop_shown(self, epoch: int) -> None:
        shown = self._shown_parts()
        undone = [part for part in shown if self._is_left_by_me(part) and part.epoch > epoch]
        if undone:
            _log.warning(
                "%s: back to epoch %d, so %d files are removed from %s, whose records come again: "
                "%s",
                self._name,
                epoch,
                len(undone),
                self._folder.place,
                _listed(undone),
            )
        over = [part for part in shown if self._is_over(part)]
        for part in (*undone, *over):
            self._folder.drop_shown(part.name)
        self._folder.sync_shown()

    def _is_mine(self, part: Part) -> bool:
        return part.task == self._share.task and part.run == self._run

    def _is_left_by_me(self, part: Part) -> bool:
        """Tell whether an earlier start of this task has made it."""
        return self._is_mine(part) and part.incarnation < self._incarnation

    def _is_over(self, part: Part) -> bool:
        """Tell whether it is of an earlier run, and for this task to remove."""
        return part.run in self._over and part.task % self._share.tasks == self._share.task

    def _pending_parts(self) -> list[Part]:
        return self._names.pending_parts(self._folder.pending())

    def _shown_parts(self) -> list[Part]:
        return self._names.shown_parts(self._folder.shown())


@dataclass(slots=True)
class _OpenPart:
    """The pending file that is being written."""

    name: str
    file: BinaryIO
    rows: RowWriter
    count: int = 0


def _listed(parts: Iterable[Part]) -> str:
    names = [part.name for part in parts]
    more = [] if len(names) <= _NAMES_MAX else [f"and {len(names) - _NAMES_MAX} more"]
    return ", ".join([*names[:_NAMES_MAX], *more])
