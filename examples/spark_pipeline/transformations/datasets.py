"""The pipeline as Spark Declarative Pipelines wants it: which table there is, and of what.

Spark finds out in which order to make them, and reads of a window log only what has come since the
last run: `page_log` and the others are streaming tables. Started by ``spark-pipelines run``, which
puts a `spark` here.
"""

import tables
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
out = spark.conf.get("spark.clicks.out")


def streaming_table(name: str) -> None:
    """Define the table of all that is in a window log."""

    @dp.table(name=name)
    def log() -> DataFrame:
        return tables.log(spark.readStream, out, name)


for name in tables.LOGS:
    streaming_table(name)


@dp.materialized_view
def pages() -> DataFrame:
    """What each page offers."""
    return tables.page_table(spark, out)


@dp.materialized_view(partition_cols=["day"])
def page_windows() -> DataFrame:
    """Windows of 10 s with the category of their pages."""
    return tables.page_windows(spark.read.table("page_log"), spark.read.table("pages"))


@dp.materialized_view
def checks() -> DataFrame:
    """Fails when something is wrong with the logs."""
    names = ("page_log", "session_log", "late_log", "pages")
    return tables.checks(*map(spark.read.table, names))
