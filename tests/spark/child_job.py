"""A job for ``spark-submit``: copies a window log, and says where, in the file that is named."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

import gearpy.spark


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell how many rows a task has read, in which process and folder."""
    rows = sum(batch.num_rows for batch in batches)
    columns = {"rows": [rows], "pid": [os.getpid()], "place": [str(Path.cwd())]}
    yield pa.RecordBatch.from_pydict(columns)


def main(output: Path, log: str, copy: str) -> None:
    """Read a log by tasks on all executors there are; each has a working folder of its own."""
    spark = gearpy.spark.session("job", conf={"spark.sql.shuffle.partitions": "3"})
    windows = spark.read.format("gearpy").option("numPartitions", 4).load(log)
    parts = windows.mapInArrow(where, "rows long, pid long, place string").collect()
    windows.write.format("gearpy").mode("append").save(copy)
    said = {
        "master": spark.conf.get("spark.master"),
        "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
        "driver": os.getpid(),
        "parts": [part.asDict() for part in parts],
    }
    output.write_text(json.dumps(said))
    gearpy.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
