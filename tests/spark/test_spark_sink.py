"""Windows handed over to a real Spark: exactly once, with failures, and with its JVM killed."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from gearpy.spark.delivery.batch import SparkBatch, overwrite
from tests.spark.test_to_spark import EXPECTED, a_config, counted, run

ROOT = Path(__file__).parents[2]


def windows_in(table: DataFrame) -> list[tuple[int, int, int]]:
    """Return what is in a table: start in ms, key, count."""
    rows = table.selectExpr("unix_millis(window_start) AS start", "key", "value").collect()
    return sorted((row["start"], row["key"], row["value"]) for row in rows)


@pytest.mark.parametrize("in_memory_rows", [50_000, 0], ids=["connection", "files"])
def test_keyed_overwrite_has_each_window_once(
    spark: SparkSession, tmp_path: Path, in_memory_rows: int
) -> None:
    """Though the function fails twice, once of them when all is written already."""
    table = str(tmp_path / "table")
    calls: Counter[int] = Counter()

    def load(df: DataFrame, batch: SparkBatch) -> None:
        calls[batch.id] += 1
        if calls[batch.id] == 1 and batch.id == 1:
            raise ValueError("before the write")
        overwrite(df.where("value > 0"), table, batch)
        if calls[batch.id] == 2 and batch.id == 1:
            raise ValueError("behind the write")

    settings: dict[str, Any] = {
        "spark.call-attempts": 5,
        "spark.in-memory-max-rows": in_memory_rows,
    }
    app = counted(tmp_path / "log", load, spark=lambda: spark)

    run(app, a_config(tmp_path, **settings))

    read = spark.read.parquet(table)
    assert windows_in(read) == EXPECTED
    assert calls[1] == 3
    assert "gearpy_batch" in read.columns


def test_windows_survive_the_death_of_the_jvm(tmp_path: Path) -> None:
    """In the middle of a write, and between the write and its end; in another process."""
    script = dedent(
        f"""
        import os, signal
        from pathlib import Path
        import gearpy.spark
        from gearpy.spark.delivery.batch import overwrite
        from gearpy.spark.sessions.driver import DRIVER
        from tests.spark.test_spark_sink import EXPECTED, windows_in
        from tests.spark.test_to_spark import a_config, counted, run

        here = Path({str(tmp_path)!r})
        fast = {{"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}}
        sessions, attempts = [], []

        def connect():
            sessions.append(gearpy.spark.session(master="local[2]", conf=fast))
            return sessions[-1]

        def load(df, batch):
            attempts.append((batch.id, batch.attempt))
            if len(attempts) == 1:
                os.kill(DRIVER.pid, signal.SIGKILL)
            overwrite(df, str(here / "table"), batch)
            if len(attempts) == 2:
                os.kill(DRIVER.pid, signal.SIGKILL)
                df.count()

        run(counted(here / "log", load, spark=connect), a_config(here))
        assert windows_in(sessions[-1].read.parquet(str(here / "table"))) == EXPECTED
        assert len(sessions) == 3, sessions
        assert attempts[:3] == [(1, 1), (1, 2), (1, 3)], attempts
        gearpy.spark.stop()
        """
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,  # Three JVMs, on a machine that does a lot besides.
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-4000:]
