"""Windows handed over to a real Spark: exactly once, with failures.

`test_without_java` kills the JVM meanwhile.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from gearpy.spark.delivery.batch import SparkBatch, overwrite
from tests.spark.test_to_spark import EXPECTED, a_config, counted, run


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
