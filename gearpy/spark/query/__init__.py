"""A program as a query of Spark.

- `plan`: a program as one line from a source to a sink, which says nothing of gearpy's tasks.
- `frame`: a linear plan as a Spark query: SQL over columns where that says the same, Python
  elsewhere.
- `groups`: aggregates of windows in two halves, with Spark's exchange between them.
- `sql`: windows and aggregates over columns as Spark's own expressions.
- `table`: the Spark query of a plan as a table with the columns of a window log.
- `worker`: functions for ``mapInArrow``, by which Spark's Python workers run a plan.
- `recorded`: records of a source, kept in Parquet files: every reader gets the same ones.
- `difference`: two answers to one question, compared as records in no order.
- `shipping`: a program's own functions and classes, on their way to Spark's Python workers.
"""
