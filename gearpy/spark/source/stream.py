"""Streams that read and write a log: offsets, limits, reports, and batches that come again."""

import logging
from collections.abc import Iterator, Sequence
from typing import Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from gearpy.clocks import wall_ms
from gearpy.core.handover.window_log import LogView
from gearpy.errors import GearpyError
from gearpy.spark.source.committing import (
    SourceDelivery,
    begin_log,
    drop_parts,
    query_run,
    show,
    transaction_run,
    write_part,
)
from gearpy.spark.source.options import SourceReadOptions, WriteOptions
from gearpy.spark.source.planning import (
    ReadingPace,
    check_known,
    common_position,
    first_position,
    next_position,
    position_of,
)
from gearpy.spark.source.reading import arrow_schema_of, batches_of, log_at, shares_of
from gearpy.spark.source.writing import Written, parts_of
from gearpy.windowlog.log import ReaderReport

_LOG: Final = logging.getLogger(__name__)
#: The property with a query's id in Spark's tasks: the same over restarts from one checkpoint.
_QUERY_ID: Final = "sql.streaming.queryId"


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads new batches of a log. An offset is a position in it, as JSON.

    Runs on: a process of its own for each query, one thread; and those of the tasks, which read.
    Restart: Spark gives the offsets of its checkpoint.
    """

    def __init__(self, options: SourceReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._until: dict[str, int] | None = None
        self._pace = ReadingPace()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - as Spark has it
        options = self._options
        return first_position(self._view(), options.starting, from_end=options.from_end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - as Spark has it
        if self._options.max_rows is not None:
            return ReadMaxRows(self._options.max_rows)
        if self._options.max_batches is not None:
            return ReadMaxFiles(self._options.max_batches)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - as Spark has it
        view, begin = self._view(), position_of(start)
        if self._options.fail_on_data_loss:
            check_known(view, begin, place=self._options.path)
        is_all = isinstance(limit, ReadAllAvailable)
        end = next_position(
            view,
            begin,
            max_rows=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            max_batches=None if is_all else self._options.max_batches,
            until=self._until,
        )
        # Spark asks when it is done with everything before; it commits that only with the next.
        now_ms = wall_ms()
        if self._pace.is_due(begin, has_more=end != begin, now_ms=now_ms):
            rows_per_s = self._pace.on_report(view, begin, now_ms=now_ms)
            report = ReaderReport(
                name=self._options.reader,
                lanes=begin,
                at_ms=now_ms,
                rows_per_s=rows_per_s,
                more={"rows_behind": view.rows_between(begin, view.ends())},
            )
            log = log_at(self._options)
            try:
                log.report(report)
            except OSError as error:  # No query fails because it cannot report.
                _LOG.warning("window log %s: cannot tell how far it was read: %s", log.place, error)
        return end

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - as Spark has it
        return position_of(self._view().ends())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - as Spark has it
        self._until = position_of(self._view().ends())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        skip_gaps = not self._options.fail_on_data_loss
        pieces = self._view().between(position_of(start), position_of(end), skip_gaps=skip_gaps)
        return shares_of(pieces, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches_of(partition, self._options, self._schema)

    def commit(self, end: dict[str, int]) -> None:
        """Remove files that all known readers have passed, if ``purge`` is set."""
        if not self._options.purge:
            return
        log = log_at(self._options)
        others = [
            each.lanes
            for each in log.readers()
            # A listener's note of a query is about a reader that reports itself, too.
            if each.name != self._options.reader and "query" not in each.more
        ]
        log.purge(common_position(position_of(end), others))

    def _view(self) -> LogView:
        return log_at(self._options).view()


class LogStreamWriter(DataSourceStreamArrowWriter):
    """Appends a batch of the log for each batch of a query that has rows.

    Runs on: as `LogWriter`; what shows a batch is a new object each time.
    Restart: Spark may deliver its last batch again, which is recognised then.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        begin_log(log_at(options), arrow_schema_of(schema))
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        # The run is that of the application in the options, or of the query.
        if self._options.transaction is not None:
            run = transaction_run(self._options.transaction[0])
        else:
            context = TaskContext.get()
            query = None if context is None else context.getLocalProperty(_QUERY_ID)
            if not query:
                raise GearpyError(
                    'format "gearpy": Spark does not tell which query writes, so that a batch that '
                    "is delivered again would not be recognised"
                )
            run = query_run(query)
        return Written(write_part(log_at(self._options), self._options, run, iterator), run)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - as Spark has it
        (run,) = {each.run for each in messages if isinstance(each, Written)}
        delivery = SourceDelivery(run=run, number=batchId, parts=parts_of(messages))
        show(log_at(self._options), self._options, delivery)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - as Spark has it
        drop_parts(log_at(self._options), parts_of(messages))
