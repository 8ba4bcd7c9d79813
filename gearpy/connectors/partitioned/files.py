"""Parquet files of one epoch, one for each partition of a table that brings rows."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.connectors.partitioned.columns import Partitioning, PartitionPiece
from gearpy.errors import GearpyError

#: The most of an epoch and task: each is a file, and an open one when it has many rows.
PARTITIONS_MAX: Final = 256

#: Rows wait in memory until they make a group, which is what a reader reads at a time.
_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024
#: When all partitions together have so much, each writes what it has.
_WAITING_BYTES_MAX: Final = 256 * 1024 * 1024


class BegunFile(NamedTuple):
    """A file that was made for a partition."""

    name: str
    file: BinaryIO


class WrittenFile(NamedTuple):
    """A complete file that is still open: its maker makes it durable and closes it."""

    name: str
    file: BinaryIO
    folder: str
    values: tuple[str | None, ...]
    rows: int
    metadata: Any  #: `pyarrow.parquet.FileMetaData`.


class PartitionFiles:
    """Writes tables into a file for each partition."""

    def __init__(
        self,
        operator: str,
        partitioning: Partitioning,
        begin: Callable[[str], BegunFile],
        *,
        compression: str,
        partitions_max: int,
    ) -> None:
        self._operator = operator
        self._partitioning = partitioning
        self._begin = begin
        self._compression = compression
        self._partitions_max = partitions_max
        self._open: dict[str, _OpenFile] = {}
        self._bytes = 0  # Waiting in all files together.

    def write(self, pieces: list[PartitionPiece]) -> None:
        new = {piece.folder for piece in pieces} - self._open.keys()
        if len(self._open) + len(new) > self._partitions_max:
            raise GearpyError(
                f"{self._operator}: more than {self._partitions_max} partitions in one epoch, such "
                f"as {min(new)}: partition by something with fewer values, shorten "
                "checkpoint.interval-ms, or raise partitions_max"
            )
        for piece in pieces:
            if piece.rows.num_rows:
                each = self._open.setdefault(piece.folder, _OpenFile(piece.folder, piece.values))
                each.waiting.append(piece.rows)
                each.waiting_rows += piece.rows.num_rows
                # A slice counts as the part of its buffers that it uses.
                size = piece.rows.nbytes
                each.waiting_bytes += size
                self._bytes += size
                if each.waiting_rows >= _GROUP_ROWS or each.waiting_bytes >= _GROUP_BYTES:
                    self._write_group(each)
        if self._bytes >= _WAITING_BYTES_MAX:
            for each in self._open.values():
                self._write_group(each)

    def finish(self) -> list[WrittenFile]:
        """Complete all files, and begin anew."""
        written = []
        for each in self._open.values():
            self._write_group(each)
            assert each.begun is not None
            each.writer.close()
            (metadata,) = each.metadata
            begun = each.begun
            written.append(
                WrittenFile(begun.name, begun.file, each.folder, each.values, each.rows, metadata)
            )
        self._open, self._bytes = {}, 0
        return written

    def drop(self) -> list[str]:
        begun = [each.begun for each in self._open.values() if each.begun is not None]
        for each in self._open.values():
            if each.begun is not None:
                with suppress(OSError, pa.ArrowException), each.begun.file:
                    each.writer.close()
        self._open, self._bytes = {}, 0
        return [each.name for each in begun]

    def _write_group(self, each: "_OpenFile") -> None:
        if not each.waiting:
            return
        if each.begun is None:
            each.begun = self._begin(each.folder)
            each.writer = pq.ParquetWriter(
                each.begun.file,
                self._partitioning.file_schema,
                compression=self._compression,
                write_page_checksum=True,
                metadata_collector=each.metadata,
            )
        table = pa.Table.from_batches(each.waiting).combine_chunks()
        each.writer.write_table(table, table.num_rows)
        each.rows += table.num_rows
        self._bytes -= each.waiting_bytes
        each.waiting, each.waiting_rows, each.waiting_bytes = [], 0, 0


@dataclass(slots=True)
class _OpenFile:
    """The open file of one partition; on disk from its first group of rows on."""

    folder: str
    values: tuple[str | None, ...]
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0
    rows: int = 0
    begun: BegunFile | None = None
    writer: Any = None
    metadata: list[Any] = field(default_factory=list)
