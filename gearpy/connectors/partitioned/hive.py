"""Folders of Parquet files in partitions, as Hive and Spark have them; each record once."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gearpy.connectors.folders.part_names import FilePart
from gearpy.connectors.folders.parts import PREFIX, FolderShare, PartFolder, PreparedPart
from gearpy.connectors.folders.writer import PartSink, PartWriter
from gearpy.connectors.partitioned.columns import PartitionBy, key_names, partition_fields
from gearpy.connectors.partitioned.files import PARTITIONS_MAX, BegunFile
from gearpy.connectors.partitioned.rows import PartitionRows, TableOptions, table_schema
from gearpy.errors import ConfigError
from gearpy.storage.folder.api import Folder
from gearpy.task.api.interfaces import Batch, Sink

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
    storage_options: Mapping[str, Any] | None = None,
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
        path: the folder, which is made if the one above exists, or a URL such as
            ``s3://bucket/out``; on a cluster all machines must see the same.
        partition_by: columns, from the outermost folder to the innermost, or a dict of names and
            where their values come from: ``{"date": "date(window_start)"}``.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types; None to take that of the first epoch's.
        key: names for the columns of the key of windows.
        compression: "snappy", "zstd", "gzip", "lz4", "brotli" or "none".
        partitions_max: of one task in one epoch; more are a failure.
        prefix: of the names of files. Two sinks of one application that write into one folder need
            different ones.
        overwrite: whether files of earlier runs with this prefix are removed.
        storage_options: of the store at a URL, as fsspec takes them; by default as its library
            finds them in the environment.

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
    return HiveSink(path, options, overwrite=overwrite, storage_options=storage_options)


class HiveSink(PartSink):
    def __init__(
        self,
        path: str | Path,
        options: TableOptions,
        *,
        overwrite: bool,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            _NAME,
            path,
            prefix=options.prefix,
            overwrite=overwrite,
            columnar=True,
            pattern="**/",
            storage_options=storage_options,
        )
        self._options = options

    def open(self, task_index: int, parallelism: int) -> "HiveWriter":
        return HiveWriter(self.folder(), self._options, self.share(task_index, parallelism))


class HiveWriter(PartWriter):
    """Writes the files of one task; each is committed, and recovered, as by a `FolderWriter`."""

    def __init__(self, folder: Folder, options: TableOptions, share: FolderShare) -> None:
        depth = len(options.fields)
        files = PartFolder(_NAME, folder, _ENDING, share, listed=_some, depth=depth)
        self._rows = PartitionRows(options, lambda _: BegunFile(*files.begin()))
        super().__init__(files, self._rows)

    def write_batch(self, batch: Batch) -> None:
        self._rows.write(batch)

    def prepare(self, epoch: int) -> list[PreparedPart] | None:
        files = [
            self._files.finish(each.name, each.file, epoch=epoch, rows=each.rows, below=each.folder)
            for each in self._rows.finish()
        ]
        if not files:
            return None
        self._files.sync_pending()
        return files

    def close(self, *, completed: bool) -> None:
        for name in self._rows.drop():
            self._files.drop(name)


def _some(parts: Sequence[FilePart]) -> str:
    return ", such as " + ", ".join(part.name for part in parts[:_NAMES_MAX])
