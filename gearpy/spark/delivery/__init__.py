"""Finished windows to a function over DataFrames, each batch once.

- `sink`: the sink that keeps finished windows in a log and calls a function with them on Spark.
- `thread`: the thread that calls a function with one batch of finished windows after the other.
- `backlog`: the backlog: how much waits to be handed over; the task and the hand-over both use it.
- `batch`: facts about a batch of windows for the user's function, and a write that may be repeated.
- `log`: the log of batches that are handed over: which were begun, and which were taken.
- `frames`: a batch of a window log as a frame of Spark, and the facts about its windows.
- `listener`: Spark's progress reports of queries, noted beside the log that they read.
"""

from gearpy.distribution import require

require("Spark", "pyspark")
