"""Folders of Parquet files in partitions, as Hive and Spark have them; each record once."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from gearpy.connectors.folders.files import PENDING_FOLDER, Folder, OsFolder, Part
from gearpy.connectors.folders.parts import PREFIX, PartFolder, PreparedPart, Share, target_folder
from gearpy.connectors.partitioned.columns import PartitionBy, key_names, partition_fields
from gearpy.connectors.partitioned.files import PARTITIONS_MAX, BegunFile
from gearpy.connectors.partitioned.rows import PartitionRows, TableOptions, table_schema
from gearpy.errors import ConfigError
from gearpy.storage.disk import sync_folder
from gearpy.task.api.interfaces import Batch, Sink, TransactionalWriter

__all__ = ["HiveFolder", "HiveSink", "HiveWriter", "hive_folder"]

_NAME: Final = "hive_folder"
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
    prefix: str = PREFIX,
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
        files = self._path if prefix == PREFIX else self._path / f"**/{prefix}-*"
        return f"{_NAME}({files})"

    @property
    def pending_folders(self) -> Sequence[Path]:
        """The one below its folder."""
        return [self._path.resolve() / PENDING_FOLDER]

    def open(self, task_index: int, parallelism: int) -> "HiveWriter":
        """Return the writer of one task.

        Raises:
            ConfigError: the folder cannot be made there.
        """
        path = target_folder(_NAME, self._path)
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
        share = Share(task=task, tasks=tasks, prefix=options.prefix, overwrite=overwrite)
        self._files = PartFolder(_NAME, folder, _ENDING, share, listed=_some)
        self._rows = PartitionRows(options, self._begin)

    def restore(self, state: bytes | None) -> None:
        """Keep to the schema of what was written before."""
        self._rows.restore(state)

    def snapshot(self) -> bytes | None:
        """Return the schema."""
        return self._rows.snapshot()

    def recover(
        self,
        prepared: Mapping[int, list[PreparedPart] | None],
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
        waiting = [prepared[number] or [] for number in sorted(prepared)]
        self._files.recover(waiting, epoch=epoch, run=run, incarnation=incarnation)

    def write_batch(self, batch: Batch) -> None:
        """Take the records."""
        self._rows.write(batch)

    def prepare(self, epoch: int) -> list[PreparedPart] | None:
        """Wait until the files and their names are on disk."""
        files = [
            self._files.finish(each.name, each.file, epoch=epoch, rows=each.rows, below=each.folder)
            for each in self._rows.finish()
        ]
        if not files:
            return None
        self._files.sync_pending()
        return files

    def commit(self, epoch: int, prepared: list[PreparedPart] | None) -> None:
        """Show the files.

        Raises:
            GearpyError: one is gone, or is not what was prepared.
        """
        self._files.show(prepared or [])

    def close(self, *, completed: bool) -> None:
        """Remove what is not prepared; what is prepared a successor may need."""
        for name in self._rows.drop():
            self._files.drop(name)

    def _begin(self, _: str) -> BegunFile:
        return BegunFile(*self._files.begin())


def _some(parts: Sequence[Part]) -> str:
    return ", such as " + ", ".join(part.name for part in parts[:_NAMES_MAX])
