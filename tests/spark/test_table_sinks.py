"""Tables that gearpy has written without Spark, read by Spark: every column, every value."""

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from gearpy.connectors.delta.table import delta_table
from gearpy.connectors.iceberg.table import iceberg_table
from gearpy.connectors.partitioned.hive import hive_folder
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink, TransactionalWriter
from gearpy.task.api.window_result import WindowResult

HOUR_MS = 3_600_000
PAGES = ["home", "a/b", "x=1%", "é ~", None, "", "..", "01", "__x", "a+b&c"]
RESULTS = [
    WindowResult(page, n, (20 + n) * HOUR_MS, (21 + n) * HOUR_MS) for n, page in enumerate(PAGES)
]
COLUMNS = "page", "value", "window_start", "day"


def written(sink: Sink, results: list[Any] = RESULTS) -> None:
    """Write a window of an hour for each page, of two days; two epochs."""
    writer = sink.open(0, 1)
    assert isinstance(writer, TransactionalWriter)
    writer.recover({}, epoch=0, run="r", incarnation=1)
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


def test_spark_reads_an_iceberg_table_without_its_jar(spark: SparkSession, tmp_path: Path) -> None:
    """No jar of Iceberg fits this Spark; the snapshot tells the files, Spark reads their types."""
    moment = datetime(2026, 3, 4, 5, 6, 7, 89)  # noqa: DTZ001 - one without a zone
    made = [
        {
            "id": 2**40 + n,
            "label": "\N{SNOWMAN}",
            "price": Decimal("12.50"),
            "made": moment.replace(tzinfo=UTC),
            "plain": moment,
            "flag": True,
            "raw": b"\x00\xff",
            "share": 0.1,
            "day": date(2026, 3, 4),
            "tags": ["a", "b"],
        }
        for n in range(9)
    ]
    empty: dict[str, Any] = dict.fromkeys(made[0])
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    catalog["warehouse"] = f"file://{tmp_path}/warehouse"
    written(iceberg_table("shop.sales", catalog=catalog), [*made, empty | {"id": 0}])

    with closing(load_catalog(**catalog)) as opened:
        files = [
            each.file.file_path for each in opened.load_table("shop.sales").scan().plan_files()
        ]
    stray = Path(files[0].removeprefix("file://")).with_name("stray.parquet")
    stray.write_bytes(b"no file of the table")
    frame = spark.read.option("mergeSchema", True).parquet(*files)

    assert dict(frame.dtypes) == {
        "id": "bigint",
        "label": "string",
        "price": "decimal(38,18)",
        "made": "timestamp",
        "plain": "timestamp_ntz",
        "flag": "boolean",
        "raw": "binary",
        "share": "double",
        "day": "date",
        "tags": "array<string>",
        "gearpy_epoch": "string",
    }
    found = [row.asDict() for row in frame.drop("gearpy_epoch").sort("id").collect()]
    for row in found:
        row["made"] = row["made"] and row["made"].astimezone(UTC)
    assert found == [empty | {"id": 0}, *made]
