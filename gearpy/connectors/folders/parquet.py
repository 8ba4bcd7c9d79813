"""Folders of Parquet files in which readers see each record once."""

from pathlib import Path
from typing import Any, BinaryIO, Final

# Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.connectors.folders.columns import ColumnFormat, ColumnsOf, WaitingRows, checked_schema
from gearpy.connectors.folders.writer import FolderSink
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import Sink

_NAME: Final = "parquet_folder"
_CODECS: Final = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")


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
    be there, with a text for a number, a number for a time, a fraction for a whole number, a time
    that is finer than the schema's unit. No value is changed to fit.

    Without a schema each task takes that of its first records, and keeps to it: a column of theirs
    that is all None stays so. A program that is to be relied on gives one.

    Args:
        path: the folder, which is made if the one above exists; on a cluster all machines must see
            the same. A file system, not an object store.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types.
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
    known = checked_schema(_NAME, schema)
    if compression not in _CODECS:
        raise ConfigError(
            f"{_NAME}: compression is {compression!r}, must be one of {', '.join(_CODECS)}"
        )

    def rows_of(columns: ColumnsOf, file: BinaryIO) -> WaitingRows:
        return WaitingRows(
            columns, lambda schema: pq.ParquetWriter(file, schema, compression=compression)
        )

    def make_format() -> ColumnFormat:
        return ColumnFormat(_NAME, ".parquet", known, rows_of)

    return FolderSink(_NAME, path, make_format, prefix=prefix, overwrite=overwrite, columnar=True)
