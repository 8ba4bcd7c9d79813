"""The parts that all readers of Spark share; and the reader that reads a log once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from gearpy.core.handover.window_log import LogPiece
from gearpy.errors import ConfigError, WindowLogDamaged
from gearpy.spark.source.options import SourceReadOptions, WriteOptions
from gearpy.spark.source.planning import Span, first_position, position_of, shares, span_of
from gearpy.windowlog.log import WindowLog

#: Rows that go to the JVM at a time.
_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class SourceShare(InputPartition):
    """The files that one task reads."""

    pieces: Sequence[LogPiece]

    def __repr__(self) -> str:
        return f"Share({len(self.pieces)} files)"


def log_at(options: SourceReadOptions | WriteOptions) -> WindowLog:
    return WindowLog(options.path, storage_options=options.storage_options)


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the columns as Spark takes them: exactly these types, or it refuses them."""
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # Before Spark 4.2 it is always UTC.
        return to_arrow_schema(schema)


def shares_of(pieces: Sequence[LogPiece], options: SourceReadOptions) -> list[SourceShare]:
    return [SourceShare(tuple(share)) for share in shares(pieces, options.partitions)]


def batches_of(
    share: InputPartition, options: SourceReadOptions, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's share in Spark's types. A file is read when its turn comes."""
    if not isinstance(share, SourceShare):  # Spark's own one, of nothing at all.
        return
    log, wanted = log_at(options), arrow_schema_of(schema)
    for piece in share.pieces:
        table = log.read(piece)
        if options.windows_since_ms is not None:
            if "window_start" not in table.schema.names:
                raise ConfigError("option windowsSince: the window log has no column window_start")
            since: Any = pa.scalar(options.windows_since_ms * 1000, pa.int64())
            since = since.cast(pa.timestamp("us", tz="UTC"))
            table = table.filter(pc.greater_equal(table.column("window_start"), since))
        if not table.schema.equals(wanted):
            names = table.schema.names
            if lacking := [name for name in wanted.names if name not in names]:
                raise ConfigError(
                    f"the window log has no column {lacking[0]!r}: there are {', '.join(names)}"
                )
            table = table.select(wanted.names).cast(wanted)
        yield from table.to_batches(max_chunksize=_BATCH_ROWS)


class SourceLogReader(DataSourceReader):
    """Reads the rows between two positions.

    Runs on: a process for planning, then those of the tasks.
    """

    def __init__(self, options: SourceReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._span = Span(ends_after_ms=options.windows_since_ms)

    def partitions(self) -> Sequence[InputPartition]:
        log, options = log_at(self._options), self._options
        view = log.view()
        end = view.ends() if options.ending is None else options.ending
        start = first_position(view, options.starting, from_end=options.from_end)
        skip_gaps = not options.fail_on_data_loss
        pieces = view.between(start, position_of(end), skip_gaps=skip_gaps)
        is_all, meets = self._span.is_all, self._span.meets
        return shares_of([each for each in pieces if is_all or meets(*_bounds(log, each))], options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches_of(partition, self._options, self._schema)


class FilteringLogReader(SourceLogReader):
    """A reader that is told the query's filters, and passes over files by them."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - as Spark has it
        for each in filters:
            attribute: Sequence[str] = getattr(each, "attribute", ())
            value = getattr(each, "value", None)
            if len(attribute) == 1 and isinstance(value, datetime):
                aware = value if value.tzinfo else value.replace(tzinfo=UTC)
                span = span_of(attribute[0], type(each).__name__, aware)
                self._span = self._span.and_also(span)
        return filters


def _bounds(log: WindowLog, piece: LogPiece) -> tuple[int | None, int | None]:
    try:
        batches = log.info(piece.segment).batches
    except WindowLogDamaged:  # A compaction has taken the file; its reader finds the other one.
        return None, None
    wanted = [each for each in batches if piece.first <= each.seq <= piece.last and each.rows]
    starts, ends = [each.starts for each in wanted], [each.ends for each in wanted]
    known_starts = [at for at in starts if at is not None]
    known_ends = [at for at in ends if at is not None]
    return (
        min(known_starts, default=None) if len(known_starts) == len(starts) else None,
        max(known_ends, default=None) if len(known_ends) == len(ends) else None,
    )
