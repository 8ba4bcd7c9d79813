"""Facts about a batch of windows for the user's function, and a write that may be repeated."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkBatch:
    """A batch of finished windows: whenever it comes, it has the same number, key and rows.

    Attributes:
        id: its number: 1, 2, 3 ... for each sink, without a gap.
        key: names the batch among the batches of all sinks; a write that may be repeated uses it.
            Made of letters, digits and ``_.-``.
        app: name of the application.
        sink: name of the sink.
        rows: how many there are.
        windows: how many results of windows there are, by start, end and firing; 0 if the
            records are of no window.
        window_start: the oldest start of a window; None if none has one.
        window_end: the newest end of a window; None if none has one.
        attempt: 1 if the function cannot have been called with this batch before.
    """

    id: int
    key: str
    app: str
    sink: str
    rows: int
    windows: int = 0
    window_start: datetime | None = None
    window_end: datetime | None = None
    attempt: int = 1


def overwrite(
    df: DataFrame, path: str, batch: SparkBatch, *, file_format: str = "parquet", **options: Any
) -> None:
    """Write a batch into a folder of its own below a table's: exactly once, however often called.

    The folder is ``path/gearpy_batch=KEY``, so the table has a partition column ``gearpy_batch``
    more when Spark reads ``path``. A batch that comes again replaces its
    earlier files. No other batch is touched, nor those of other sinks.

    Args:
        df: the rows to write, often the frame that the function was called with.
        path: of the table; a path or URL that Spark knows.
        batch: which one it is.
        file_format: one that Spark writes.
        options: of its writer.
    """
    writer = df.write.format(file_format).mode("overwrite").options(**options)
    writer.save(f"{path.rstrip('/')}/gearpy_batch={batch.key}")
