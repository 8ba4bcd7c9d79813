"""The source and sink ``format("gearpy")`` of Spark, which reads and writes window logs.

- `format`: `DefaultSource`, which Spark asks for readers and writers.
- `options`: the values of ``.option(...)``.
- `planning`: positions, and the pieces between two of them; knows no Spark.
- `reading`: the parts that all readers share, and reading once.
- `stream`: reading on and on.
- `writing`: how tasks write, and how the driver shows what they wrote.
- `committing`: from files of tasks to a batch of the log, once; knows no Spark.
"""
