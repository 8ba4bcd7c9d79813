"""A Spark job outside of gearpy, which streams a window log into a table of its own.

``python -m tests.bench.spark_reader FOLDER``: goes on until the file ``finish`` is
in the folder; then reads what is left, and writes down what Spark sees in each table. Whoever
starts it starts it again when it, or its JVM, was killed.
"""

import sys
import time
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.windowlog.log import WindowLog
from tests.bench.spark_program import HIVE, KEYED, LOG, NAIVE, OUTSIDE, small_session

#: File that ends it; folder of what Spark sees in the end; Spark's notes of how far it has come.
FINISH: Final = "finish"
SEEN: Final = "seen"
PROGRESS: Final = "progress"

_POLL_S: Final = 0.05


def main(args: list[str]) -> None:
    folder = Path(args[0])
    spark = small_session("outside")
    log = WindowLog(folder / LOG)
    while not log.exists:
        time.sleep(_POLL_S)
    query = _started(spark, folder, processingTime="0 seconds")
    while not (folder / FINISH).exists():
        query.awaitTermination(_POLL_S)
    query.stop()
    _started(spark, folder, availableNow=True).awaitTermination()
    _write_down(spark, folder)


def _started(spark: Any, folder: Path, **trigger: Any) -> Any:
    rows = spark.readStream.format("gearpy").option("reader", OUTSIDE).load(str(folder / LOG))
    stream = rows.writeStream.format("parquet").trigger(**trigger)
    stream = stream.option("checkpointLocation", str(folder / PROGRESS))
    return stream.start(str(folder / OUTSIDE))


def _write_down(spark: Any, folder: Path) -> None:
    """Write what each table has as Spark sees it; the last file says that all are there."""
    seen = folder / SEEN
    seen.mkdir(exist_ok=True)
    frames = {name: spark.read.parquet(str(folder / name)) for name in (OUTSIDE, KEYED, HIVE)}
    if (folder / NAIVE).exists():
        frames[NAIVE] = spark.read.parquet(str(folder / NAIVE))
    frames[LOG] = spark.read.format("gearpy").load(str(folder / LOG))
    for name, frame in frames.items():
        pq.write_table(frame.toArrow(), seen / f"{name}.parquet")
    (seen / FINISH).touch()


if __name__ == "__main__":
    main(sys.argv[1:])
