"""Spark Connect: a server in another process reads and writes window logs, ends, and comes back.

``python -m tests.spark.test_connect FOLDER`` does the same and more, which takes longer: streams,
and a program as a query.
"""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

import gearpy as gp
import gearpy.spark
from gearpy.errors import ConnectionLost
from gearpy.spark.delivery.batch import SparkBatch, overwrite
from gearpy.windowlog.log import WindowLog
from tests.bench.process_cluster import free_port
from tests.connectors.log_build import LogBuilder
from tests.eventually import take_time
from tests.spark.connect_server import connect_server
from tests.spark.streams import run_to_end
from tests.spark.test_to_spark import EXPECTED, a_config, counted, run

ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 600  # Two servers, on a machine that does a lot besides.


@pytest.mark.long
def test_all_works_through_a_server_that_ends_and_comes_back(tmp_path: Path) -> None:
    take_time(_TIMEOUT_S)
    script = "import sys; from tests.spark.test_connect import main; main(sys.argv[1])"
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-4000:]


def main(folder: str, *, is_all: bool = False) -> None:
    """Do what users of a server do; fail where something is not as it should be."""
    here, port = Path(folder), free_port()
    url = f"sc://127.0.0.1:{port}"
    with pytest.raises(ConnectionLost, match=f"no Spark Connect server at {url}"):
        gearpy.spark.session(remote=url)
    with ExitStack() as stack:
        server = stack.enter_context(connect_server(here, port))
        spark = gearpy.spark.session(remote=url)
        assert gearpy.spark.session(remote=url) is spark
        log = LogBuilder(here / "log")
        for seq in range(4):
            log.put(f"windows-{seq % 2:05d}", 50)
        read_and_write(spark, log.log.place, str(here / "copy"))
        if is_all:
            stream(spark, log.log.place, here)
            query_of_a_program(spark)

        def restart() -> None:
            server.kill()
            assert not gearpy.spark.is_alive(spark)
            stack.enter_context(connect_server(here, port))
            assert not gearpy.spark.is_alive(spark), "the new server does not know it"

        windows_survive(url, here, restart)
        gearpy.spark.stop()


def read_and_write(spark: SparkSession, log: str, copy: str) -> None:
    """Copy a log; nobody has told the server of the format."""
    spark.read.format("gearpy").load(log).write.format("gearpy").mode("append").save(copy)

    assert [segment.rows for segment in WindowLog(copy).segments()] == [200]


def stream(spark: SparkSession, log: str, here: Path) -> None:
    listener = gearpy.spark.listen(spark, log)
    windows = spark.readStream.format("gearpy").option("maxBatchesPerTrigger", 2).load(log)
    writing = windows.writeStream.format("gearpy").queryName("copying")
    writing = writing.option("checkpointLocation", str(here / "checkpoint"))
    writing = writing.trigger(availableNow=True)
    run_to_end(lambda: writing.start(str(here / "streamed")), within_s=_TIMEOUT_S)
    spark.streams.removeListener(listener)

    assert [segment.rows for segment in WindowLog(here / "streamed").segments()] == [100, 100]
    assert {report.name for report in WindowLog(log).readers()} == {"copying", "spark"}


def query_of_a_program(spark: SparkSession) -> None:
    app = gp.StreamApp("program")
    numbers = app.read(gp.collection(range(100), timestamp=lambda n: n))
    by_digit = numbers.key_by(lambda n: n % 10).window(gp.tumbling("100ms"))
    by_digit.count().write(gp.to_list([]))
    frame = app.to_spark_frame(spark)

    assert [tuple(row) for row in frame.select("key", "value").orderBy("key").collect()] == [
        (digit, 10) for digit in range(10)
    ]


def windows_survive(url: str, here: Path, restart: Any) -> None:
    """The server ends in the middle of a call: the same batch again, by a session of the next."""
    attempts: list[tuple[int, int]] = []

    def load(df: DataFrame, batch: SparkBatch) -> None:
        attempts.append((batch.id, batch.attempt))
        if len(attempts) == 1:
            restart()
        overwrite(df, str(here / "table"), batch)

    run(counted(here / "finished", load, spark=url), a_config(here))

    rows = ds.dataset(here / "table", format="parquet").to_table().to_pylist()
    found = [(round(row["window_start"].timestamp() * 1000), row["key"]) for row in rows]
    assert sorted(found) == [(start, key) for start, key, _ in EXPECTED]
    assert {row["value"] for row in rows} == {10}
    assert attempts[:2] == [(1, 1), (1, 2)], attempts


if __name__ == "__main__":
    main(sys.argv[1], is_all=True)
