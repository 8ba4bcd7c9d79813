"""A program that uses Spark as most programs do, so that `archive` sees which classes they need.

``python -m gearpy.spark.sessions.rehearsal CLASSPATH OPTION…``: more places for classes, or
nothing, and options for Java. What goes wrong, and how the JVM ended, is on standard error.
"""

import logging
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from gearpy.spark.sessions.sessions import session, stop


def main(class_path: str, options: Sequence[str]) -> None:
    """Run a JVM with more classes and options, use it, and wait for its end."""
    spark = session(
        "gearpy rehearsal",
        master="local[2]",
        conf={
            "spark.driver.extraClassPath": class_path,
            "spark.driver.extraJavaOptions": shlex.join(options),
        },
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            rehearse(spark, Path(folder))
    finally:
        stop()


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Aggregate, join, write and read Parquet, and run a streaming query."""
    spark.range(1).count()
    rows = pa.table({"key": ["a", "b", "a"], "value": [1, 2, 3]})
    pq.write_table(rows, folder / "rows.parquet")
    read = spark.read.parquet(str(folder / "rows.parquet"))
    sums = read.groupBy("key").agg(f.sum("value").alias("total"), f.count("*").alias("n"))
    sums.join(read, "key").orderBy("value").write.parquet(str(folder / "joined"))
    spark.createDataFrame(rows).createOrReplaceTempView("rehearsal")
    spark.sql("SELECT key, max(value) FROM rehearsal GROUP BY key").collect()
    stream = spark.readStream.schema(read.schema).parquet(str(folder / "joined"))
    query = (
        stream.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(_count)
        .start()
    )
    query.awaitTermination()


def _count(batch: DataFrame, _: int) -> None:
    batch.count()


if __name__ == "__main__":
    logging.basicConfig()
    logging.getLogger("gearpy.spark.sessions.jvm").setLevel(logging.DEBUG)
    main(sys.argv[1], sys.argv[2:])
