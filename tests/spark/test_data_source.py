"""Spark itself reads and writes window logs: from gearpy, through Spark, and back."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

import gearpy as gp
from gearpy.connectors.window_log.sink import window_log_folder
from gearpy.connectors.window_log.source import window_log
from gearpy.spark.delivery.listener import listen
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import WindowLog
from tests.connectors.log_build import WINDOW_MS, LogBuilder
from tests.eventually import DEADLINE_S, take_time
from tests.spark.streams import run_to_end

_WITHIN_S = 400  # Spark starts a process of Python for each of several queries.
LANES = ("windows-00000", "windows-00001")


def count_by_key(path: Path, first_s: int, last_s: int) -> None:
    """Run an application: counts of three keys in windows of ten seconds."""
    app = gp.StreamApp("counts")
    numbers = app.read(
        gp.collection(range(first_s, last_s), timestamp=lambda second: second * 1000)
    )
    counts = numbers.key_by(lambda second: f"k{second % 3}").window(gp.tumbling("10s")).count()
    counts.write(window_log_folder(path))
    gp.run(app)


def sums_of(path: Path) -> dict[tuple[str, int], int]:
    """Run an application on what Spark has written: sums of minutes by key; no row may be late."""
    found: list[Any] = []
    app = gp.StreamApp("sums")
    rows = app.read(window_log(path, rows=True), late="drop")
    by_key = rows.key_by(lambda row: row["key"]).window(gp.tumbling("60s"))
    by_key.aggregate(total=gp.agg.sum(lambda row: row["value"])).write(gp.to_list(found))
    gp.run(app)
    return {(each.key, each.start // 60_000): each.value["total"] for each in found}


def doubled(spark: SparkSession, path: Path, out: Path) -> Callable[[], StreamingQuery]:
    """Return what runs a query over all there is: twice the count of each window."""

    def run() -> StreamingQuery:
        windows = spark.readStream.format("gearpy").option("maxBatchesPerTrigger", 1)
        twice = windows.load(str(path)).withColumn("value", F.col("value") * 2)
        writing = (
            twice.writeStream.format("gearpy")
            .option("checkpointLocation", str(out.with_name("checkpoint")))
            .option("watermark", "window_end")
            .trigger(availableNow=True)
        )
        return run_to_end(lambda: writing.start(str(out)))

    return run


def test_from_gearpy_through_spark_and_back(spark: SparkSession, tmp_path: Path) -> None:
    """Each window once: over restarts from the checkpoint, and a batch that is delivered again."""
    take_time(_WITHIN_S)
    counts, out = tmp_path / "counts", tmp_path / "doubled"
    run = doubled(spark, counts, out)
    count_by_key(counts, 0, 60)
    run()

    # Spark had died before it noted that it was done with the last batch.
    commits = tmp_path / "checkpoint" / "commits"
    last = max(
        (each for each in commits.iterdir() if each.name.isdigit()), key=lambda e: int(e.name)
    )
    last.unlink()
    count_by_key(counts, 60, 120)
    compact_all(WindowLog(counts))
    again = run()

    assert again.lastProgress is not None
    assert again.lastProgress.batchId > int(last.name)
    assert last.exists()
    assert len(WindowLog(out).segments()) >= 2
    everything = {
        (f"k{key}", minute): 2 * sum(second % 3 == key for second in range(60))
        for key in range(3)
        for minute in range(2)
    }
    assert sums_of(out) == everything
    (report,) = WindowLog(counts).readers()
    assert dict(report.lanes) == WindowLog(counts).view().ends()


def test_reading_once(spark: SparkSession, tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for seq in range(1, 5):
        build.put(LANES[0], 10)
        build.put(LANES[1], 5, body="arrow" if seq % 2 else "parquet")
    path = build.log.place

    whole = spark.read.format("gearpy").load(path)
    part = spark.read.format("gearpy").option("windowsSince", 3 * WINDOW_MS)
    part = part.option("endingPosition", '{"windows-00000": 3, "windows-00001": 4}')

    assert whole.groupBy("value").count().orderBy("value").collect() == [
        (seq, 15) for seq in range(1, 5)
    ]
    assert part.load(path).count() == 10 + 5 + 5
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        late = whole.where(F.col("window_start") >= F.timestamp_millis(F.lit(4 * WINDOW_MS)))
        assert late.agg(F.count("*"), F.min("value")).collect() == [(15, 4)]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_writing_once(spark: SparkSession, tmp_path: Path) -> None:
    """A task that fails leaves nothing to be seen; a write that has a number counts once."""
    path = str(tmp_path / "log")
    frame = spark.range(100).selectExpr("id", "timestamp_millis(id * 1000) AS event_time")
    writing = frame.write.format("gearpy").mode("append")

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 70 in batch.column("id").to_pylist():
                raise ZeroDivisionError
            yield batch

    broken = frame.repartition(2).mapInArrow(failing, frame.schema)
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        broken.write.format("gearpy").mode("append").save(path)
    after_failure = WindowLog(path).segments()
    for _ in range(2):
        writing.option("txnAppId", "roll-up").option("txnVersion", 7).save(path)
    found: list[Any] = []
    app = gp.StreamApp("read")
    app.read(window_log(path, rows=True)).write(gp.to_list(found, messages=True))
    gp.run(app)

    assert after_failure == []
    assert [(each.value["id"], each.timestamp) for each in found] == [
        (n, n * 1000) for n in range(100)
    ]
    with pytest.raises(PySparkException, match=r'only appends: use mode\("append"\)'):
        frame.write.format("gearpy").mode("overwrite").save(path)
    with pytest.raises(PySparkException, match="has other columns: there is a column 'id', too"):
        frame.drop("id").write.format("gearpy").mode("append").save(path)


class Ended(StreamingQueryListener):
    """Knows when a query has ended, once the listeners before it know it."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - as Spark has it
        """Pass over it."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - as Spark has it
        """Pass over it."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - as Spark has it
        self.event.set()


def test_a_query_is_noted_beside_the_log(spark: SparkSession, tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(4):
        build.put(rows=5)
    ended, seen = Ended(), list[tuple[int, int]]()

    def note(frame: DataFrame, batch: int) -> None:
        seen.append((batch, frame.count()))
        if len(seen) == 2:
            raise ZeroDivisionError

    def run() -> None:
        windows = spark.readStream.format("gearpy").option("maxRowsPerTrigger", 10)
        writing = windows.load(build.log.place).writeStream.foreachBatch(note).queryName("noted")
        writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
        run_to_end(writing.trigger(availableNow=True).start)

    listeners = [listen(spark, build.log.place), ended]
    spark.streams.addListener(ended)
    try:
        with pytest.raises(PySparkException, match="ZeroDivisionError"):
            run()
        run()
        assert ended.event.wait(DEADLINE_S)
    finally:
        for listener in listeners:
            spark.streams.removeListener(listener)

    assert seen == [(0, 10), (1, 10), (1, 10)]
    (report,) = [each for each in build.log.readers() if each.name == "noted"]
    assert report.batch_id in {0, 1}
    assert report.more["rows"] == 10
