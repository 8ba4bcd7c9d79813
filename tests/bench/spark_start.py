"""How long a Spark session takes from the start of the process: ``... spark_start SINCE``.

Says as JSON how many seconds until the session is there, until the first job is done, and until the
first rows are in a Parquet file.
"""

import json
import sys
import tempfile
import time

from gearpy.spark import session, stop


def main(args: list[str]) -> None:
    """Start, measure, and end; ``args``: when the process was started."""
    began_s = float(args[0])
    spark = session("start", master="local[2]")
    took = {"session": time.time() - began_s}
    spark.range(1000).groupBy().sum("id").collect()
    took["job"] = time.time() - began_s
    with tempfile.TemporaryDirectory(prefix="gearpy-start-") as folder:
        spark.range(1000).write.parquet(f"{folder}/table")
        took["parquet"] = time.time() - began_s
    stop()
    sys.stdout.write(json.dumps(took) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
