"""Folders of Parquet files in which readers see each record once."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.connectors.arrow_columns import as_row, batch_of, schema_of
from gearpy.connectors.folder_writer import FolderSink
from gearpy.connectors.stamps import each
from gearpy.errors import ConfigError
from gearpy.task.api import Sink

__all__ = ["ParquetFormat", "ParquetRows", "parquet_folder"]

_log = logging.getLogger(__name__)
_NAME: Final = "parquet_folder"
_CODECS: Final = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")
#: Columns wait in memory until they make a row group, which is what a reader reads at a time.
_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024


def parquet_folder(
    path: str | Path,
    *,
    schema: Any = None,
    compression: str = "snappy",
    prefix: str = "part",
    overwrite: bool = False,
) -> Sink:
    """Write records into Parquet files of a folder: exactly once, whatever fails.

    Files come to be, are shown and are removed as by `jsonl_folder`; what it says about epochs,
    small files and earlier runs holds here, too.

    Records are dicts, dataclasses or NamedTuples. A field that a record lacks is null. A record
    that does not fit the schema is refused: with a field that is not in it, without one that must
    be there, with a text for a number, with a fraction for a whole number. Times are cut to the
    schema's unit.

    Without a schema each task takes that of its first records, and keeps to it: a column of theirs
    that is all None stays so. A program that is to be relied on gives one.

    Args:
        path: the folder, which is made if the one above exists; on a cluster all machines must see
            the same. A file system, not an object store.
        schema: a `pyarrow.Schema`.
        compression: "snappy", "zstd", "gzip", "lz4", "brotli" or "none".
        prefix: of the names of files. Two sinks of one application that write into one folder need
            different ones.
        overwrite: whether files of earlier runs with this prefix are removed.

    Raises:
        ConfigError: the schema is none, there is no such codec, or the prefix cannot begin names.

    Example:
        >>> import gearpy as gp
        >>> import pyarrow.parquet
        >>> app = gp.StreamApp("table")
        >>> app.read(gp.collection([{"n": 1}, {"n": 2}])).write(gp.parquet_folder("table"))
        >>> _ = gp.run(app)
        >>> pyarrow.parquet.read_table("table").to_pylist()
        [{'n': 1}, {'n': 2}]
    """
    if schema is not None and not isinstance(schema, pa.Schema):
        raise ConfigError(f"{_NAME}: schema is {schema!r:.100}, need a pyarrow.Schema")
    if compression not in _CODECS:
        raise ConfigError(
            f"{_NAME}: compression is {compression!r}, must be one of {', '.join(_CODECS)}"
        )

    def make_format() -> ParquetFormat:
        return ParquetFormat(schema, compression)

    return FolderSink(_NAME, path, make_format, prefix=prefix, overwrite=overwrite)


class ParquetFormat:
    """`PartFormat` of Parquet files, all with one schema.

    Args:
        schema: None to take that of the first records.
        compression: of the columns.
    """

    ending = ".parquet"

    def __init__(self, schema: pa.Schema | None, compression: str = "snappy") -> None:
        self._schema = schema
        self.compression = compression

    def begin(self, file: BinaryIO) -> "ParquetRows":
        """See `PartFormat`."""
        return ParquetRows(self, file)

    def go_on_from(self, file: BinaryIO) -> None:
        """Keep to the schema of what was written before."""
        if self._schema is not None:
            return
        try:
            self._schema = pq.read_schema(file)
        except (pa.ArrowException, OSError) as error:
            _log.warning("%s: the schema begins anew, as %s", _NAME, error)

    def batch_of(self, records: Sequence[Any]) -> pa.RecordBatch:
        """Return the columns of some records; those of the first ones decide the schema.

        Raises:
            OperatorError: one does not fit.
        """
        rows = each(_NAME, as_row, records)
        if self._schema is None:
            self._schema = schema_of(_NAME, rows, records=records)
        return batch_of(_NAME, rows, self._schema, records=records)


class ParquetRows:
    """The rows of one Parquet file."""

    def __init__(self, form: ParquetFormat, file: BinaryIO) -> None:
        self._format = form
        self._file = file
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0  # That wait.
        self._bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, values: Sequence[Any]) -> None:
        """Let the records wait for others, until they are worth a row group."""
        batch = self._format.batch_of(values)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write_group()

    def finish(self) -> None:
        """Write what waits, and the footer."""
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._rows, self._bytes = [], 0, 0
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._file, table.schema, compression=self._format.compression
            )
        self._writer.write_table(table, row_group_size=table.num_rows)
