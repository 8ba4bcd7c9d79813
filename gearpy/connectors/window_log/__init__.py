"""Window logs as a sink and as a source.

- `sink`: the sink for finished windows: a log that Spark and others read, each window exactly once.
- `source`: a window log as a source: what Spark, or another application, has handed over in
  batches.
"""
