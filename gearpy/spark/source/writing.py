"""Appending to a log once: the work of the tasks, and that of the driver behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from gearpy.errors import ConfigError
from gearpy.spark.source.committing import (
    Part,
    SourceDelivery,
    begin_log,
    drop_parts,
    show,
    single_run,
    transaction_run,
    write_part,
)
from gearpy.spark.source.options import WriteOptions
from gearpy.spark.source.reading import arrow_schema_of, log_at


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """A task's report to the driver: its part, and the run that has written it."""

    part: Part
    run: str


class SourceLogWriter(DataSourceArrowWriter):
    """Appends one batch.

    Runs on: a process for planning, those of the tasks, and one that commits what they wrote.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        begin_log(log_at(options), arrow_schema_of(schema))
        self._options = options
        application = options.transaction
        self._run = single_run() if application is None else transaction_run(application[0])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        part = write_part(log_at(self._options), self._options, self._run, iterator)
        return Written(part, self._run)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Show the batch; nothing if a write of this transaction, or a later one, came before."""
        transaction = self._options.transaction
        number = None if transaction is None else transaction[1]
        delivery = SourceDelivery(run=self._run, number=number, parts=parts_of(messages))
        show(log_at(self._options), self._options, delivery)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        drop_parts(log_at(self._options), parts_of(messages))


def parts_of(messages: Sequence[WriterCommitMessage | None]) -> list[Part]:
    return [each.part for each in messages if isinstance(each, Written)]


def check_append(*, overwrite: bool) -> None:
    if overwrite:
        raise ConfigError(
            'format "gearpy" only appends: use mode("append"), or outputMode "append" or "update"; '
            "to begin anew, write to another path"
        )
