"""A linear plan as a Spark query: SQL over columns where that says the same, Python elsewhere.

Between two exchanges all functions of the user run in one ``mapInArrow``. Aggregates of columns by
names are SQL; all others are combined in Python before the exchange and merged behind it. Only
calls that Spark Connect has, too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import LogColumns
from gearpy.columns.row_schema import RowSchema
from gearpy.columns.spark_types import exact_schema
from gearpy.connectors.files.tables import conformed
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.data import Batch
from gearpy.spark.query.plan import TIME, BatchStep, GroupStep, LinearPlan, RowsStep
from gearpy.spark.query.shipping import send_by_value
from gearpy.spark.query.sql import SqlGroup, grouped, sql_group, tells_apart
from gearpy.spark.query.worker import (
    PIECES,
    RECORDS,
    ColumnsIn,
    ColumnsOut,
    PartitionsIn,
    PiecesIn,
    PiecesOut,
    RecordsOut,
    TableOut,
    WindowsIn,
    Worker,
    decoded,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RAISED: Final = re.compile(r"[\w.]*(Error|Exception|Damaged|Lost|Full)\b: ")
#: Partitions of a source are read by so many tasks at most.
_READERS_MAX: Final = 1000
#: Python aggregates in no more tasks: each begins with an idle worker.
_BUCKETS_MAX: Final = 64
_PLAIN: Final = frozenset(
    {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()}
    | {pa.string(), pa.binary(), pa.date32()}
)


@runtime_checkable
class ParquetColumns(Protocol):
    """A source whose columns Spark can read by itself: files of Parquet with event times."""

    @property
    def parquet_files(self) -> list[str]:
        """The files; empty where Spark has to ask the source."""
        ...

    @property
    def parquet_time(self) -> str:
        """The column of event times, whole numbers of milliseconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinFrame:
    """The Spark query of a plan.

    Attributes:
        frame: the query as far as its last exchange.
        worker: the function behind it, without the form of its output.
        takes: the schema by which columns become rows, where columns come.
        group: the aggregate that SQL computes at the end, if it ends so.
    """

    frame: "DataFrame"
    worker: Worker
    takes: RowSchema | None
    group: SqlGroup | None = None

    def batches(self) -> Iterator[Batch]:
        if self.group is not None:
            for batch in _run(self.frame).to_batches():
                yield WindowsIn(self.group).rows(batch)
            return
        yield from decoded(_run(self.records()))

    def records(self) -> "DataFrame":
        return _mapped(self.frame, self.ending(RecordsOut(self.takes)), RECORDS)

    def ending(self, gives: Any) -> Worker:
        worker = self.worker
        return Worker(reads=worker.reads, steps=worker.steps, gives=gives, records=worker.records)


def twin_frame(spark: "SparkSession", plan: LinearPlan) -> TwinFrame:
    """Return the query of a plan; nothing runs yet.

    Where Python aggregates, keys are spread over as many tasks as ``spark.sql.shuffle.partitions``
    says, but no more than a few.

    Raises:
        ConfigError: the source gives nothing to read.
    """
    tasks = int(spark.conf.get("spark.sql.shuffle.partitions") or _BUCKETS_MAX)
    query = _Query(spark, plan, min(tasks, _BUCKETS_MAX))
    for step in plan.steps:
        query.add(step)
    return query.made(plan.gives)


def spark_table(spark: "SparkSession", plan: LinearPlan) -> "DataFrame":
    """Return the query of a plan, with the columns that a window log of the stream has.

    Raises:
        ConfigError: there is no record to tell the columns, or Spark has no such types.
        OperatorError: records have no columns, or not the same ones.
    """
    query = twin_frame(spark, plan)
    first = next(decoded(_run(query.records().limit(1))), None)
    if first is None:
        raise ConfigError(
            f"{plan.sink}: there is no record, so nobody knows the columns that Spark needs"
        )
    schema = _log_batch(plan.sink, None, first.values, first.timestamps).schema
    gives = TableOut(partial(_log_batch, plan.sink, schema), query.takes)
    return _mapped(query.frame, query.ending(gives), exact_schema(schema))


def _log_batch(
    sink: str, schema: pa.Schema | None, values: list[Any], times: list[int]
) -> pa.RecordBatch:
    """Make columns of records: those of all; without a schema, those of the first records."""
    columns = LogColumns(sink)
    if schema is not None:
        columns.adopt(schema)
        return columns.batch_of(values, times)
    batch = columns.batch_of(values, times)
    return conformed(batch, columns.settled_schema())


class _Query:
    """The query as far as it was built."""

    def __init__(self, spark: "SparkSession", plan: LinearPlan, buckets: int) -> None:
        self._buckets = buckets
        self._records = send_by_value(plan)
        self._steps: list[RowsStep | BatchStep] = []
        self._group: SqlGroup | None = None  # The query ends with it, if no step has come since.
        #: The columns that the steps give, if they are known to give columns.
        self._schema = None if plan.source.schema is None else plan.source.schema.arrow
        self._frame, self._reads = _read(spark, plan)

    def add(self, step: RowsStep | BatchStep | GroupStep) -> None:
        if isinstance(step, GroupStep):
            group = sql_group(step, self._schema)
            if group is not None:
                self._frame = grouped(self._columns(group.schema), group)
                self._reads, self._group = WindowsIn(group), group
            else:
                pieces = _mapped(self._frame, self._worker(PiecesOut(step, self._buckets)), PIECES)
                self._frame = pieces.repartition(self._buckets, "bucket")
                self._reads, self._group = PiecesIn(step), None
            self._steps, self._schema = [], None
            return
        self._steps.append(step)
        self._group = None
        gives = step.gives if isinstance(step, BatchStep) else None
        self._schema = None if gives is None else gives.arrow

    def made(self, gives: RowSchema | None) -> TwinFrame:
        worker = self._worker(RecordsOut())
        return TwinFrame(frame=self._frame, worker=worker, takes=gives, group=self._group)

    def _columns(self, schema: pa.Schema) -> "DataFrame":
        if not self._steps and isinstance(self._reads, ColumnsIn):
            return self._frame
        whole = schema.append(pa.field(TIME, pa.int64()))
        return _mapped(self._frame, self._worker(ColumnsOut(schema)), whole)

    def _worker(self, gives: Any) -> Worker:
        return Worker(
            reads=self._reads, steps=tuple(self._steps), gives=gives, records=self._records
        )


def _read(spark: "SparkSession", plan: LinearPlan) -> "tuple[DataFrame, Any]":
    """Return a frame of the source, and its form; Spark itself reads plain columns in any order."""
    source, schema = plan.source, plan.source.schema
    may_reorder = (
        schema is not None
        and not any(step.is_ordered for step in plan.groups[:1])
        and tells_apart(schema.arrow.names)
        and all(field.type in _PLAIN for field in schema.arrow)
    )
    if isinstance(source, ParquetColumns) and source.parquet_files and may_reorder:
        assert schema is not None, "it has columns"
        frame = spark.read.parquet(*source.parquet_files)
        return frame.withColumnRenamed(source.parquet_time, TIME), ColumnsIn(schema.arrow)
    names = list(source.partitions())
    if not names:
        raise ConfigError(f"{source.description} has no partitions, so there is nothing to read")
    tasks = min(len(names), _READERS_MAX)
    return spark.range(0, len(names), 1, tasks), PartitionsIn(source, names)


def _run(frame: "DataFrame") -> pa.Table:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - only here

    try:
        return frame.toArrow()
    except PySparkException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raised = [line for line in lines if _RAISED.match(line)]
        cause = (raised or lines or ["it does not say why"])[-1 if raised else 0]
        raise GearpyError(f"Spark failed: {cause}") from error


def _mapped(frame: "DataFrame", worker: Worker, schema: pa.Schema) -> "DataFrame":
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - only here

    return frame.mapInArrow(worker.__call__, from_arrow_schema(schema))
