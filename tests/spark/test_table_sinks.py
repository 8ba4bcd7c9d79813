"""Tables that gearpy has written without Spark, read by Spark: every column, every value."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from gearpy.connectors.delta.table import delta_table
from gearpy.connectors.partitioned.hive import hive_folder
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, TransactionalWriter
from gearpy.task.api.window_result import WindowResult

HOUR_MS = 3_600_000
PAGES = ["home", "a/b", "x=1%", "é ~", None, "", "..", "01", "__x", "a+b&c"]
COLUMNS = "page", "value", "window_start", "day"


def written(sink: Sink) -> None:
    """Write a window of an hour for each page, of two days; two epochs."""
    writer = sink.open(0, 1)
    assert isinstance(writer, TransactionalWriter)
    writer.recover({}, epoch=0, run="r", incarnation=1)
    results = [
        WindowResult(page, n, (20 + n) * HOUR_MS, (21 + n) * HOUR_MS)
        for n, page in enumerate(PAGES)
    ]
    for epoch, part in ((1, results[:5]), (2, results[5:])):
        writer.write_batch(Batch(part, [0] * len(part)))
        writer.commit(epoch, writer.prepare(epoch))
    writer.close(completed=True)


def expected() -> list[tuple[Any, ...]]:
    times = [datetime.fromtimestamp((20 + n) * 3600, UTC) for n in range(len(PAGES))]
    return [
        (page or None, n, time, time.date())
        for n, (page, time) in enumerate(zip(PAGES, times, strict=True))
    ]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    found = frame.select(*COLUMNS).sort("value").collect()
    return [(row[0], row[1], row[2].astimezone(UTC), row[3]) for row in found]


def test_spark_reads_a_partitioned_folder(spark: SparkSession, tmp_path: Path) -> None:
    """Types of partitions are inferred, or given; a day is read without the other."""
    path = tmp_path / "hive"
    written(
        hive_folder(path, partition_by={"day": "date(window_start)", "page": "page"}, key="page")
    )

    inferred = spark.read.parquet(str(path))
    given = spark.read.schema(
        t.StructType(
            [
                t.StructField("window_start", t.TimestampType()),
                t.StructField("value", t.LongType()),
                t.StructField("day", t.DateType()),
                t.StructField("page", t.StringType()),
            ]
        )
    ).parquet(str(path))

    assert dict(inferred.dtypes)["day"] == "date"
    assert rows(given) == expected()
    assert rows(inferred) == expected()
    second = given.where(given.day == date(1970, 1, 2))
    assert second.count() == len(PAGES) - 4


def test_spark_reads_a_delta_table_without_its_jar(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "delta"
    written(
        delta_table(path, partition_by={"day": "date(window_start)", "page": "page"}, key="page")
    )
    (path / "day=1970-01-01" / "page=home" / "stray.parquet").write_bytes(b"no file of the table")

    files = DeltaTable(path).file_uris()
    frame = spark.read.option("basePath", str(path)).parquet(*files)

    assert rows(frame) == expected()
