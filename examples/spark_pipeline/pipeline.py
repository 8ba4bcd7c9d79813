"""The Spark job: reads the window logs, checks them, and writes the tables.

    spark-submit examples/spark_pipeline/pipeline.py clicks

reads ``clicks/logs`` and ``clicks/pages.csv``, and writes ``clicks/tables``. Running it again
replaces the tables. Plain ``python`` instead of ``spark-submit`` does as well.
"""

import sys
from pathlib import Path
from typing import Final

import tables
from pyspark.sql import DataFrame, SparkSession

import gearpy.spark

__all__ = ["SQL", "TABLES", "build", "read", "select_of"]

#: Tables by SQL, which `transformations` has.
SQL: Final = ("daily_sales", "daily_sessions", "top_pages")
#: All tables, in the order in which they are written, and what they are partitioned by.
TABLES: Final = {
    "checks": [],
    "page_windows": ["day"],
    "daily_sales": ["day"],
    "daily_sessions": [],
    "top_pages": [],
}
#: Days are those of UTC, wherever the machine is.
CONF: Final = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}

_TRANSFORMATIONS: Final = Path(__file__).parent / "transformations"


def build(spark: SparkSession, out: Path) -> None:
    """Write all tables; the checks come first, so nothing is written of logs that fail them."""
    frames = read(spark, out)
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        for name, partitions in TABLES.items():
            frame = spark.sql(select_of(name)) if name in SQL else frames[name]
            # One file for each day: a day is not much, and small files are slow to read.
            whole = frame.repartition(1, *partitions)
            whole.write.mode("overwrite").partitionBy(*partitions).parquet(f"{out}/tables/{name}")
    finally:
        for name, frame in frames.items():
            spark.catalog.dropTempView(name)
            frame.unpersist()


def read(spark: SparkSession, out: Path) -> dict[str, DataFrame]:
    """Return what the tables are made of, by name, and those that are made in Python."""
    frames: dict[str, DataFrame] = {"pages": tables.page_table(spark, out)}
    for name in tables.LOGS:
        # Several tables are made of it. They all see the same windows, also while more come.
        frames[name] = tables.log(spark.read, out, name).cache()
    frames["page_windows"] = tables.page_windows(frames["page_log"], frames["pages"])
    frames["checks"] = tables.checks(
        *(frames[name] for name in ("page_log", "session_log", "late_log", "pages"))
    )
    return frames


def select_of(name: str) -> str:
    """Return the query of a view that is defined in a file of SQL."""
    text = (_TRANSFORMATIONS / f"{name}.sql").read_text(encoding="utf-8")
    return text.partition(" AS\n")[2]


def main() -> None:
    """Build the tables of a folder."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "clicks").resolve()
    build(gearpy.spark.session("clicks", conf=CONF), out)
    gearpy.spark.stop()


if __name__ == "__main__":
    main()
