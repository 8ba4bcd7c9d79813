"""The programs of `peers` for PySpark; run as a script by a Python that has it, without gearpy.

``peer_spark.py words FILES`` counts the words of files in three ways, all with a Python function;
``peer_spark.py windows FOLDER`` sums and counts by key in windows of ten seconds, from Parquet, in
a query over all there is; ``peer_spark.py stream FOLDER`` does so by Structured Streaming, out of
order, into Parquet.
Each runs once to warm up and then on the clock. Says seconds, records and results as JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from operator import add
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

_Job: TypeAlias = Callable[[SparkSession, list[str]], list[int]]  # What was counted, by result.


def _rdd(spark: SparkSession, files: list[str]) -> list[int]:
    words = spark.sparkContext.textFile(",".join(files)).flatMap(lambda line: line.split())
    return [n for _, n in words.map(lambda word: (word, 1)).reduceByKey(add).collect()]


def _udf(spark: SparkSession, files: list[str]) -> list[int]:
    split = f.udf(lambda line: line.split(), "array<string>", useArrow=True)
    words = spark.read.text(files).select(f.explode(split("value")).alias("word"))
    return [row["count"] for row in words.groupBy("word").count().collect()]


def _in_arrow(spark: SparkSession, files: list[str]) -> list[int]:
    words = spark.read.text(files).mapInArrow(_split, "word string")
    return [row["count"] for row in words.groupBy("word").count().collect()]


def _split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        words = [word for line in batch.column(0).to_pylist() for word in line.split()]
        yield pa.RecordBatch.from_pydict({"word": words})


def _windows(spark: SparkSession, files: list[str]) -> list[int]:
    counted = (
        spark.read.parquet(*files)
        .groupBy(f.window("at", "10 seconds"), "user")
        .agg(f.sum("price").alias("total"), f.count("*").alias("n"))
    )
    return [row["n"] for row in counted.collect()]


def _stream(spark: SparkSession, files: list[str]) -> list[int]:
    (folder,) = files
    events = spark.readStream.schema(spark.read.parquet(folder).schema).parquet(folder)
    counted = (
        events.withWatermark("at", "5 seconds")
        .groupBy(f.window("at", "10 seconds"), "key")
        .agg(f.sum("value").alias("total"), f.count("*").alias("n"))
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as out:
        query = counted.writeStream.outputMode("append").format("parquet")
        query = query.option("checkpointLocation", f"{out}/progress").trigger(availableNow=True)
        query.start(f"{out}/results").awaitTermination()
        return [row["n"] for row in spark.read.parquet(f"{out}/results").select("n").collect()]


_JOBS: dict[str, dict[str, _Job]] = {
    "words": {
        "PySpark, RDD": _rdd,
        "PySpark, udf with Arrow": _udf,
        "PySpark, mapInArrow": _in_arrow,
    },
    "windows": {"PySpark, a query over all": _windows},
    "stream": {"PySpark, Structured Streaming": _stream},
}


def main() -> None:
    what, *files = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    said = {name: _timed(job, spark, files) for name, job in _JOBS[what].items()}
    spark.stop()
    sys.stdout.write(json.dumps(said) + "\n")


def _timed(job: _Job, spark: SparkSession, files: list[str]) -> dict[str, Any]:
    job(spark, files)
    begin_s = time.perf_counter()
    counts = job(spark, files)
    took_s = time.perf_counter() - begin_s
    return {"seconds": took_s, "records": sum(counts), "results": len(counts)}


if __name__ == "__main__":
    main()
