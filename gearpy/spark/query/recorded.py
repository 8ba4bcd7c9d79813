"""Records of a source, kept in Parquet files: every reader gets the same ones.

Columns stay columns; other records are kept as the bytes in which they travel between processes.
With them stand their event times and how far the source's watermark was.
"""

import time
from collections.abc import Iterator, Sequence
from math import inf
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


def record(
    source: Source, folder: Path, *, limit: int | None = None, seconds: float | None = None
) -> "RecordedSource":
    """Read a source to its end, or so many records of it, or for so long, into files of a folder.

    Raises:
        ConfigError: the source has no end, and there is no limit; or it cannot be kept.
    """
    if limit is None and seconds is None and not source.bounded:
        raise ConfigError(
            f"{source.description} has no end: say how many records to take, as with --records"
        )
    schema = source.schema
    if schema is not None and {_TIME, _WATERMARK} & set(schema.arrow.names):
        raise ConfigError(f"{source.description} has a column {_TIME} or {_WATERMARK}: rename it")
    folder.mkdir(parents=True)
    parts: list[_Part] = []

    def add(reader: SourceReader) -> None:
        parts.append(_Part(reader, schema, folder / f"{len(parts):05d}.parquet"))

    finder = source.discover(0, 1, []) if source.discovers else None
    try:
        for name in source.partitions():
            add(source.open(name, None))
        left = inf if limit is None else limit
        ends_s = inf if seconds is None else time.monotonic() + seconds
        # Partitions are read a batch at a time in turn, until all have ended or there is enough.
        while left > 0 and time.monotonic() < ends_s:
            if finder is not None:
                for name, place in finder.find().items():
                    add(finder.open(name, place))
            before = left
            for part in parts:
                left -= part.take(left)
            if all(part.is_done for part in parts) and (finder is None or finder.finished):
                break
            if left == before:
                time.sleep(_IDLE_S)
    finally:
        for part in parts:
            part.close()
        if finder is not None:
            finder.close()
    records = sum(part.records for part in parts)
    return RecordedSource(
        [str(part.path) for part in parts], schema, source.description, records=records
    )


class _Part:
    """One partition that is read, and its file."""

    def __init__(self, reader: SourceReader, schema: RowSchema | None, path: Path) -> None:
        self.path = path
        self.records = 0
        self._schema = schema
        self._reader = reader
        columns = () if self._schema is None else (*self._schema.arrow,)
        whole = pa.schema([*columns, (_TIME, pa.int64()), (_WATERMARK, pa.int64())])
        self._arrow = _ROWS if self._schema is None else whole
        self._writer = pq.ParquetWriter(path, self._arrow)

    @property
    def is_done(self) -> bool:
        return self._reader.finished

    def take(self, limit: float) -> int:
        if self.is_done or limit <= 0:
            return 0
        size = _READ_ROWS if self._schema is None else _READ_TABLE_ROWS
        batch = self._reader.read_batch(int(min(size, limit)))
        if batch is None or not len(batch):
            return 0
        watermark = self._reader.watermark_ms
        if type(batch.values) is Table:
            stamps = [Times.of(batch.timestamps).array, pa.repeat(watermark, len(batch))]
            columns = [*batch.values.batch.columns, *stamps]
            kept = pa.RecordBatch.from_arrays(columns, schema=self._arrow)
        else:
            body = b"".join(encode_batch(batch.values, batch.timestamps))
            cells = [[len(batch)], [body], [watermark]]
            arrays = [pa.array(c, f.type) for c, f in zip(cells, _ROWS, strict=True)]
            kept = pa.RecordBatch.from_arrays(arrays, schema=_ROWS)
        self._writer.write_batch(kept, row_group_size=_READ_TABLE_ROWS)
        self.records += len(batch)
        return len(batch)

    def close(self) -> None:
        self._writer.close()
        self._reader.close()


class RecordedSource(Source):
    """The source that reads the files made by `record`.

    Args:
        paths: the files; each is a partition.
        schema: of their columns; None for records of any kind.
    """

    replayable = True
    bounded = True
    pauses = False  #: Nothing is there each second time, so that a simulated clock goes on.

    def __init__(
        self, paths: list[str], schema: RowSchema | None, of: str, *, records: int = 0
    ) -> None:
        self.records = records
        self._paths = paths
        self._schema = schema
        self._of = of

    @property
    def description(self) -> str:
        return f"recorded {self._of}"

    @property
    def schema(self) -> RowSchema | None:
        return self._schema

    @property
    def parquet_files(self) -> list[str]:
        return [] if self._schema is None else self._paths

    @property
    def parquet_time(self) -> str:
        return _TIME

    def partitions(self) -> Sequence[str]:
        return self._paths

    def open(self, partition: str, resume: int | None) -> "_RecordedReader":
        return _RecordedReader(Path(partition), self._schema, resume or 0, pauses=self.pauses)


class _RecordedReader(SourceReader):
    """Gives the records of one partition again, with the watermarks that it had."""

    out_of_order_ms = None

    def __init__(
        self, path: Path, schema: RowSchema | None, skipped: int, *, pauses: bool = False
    ) -> None:
        self._pauses = False
        self._schema = schema
        self._file = pq.ParquetFile(path)
        self._batches = self._read()
        self._batch: Batch | None = None  # Its rest is to be given.
        self._given = 0
        self._watermark_ms = MIN_MS
        self._next_ms = MIN_MS  # When the batch was given as a whole.
        while skipped > self._given and self.read_batch(skipped - self._given) is not None:
            pass
        self._pauses, self._is_to_pause = pauses, False

    def read_batch(self, max_records: int) -> Batch | None:
        """Return the next records; a batch ends where the watermark moved."""
        if self._pauses:
            self._is_to_pause = not self._is_to_pause
            if not self._is_to_pause:
                return None
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
        return self._watermark_ms

    def close(self) -> None:
        self._file.close()

    def _read(self) -> Iterator[tuple[Batch, int]]:
        for group in range(self._file.num_row_groups):
            for batch in self._file.read_row_group(group).to_batches():
                if self._schema is None:
                    columns = (column.to_pylist() for column in batch.columns)
                    for count, body, watermark in zip(*columns, strict=True):
                        yield decode_batch(body, count), watermark
                elif batch.num_rows:
                    schema = self._schema.arrow
                    arrays = [batch.column(name) for name in schema.names]
                    table = Table(pa.RecordBatch.from_arrays(arrays, schema=schema))
                    watermark = batch.column(_WATERMARK)[0].as_py()
                    yield Batch(table, Times(batch.column(_TIME))), watermark


class HeldSource(Source):
    """A source whose event time stands still until its end, so that no record is late."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.replayable, self.bounded = source.replayable, source.bounded

    @property
    def description(self) -> str:
        return self._source.description

    @property
    def schema(self) -> RowSchema | None:
        return self._source.schema

    def partitions(self) -> Sequence[str]:
        return self._source.partitions()

    def open(self, partition: str, resume: Any) -> SourceReader:
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
