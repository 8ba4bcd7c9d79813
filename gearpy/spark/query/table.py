"""The Spark query of a plan as a table with the columns of a window log."""

from typing import TYPE_CHECKING, Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.log_columns import LogColumns
from gearpy.columns.spark_types import exact_schema
from gearpy.connectors.files.tables import conformed
from gearpy.errors import ConfigError
from gearpy.spark.query.frame import twin_frame
from gearpy.spark.query.plan import LinearPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def spark_table(spark: "SparkSession", plan: LinearPlan) -> "DataFrame":
    """Return the query of a plan, with the columns that a window log of the stream has.

    Raises:
        ConfigError: there is no record to tell the columns, or Spark has no such types.
        OperatorError: records have no columns, or not the same ones.
    """
    query = twin_frame(spark, plan)
    first = query.first()
    if first is None:
        raise ConfigError(
            f"{plan.sink}: there is no record, so nobody knows the columns that Spark needs"
        )
    columns = _Columns(plan.sink)
    schema = columns(first.values, first.timestamps).schema
    return query.table(exact_schema(schema), _Columns(plan.sink, schema))


class _Columns:
    """Makes columns of records; travels to Spark's workers.

    Args:
        schema: of all columns; None: that of the first records.
    """

    def __init__(self, sink: str, schema: pa.Schema | None = None) -> None:
        self._sink = sink
        self._schema = schema

    def __call__(self, values: list[Any], times: list[int]) -> pa.RecordBatch:
        columns = LogColumns(self._sink)
        if self._schema is not None:
            columns.adopt(self._schema)
            return columns.batch_of(values, times)
        batch = columns.batch_of(values, times)
        return conformed(batch, columns.settled_schema())
