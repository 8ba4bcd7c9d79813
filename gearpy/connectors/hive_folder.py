"""Folders of Parquet files in partitions, as Hive and Spark have them; each record once."""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypedDict

from gearpy.connectors.folder_files import Folder, OsFolder, Part, PartNames, run_in_names
from gearpy.connectors.partition_files import PARTITIONS_MAX, BegunFile
from gearpy.connectors.partition_rows import PartitionRows, TableOptions, table_schema
from gearpy.connectors.table_partitions import PartitionBy, key_names, partition_fields
from gearpy.errors import ConfigError, GearpyError
from gearpy.storage.disk import sync_folder
from gearpy.task.api import Batch, Sink, TransactionalWriter

__all__ = ["HiveFile", "HiveFolder", "HiveSink", "HiveWriter", "hive_folder"]

_log = logging.getLogger(__name__)
_NAME: Final = "hive_folder"
_PREFIX: Final = "part"
_ENDING: Final = ".parquet"
_NAMES_MAX: Final = 5  # In a line of the log.


def hive_folder(
    path: str | Path,
    *,
    partition_by: PartitionBy,
    schema: Any = None,
    key: str | Sequence[str] | None = None,
    compression: str = "snappy",
    partitions_max: int = PARTITIONS_MAX,
    prefix: str = _PREFIX,
    overwrite: bool = False,
) -> Sink:
    """Write records into a partitioned Parquet table, which Spark and others read: exactly once.

    Rows of one partition are below one folder, such as ``country=de/date=2026-11-21``. Each task
    writes a file for each partition and epoch that brings it records. Files are below ``_pending``
    until their epoch is complete, and are then shown one after the other, each in one step, so for
    a moment readers may see a part of an epoch; all of it is there in the end, whatever fails.
    What `jsonl_folder` says about epochs, small files, merging, and earlier runs holds here, too.

    Results of windows become rows as by `window_log_folder`, with ``window_start`` and
    ``window_end``; other records give their fields.

    A partition column holds texts, whole numbers, booleans or dates. ``"date(window_start)"`` takes
    the date of a time in UTC, and ``year``, ``month``, ``day`` and ``hour`` that part of it.
    A missing value and an empty text are in ``__HIVE_DEFAULT_PARTITION__`` and are read as null.

    Args:
        path: the folder, which is made if the one above exists; on a cluster all machines must see
            the same. A file system, not an object store.
        partition_by: columns, from the outermost folder to the innermost, or a dict of names and
            where their values come from: ``{"date": "date(window_start)"}``.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types; None to take that of the first records.
        key: names for the columns of the key of windows.
        compression: "snappy", "zstd", "gzip", "lz4", "brotli" or "none".
        partitions_max: of one task in one epoch; more are a failure.
        prefix: of the names of files. Two sinks of one application that write into one folder need
            different ones.
        overwrite: whether files of earlier runs with this prefix are removed.

    Raises:
        ConfigError: one of these cannot be.

    Example:
        >>> import gearpy as gp
        >>> import pyarrow.dataset
        >>> app = gp.StreamApp("sales")
        >>> sales = gp.collection([{"country": "de", "n": 1}, {"country": "fr", "n": 2}])
        >>> app.read(sales).write(gp.hive_folder("sales", partition_by="country"))
        >>> _ = gp.run(app)
        >>> table = pyarrow.dataset.dataset("sales", partitioning="hive").to_table()
        >>> sorted(table.to_pylist(), key=str)
        [{'n': 1, 'country': 'de'}, {'n': 2, 'country': 'fr'}]
    """
    options = TableOptions(
        operator=_NAME,
        schema=table_schema(_NAME, schema),
        key=key_names(key),
        fields=partition_fields(_NAME, partition_by),
        compression=compression,
        partitions_max=partitions_max,
        prefix=prefix,
    )
    if not options.fields:
        raise ConfigError(f"{_NAME}: partition_by is empty: name a column, or use parquet_folder")
    return HiveSink(path, options, overwrite=overwrite)


class HiveFile(TypedDict):
    """A pending file, and how to show it. `HiveWriter.prepare` returns some."""

    pending: str
    name: str
    rows: int
    size: int


class HiveFolder:
    """`Folder` whose files are shown in folders of it.

    Names of shown files are paths, such as ``country=de/part-0.parquet``.
    """

    def __init__(self, path: Path, *, depth: int) -> None:
        self._folder = OsFolder(path)
        self._path = path
        self._depth = depth
        self._touched: set[Path] = set()

    @property
    def place(self) -> str:
        """See `Folder`."""
        return self._folder.place

    def make(self) -> None:
        """See `Folder`."""
        self._folder.make()

    def pending(self) -> list[str]:
        """See `Folder`."""
        return self._folder.pending()

    def shown(self) -> list[str]:
        """See `Folder`; looks into the folder of every partition."""
        return [str(Path(each.path).relative_to(self._path)) for each in self._walk(self._path, 0)]

    def _walk(self, folder: Path, depth: int) -> list[os.DirEntry[str]]:
        found: list[os.DirEntry[str]] = []
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for each in entries:
                if depth == self._depth:
                    found += [each] if each.is_file() else []
                elif "=" in each.name and each.is_dir():
                    found += self._walk(Path(each.path), depth + 1)
        return found

    def create(self, name: str) -> BinaryIO:
        """See `Folder`."""
        return self._folder.create(name)

    def sync(self, file: BinaryIO) -> None:
        """See `Folder`."""
        self._folder.sync(file)

    def pending_size(self, name: str) -> int | None:
        """See `Folder`."""
        return self._folder.pending_size(name)

    def show(self, pending: str, *, name: str) -> bool:
        """See `Folder`; makes the folder of the partition."""
        self._make(self._path / name)
        return self._folder.show(pending, name=name)

    def _make(self, file: Path) -> None:
        """Make the folders above a file, durably: also those that another task has just made."""
        for folder in [*reversed(file.relative_to(self._path).parents)][1:]:
            (self._path / folder).mkdir(exist_ok=True)
            self._touched.add((self._path / folder).parent)
        self._touched.add(file.parent)

    def has_shown(self, name: str) -> bool:
        """See `Folder`."""
        self._touched.add((self._path / name).parent)
        return self._folder.has_shown(name)

    def drop_pending(self, name: str) -> None:
        """See `Folder`."""
        self._folder.drop_pending(name)

    def drop_shown(self, name: str) -> None:
        """See `Folder`."""
        self._touched.add((self._path / name).parent)
        self._folder.drop_shown(name)

    def sync_pending(self) -> None:
        """See `Folder`."""
        self._folder.sync_pending()

    def sync_shown(self) -> None:
        """See `Folder`; of the folders in which something was done."""
        for folder in sorted(self._touched, key=lambda each: len(each.parts)):
            with suppress(FileNotFoundError):
                sync_folder(folder)
        self._touched.clear()


class HiveSink(Sink):
    """See `hive_folder`."""

    transactional = True
    columnar = True

    def __init__(self, path: str | Path, options: TableOptions, *, overwrite: bool) -> None:
        self._path = Path(path).expanduser()
        self._options = options
        self._overwrite = overwrite

    @property
    def description(self) -> str:
        """The function, and the files: where no other sink may write."""
        prefix = self._options.prefix
        files = self._path if prefix == _PREFIX else self._path / f"**/{prefix}-*"
        return f"{_NAME}({files})"

    def open(self, task_index: int, parallelism: int) -> "HiveWriter":
        """Return the writer of one task.

        Raises:
            ConfigError: the folder cannot be made there.
        """
        path = self._path.resolve()
        if not path.parent.is_dir():
            raise ConfigError(f"{_NAME}: folder {path.parent} does not exist: make it first")
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{_NAME}: {path} is a file: give a folder")
        return HiveWriter(
            HiveFolder(path, depth=len(self._options.fields)),
            self._options,
            task=task_index,
            tasks=parallelism,
            overwrite=self._overwrite,
        )


class HiveWriter(TransactionalWriter):
    """Writes the files of one task; each is shown, and recovered, as by a `FolderWriter`.

    Args:
        folder: where to write.
        options: of the table.
        task: whose files these are.
        tasks: how many there are.
        overwrite: whether files of earlier runs are removed.
    """

    atomic = True

    def __init__(
        self,
        folder: Folder,
        options: TableOptions,
        *,
        task: int,
        tasks: int = 1,
        overwrite: bool = False,
    ) -> None:
        self._folder = folder
        self._task = task
        self._tasks = tasks
        self._overwrite = overwrite
        self._names = PartNames(options.prefix, _ENDING)
        self._rows = PartitionRows(options, self._begin)
        self._run = ""
        self._over: frozenset[str] = frozenset()  # Runs whose files are removed.
        self._incarnation = 0
        self._number = 0  # Of pending files.

    def restore(self, state: bytes | None) -> None:
        """Keep to the schema of what was written before."""
        self._rows.restore(state)

    def snapshot(self) -> bytes | None:
        """Return the schema."""
        return self._rows.snapshot()

    def recover(
        self,
        prepared: Mapping[int, list[HiveFile] | None],
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
            found = [*self._pending_parts(), *self._shown_parts()]
            self._over = self._earlier_runs(found) if epoch == 0 else frozenset()
            self._folder.make()
            self._check_incarnation(found)
            for number in sorted(prepared):
                self.commit(number, prepared[number])
            # Pending files first: one that an earlier incarnation shows meanwhile is then found.
            self._drop_pending()
            self._drop_shown(epoch)
        except OSError as error:
            raise ConfigError(
                f"{_NAME}: cannot write {self._folder.place}: {error.strerror}"
            ) from error

    def write_batch(self, batch: Batch) -> None:
        """Take the records."""
        self._rows.write(batch)

    def prepare(self, epoch: int) -> list[HiveFile] | None:
        """Wait until the files and their names are on disk."""
        files: list[HiveFile] = []
        name = self._names.shown(
            task=self._task, epoch=epoch, run=self._run, incarnation=self._incarnation
        )
        for each in self._rows.finish():
            with each.file:
                self._folder.sync(each.file)
                size = each.file.tell()
            shown = f"{each.folder}/{name}"
            files.append({"pending": each.name, "name": shown, "rows": each.rows, "size": size})
        if not files:
            return None
        self._folder.sync_pending()
        return files

    def commit(self, epoch: int, prepared: list[HiveFile] | None) -> None:
        """Show the files.

        Raises:
            GearpyError: one is gone, or is not what was prepared.
        """
        for each in prepared or ():
            self._show(each)
        if prepared:
            self._folder.sync_shown()

    def close(self, *, completed: bool) -> None:
        """Remove what is not prepared; what is prepared a successor may need."""
        for name in self._rows.drop():
            with suppress(OSError):
                self._folder.drop_pending(name)

    # -- one file --------------------------------------------------------------------------

    def _begin(self, _: str) -> BegunFile:
        assert self._run, "recover() comes first"
        self._number += 1
        name = self._names.pending(
            task=self._task,
            run=self._run,
            incarnation=self._incarnation,
            number=self._number,
        )
        return BegunFile(name, self._folder.create(name))

    def _show(self, file: HiveFile) -> None:
        pending, name = file["pending"], file["name"]
        size = self._folder.pending_size(pending)
        if size not in {None, file["size"]}:
            raise GearpyError(
                f"{_NAME}: {pending} in {self._folder.place} has {size} bytes, {file['size']} were "
                "written: it was changed or is damaged"
            )
        if self._folder.show(pending, name=name) or self._folder.has_shown(name):
            return
        missing = f"{_NAME}: {self._folder.place} has neither {name} nor {pending}"
        if any(part.run != self._run for part in self._parts([name])):
            # It goes on from a checkpoint of another run, which may have had another folder.
            _log.warning("%s, which an earlier run has written", missing)
            return
        raise GearpyError(
            f"{missing}, which was written before: it was removed, or this is not the same folder "
            "on all machines, or this task was given up and another has its place"
        )

    # -- what others have left -------------------------------------------------------------

    def _check_incarnation(self, found: Sequence[Part]) -> None:
        later = [
            each.name
            for each in found
            if self._is_mine(each) and each.incarnation >= self._incarnation
        ]
        if later:
            raise GearpyError(
                f"{_NAME}: {self._folder.place} has {later[-1]} of a later start of task "
                f"{self._task}: this one was given up"
            )

    def _earlier_runs(self, found: Sequence[Part]) -> frozenset[str]:
        return frozenset(part.run for part in found if self._overwrite) - {self._run}

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
                "%s: back to epoch %d, so %d files are removed from %s, whose records come again, "
                "such as %s",
                _NAME,
                epoch,
                len(undone),
                self._folder.place,
                ", ".join(part.name for part in undone[:_NAMES_MAX]),
            )
        for part in (*undone, *(part for part in shown if self._is_over(part))):
            self._folder.drop_shown(part.name)
        self._folder.sync_shown()

    def _is_mine(self, part: Part) -> bool:
        return part.task == self._task and part.run == self._run

    def _is_left_by_me(self, part: Part) -> bool:
        """Tell whether an earlier start of this task has made it."""
        return self._is_mine(part) and part.incarnation < self._incarnation

    def _is_over(self, part: Part) -> bool:
        """Tell whether it is of an earlier run, and for this task to remove."""
        return part.run in self._over and part.task % self._tasks == self._task

    def _pending_parts(self) -> list[Part]:
        return self._names.pending_parts(self._folder.pending())

    def _shown_parts(self) -> list[Part]:
        return self._parts(self._folder.shown())

    def _parts(self, paths: Sequence[str]) -> list[Part]:
        """Return what the names of files tell, each with its path for a name."""
        return [
            part._replace(name=path)
            for path in sorted(paths)
            for part in self._names.shown_parts([path.rpartition("/")[2]])
        ]
