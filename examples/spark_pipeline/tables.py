"""What Spark makes of the window logs, as data frames; a query of its own each.

Both ways of running it use these: `pipeline` reads the logs once and writes every table, Spark
Declarative Pipelines finds the functions in `transformations`. What is easier to say in SQL is
in the ``.sql`` files there.
"""

from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamReader

__all__ = ["LOGS", "checks", "log", "page_table", "page_windows"]

#: What each window log is called here, and its folder.
LOGS: Final = {
    "page_log": "pages",
    "session_log": "sessions",
    "top_log": "top",
    "late_log": "late",
}
#: Of a log that may not be there: it begins with its first record, and perhaps no click is late.
SCHEMAS: Final = {
    "late_log": "user string, page string, kind string, cents bigint, event_time timestamp",
}


def log(reader: DataFrameReader | DataStreamReader, out: str | Path, name: str) -> DataFrame:
    """Return a window log, read once or on and on: by ``spark.read`` or ``spark.readStream``."""
    reader = reader.format("gearpy")
    if name in SCHEMAS:
        reader = reader.schema(SCHEMAS[name])
    return reader.load(f"{out}/logs/{LOGS[name]}")


def page_table(spark: SparkSession, out: str | Path) -> DataFrame:
    """Return the dimension: what each page offers."""
    columns = "page string, title string, category string"
    return spark.read.csv(f"{out}/pages.csv", schema=columns, header=True)


def page_windows(page_log: DataFrame, pages: DataFrame) -> DataFrame:
    """Return the windows of 10 s with the category of their pages, and the day to partition by."""
    return page_log.join(f.broadcast(pages), "page").select(
        "window_start",
        "window_end",
        "page",
        "category",
        "clicks",
        "purchases",
        "cents",
        "users",
        f.to_date("window_start").alias("day"),
    )


def checks(
    page_log: DataFrame, session_log: DataFrame, late_log: DataFrame, pages: DataFrame
) -> DataFrame:
    """Return a row for each check that holds; whoever reads one that does not hold gets an error.

    So whatever writes these rows fails, loudly, and says which check it was.
    """
    is_sane = (
        "window_end = window_start + interval 10 seconds and clicks >= 1 and users >= 1 "
        "and purchases between 0 and clicks and cents >= 0 and timing = 'on-time'"
    )
    known = pages.select("page")
    clicked = page_log.select("page").union(late_log.select("page"))
    found = [
        ("there are windows", _count(page_log).selectExpr("if(broken = 0, 1, 0) AS broken")),
        ("no window comes twice", _count(_twice(page_log, "window_start", "page", "firing"))),
        ("no session comes twice", _count(_twice(session_log, "window_start", "user", "firing"))),
        ("windows make sense", _count(page_log.where(f"not ({is_sane})"))),
        ("pages are known", _count(clicked.join(known, "page", "left_anti"))),
        ("pages are told once", _count(_twice(pages, "page"))),
        ("sessions have the clicks of the windows", _difference(page_log, session_log)),
    ]
    return reduce(DataFrame.union, [_checked(name, rows) for name, rows in found])


def _checked(name: str, found: DataFrame) -> DataFrame:
    """Return the row of a check, given the number of rows for which it does not hold."""
    # By its name: to ask a frame for its columns is not allowed in a declarative pipeline.
    broken = f.col("broken")
    message = f.format_string(f"check failed: {name}: %d do not", broken)
    verdict = f.when(broken == 0, "ok").otherwise(f.raise_error(message))
    return found.select(f.lit(name).alias("check"), verdict.alias("verdict"))


def _count(rows: DataFrame) -> DataFrame:
    return rows.agg(f.count("*").alias("broken"))


def _twice(rows: DataFrame, *key: str) -> DataFrame:
    return rows.groupBy(*key).count().where("count > 1")


def _difference(page_log: DataFrame, session_log: DataFrame) -> DataFrame:
    """Return by how many clicks, purchases and cents two logs differ."""
    sums = [f.sum(name).alias(name) for name in ("clicks", "purchases", "cents")]
    pages, sessions = page_log.agg(*sums), session_log.agg(*sums)
    apart = "abs(p.clicks - s.clicks) + abs(p.purchases - s.purchases) + abs(p.cents - s.cents)"
    return pages.alias("p").crossJoin(sessions.alias("s")).selectExpr(f"{apart} as broken")
