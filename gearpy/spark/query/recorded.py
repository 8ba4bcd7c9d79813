"""Records of a source, kept in Parquet files: every reader gets the same ones.

Columns stay columns; other records are kept as the bytes in which they travel between processes.
With them stand their event times and how far the source's watermark was.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Source, SourceReader
from gearpy.wire.values.payload import decode_batch, encode_batch

_TIME: Final = "__time"
_WATERMARK: Final = "__watermark"
_ROWS: Final = pa.schema([("entries", pa.int32()), ("body", pa.binary()), (_WATERMARK, pa.int64())])
_READ_ROWS: Final = 1024
_READ_TABLE_ROWS: Final = 65_536
_IDLE_S: Final = 0.01


def record(source: Source, folder: Path, *, limit: int | None = None) -> "RecordedSource":
    """Read a source to its end, or so many records of it, into files of a folder.

    Raises:
        ConfigError: the source has no end, and there is no limit; or it cannot be kept.
    """
    if source.discovers:
        raise ConfigError(
            f"{source.description} finds its partitions while it is read: Spark cannot read it so"
        )
    if limit is None and not source.bounded:
        raise ConfigError(f"{source.description} has no end: say how many records to take")
    schema = source.schema
    if schema is not None and {_TIME, _WATERMARK} & set(schema.arrow.names):
        raise ConfigError(f"{source.description} has a column {_TIME} or {_WATERMARK}: rename it")
    folder.mkdir(parents=True)
    names = list(source.partitions())
    parts = [_Part(source, name, folder / f"{at:05d}.parquet") for at, name in enumerate(names)]
    try:
        _fill(parts, limit)
    finally:
        for part in parts:
            part.close()
    return RecordedSource([str(part.path) for part in parts], schema, source.description)


def _fill(parts: Sequence["_Part"], limit: int | None) -> None:
    """Read a batch of each in turn, until all have ended or there is enough."""
    left = limit
    open_parts = set(parts)
    for part in cycle(parts):
        if not open_parts or left == 0:
            return
        if part in open_parts:
            taken = part.take(left)
            left = None if left is None else left - taken
            if part.is_done:
                open_parts.discard(part)
            elif not taken:
                time.sleep(_IDLE_S)


class _Part:
    """One partition that is read, and its file."""

    def __init__(self, source: Source, name: str, path: Path) -> None:
        self.path = path
        self._schema = source.schema
        self._reader = source.open(name, None)
        columns = () if self._schema is None else (*self._schema.arrow,)
        whole = pa.schema([*columns, (_TIME, pa.int64()), (_WATERMARK, pa.int64())])
        self._arrow = _ROWS if self._schema is None else whole
        self._writer = pq.ParquetWriter(path, self._arrow)

    @property
    def is_done(self) -> bool:
        return self._reader.finished

    def take(self, limit: int | None) -> int:
        """Read a batch and keep it; return how many records it had."""
        size = _READ_ROWS if self._schema is None else _READ_TABLE_ROWS
        batch = self._reader.read_batch(size if limit is None else min(size, limit))
        if batch is None or not len(batch):
            return 0
        self._writer.write_batch(self._kept(batch), row_group_size=_READ_TABLE_ROWS)
        return len(batch)

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    def _kept(self, batch: Batch) -> pa.RecordBatch:
        watermark = self._reader.watermark_ms
        if type(batch.values) is not Table:
            body = b"".join(encode_batch(batch.values, batch.timestamps))
            cells = [[len(batch)], [body], [watermark]]
            arrays = [pa.array(c, f.type) for c, f in zip(cells, _ROWS, strict=True)]
            return pa.RecordBatch.from_arrays(arrays, schema=_ROWS)
        stamps = [Times.of(batch.timestamps).array, pa.repeat(watermark, len(batch))]
        columns = [*batch.values.batch.columns, *stamps]
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow)


class RecordedSource(Source):
    """The source that reads the files made by `record`.

    Args:
        paths: the files; each is a partition.
        schema: of their columns; None for records of any kind.
    """

    replayable = True
    bounded = True

    def __init__(self, paths: list[str], schema: RowSchema | None, of: str) -> None:
        self._paths = paths
        self._schema = schema
        self._of = of

    @property
    def description(self) -> str:
        """The name of the recorded source."""
        return f"recorded {self._of}"

    @property
    def schema(self) -> RowSchema | None:
        """The schema that the source had."""
        return self._schema

    @property
    def parquet_files(self) -> list[str]:
        """The files, where they have columns."""
        return [] if self._schema is None else self._paths

    @property
    def parquet_time(self) -> str:
        """The column of event times, ms."""
        return _TIME

    def partitions(self) -> Sequence[str]:
        """Return the files."""
        return self._paths

    def open(self, partition: str, resume: int | None) -> "_RecordedReader":
        """Return a reader that goes on behind so many records."""
        return _RecordedReader(Path(partition), self._schema, resume or 0)


class _RecordedReader(SourceReader):
    """Gives the records of one partition again, with the watermarks that it had."""

    out_of_order_ms = None

    def __init__(self, path: Path, schema: RowSchema | None, skipped: int) -> None:
        self._schema = schema
        self._file = pq.ParquetFile(path)
        self._batches = self._read()
        self._batch: Batch | None = None  # Not given as a whole yet.
        self._given = 0
        self._watermark_ms = MIN_MS
        self._next_ms = MIN_MS  # When the batch was given as a whole.
        while skipped > self._given and self.read_batch(skipped - self._given) is not None:
            pass

    def read_batch(self, max_records: int) -> Batch | None:
        """Return the next records; a batch ends where the watermark moved."""
        if self._batch is None:
            found = next(self._batches, None)
            if found is None:
                self.finished = True
                return None
            self._batch, self._next_ms = found
        batch = self._batch
        part = Batch(batch.values[:max_records], batch.timestamps[:max_records])
        if len(part) == len(batch):
            self._batch, self._watermark_ms = None, self._next_ms
        else:
            self._batch = Batch(batch.values[max_records:], batch.timestamps[max_records:])
        self._given += len(part)
        return part

    def snapshot(self) -> int:
        return self._given

    @property
    def watermark_ms(self) -> int:
        """The watermark of the time when it was recorded."""
        return self._watermark_ms

    def close(self) -> None:
        self._file.close()

    def _read(self) -> Iterator[tuple[Batch, int]]:
        for group in range(self._file.num_row_groups):
            table = self._file.read_row_group(group)
            for batch in table.to_batches():
                if self._schema is None:
                    columns = (column.to_pylist() for column in batch.columns)
                    for count, body, watermark in zip(*columns, strict=True):
                        yield decode_batch(body, count), watermark
                elif batch.num_rows:
                    yield self._columns(batch)

    def _columns(self, batch: pa.RecordBatch) -> tuple[Batch, int]:
        assert self._schema is not None
        names = self._schema.arrow.names
        arrays = [batch.column(name) for name in names]
        made = pa.RecordBatch.from_arrays(arrays, schema=self._schema.arrow)
        watermark = batch.column(_WATERMARK)[0].as_py()
        return Batch(Table(made), Times(batch.column(_TIME))), watermark


class HeldSource(Source):
    """A source whose event time stands still until its end, so that no record is late."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.replayable, self.bounded = source.replayable, source.bounded

    @property
    def description(self) -> str:
        """The answer of the source."""
        return self._source.description

    @property
    def schema(self) -> RowSchema | None:
        """The answer of the source."""
        return self._source.schema

    def partitions(self) -> Sequence[str]:
        """Return the partitions of the source."""
        return self._source.partitions()

    def open(self, partition: str, resume: Any) -> SourceReader:
        """Return a reader without a watermark."""
        return _HeldReader(self._source.open(partition, resume))


class _HeldReader(SourceReader):
    out_of_order_ms = None

    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader

    def read_batch(self, max_records: int) -> Batch | None:
        batch = self._reader.read_batch(max_records)
        self.finished, self.idle = self._reader.finished, self._reader.idle
        return batch

    def snapshot(self) -> Any:
        return self._reader.snapshot()

    def close(self) -> None:
        self._reader.close()
