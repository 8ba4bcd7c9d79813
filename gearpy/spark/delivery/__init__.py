"""Finished windows to a function over DataFrames, each batch once.

- `sink`: the sink that keeps finished windows in a log and calls a function with them on Spark.
- `thread`: the thread that calls a function with one batch of finished windows after the other.
- `backlog`: what waits to be handed over: the one thing that the task and the hand-over both touch.
- `batch`: what a function is told of the windows that it gets, and a write that may be repeated.
- `log`: what is written down of batches that are handed over: which were begun, and which were
  taken.
- `frames`: a batch of a window log as a frame of Spark, and what is known of its windows.
- `listener`: what Spark tells of its queries, noted beside the log that they read.
"""
