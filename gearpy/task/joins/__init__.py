"""Stages that join two streams, or a stream with a table.

- `streams`: the stage that joins two streams by key, and the specification of a join.
- `table`: the stage that joins a stream with a table that is complete.
- `side_table`: a table that a step looks rows up in: read whole, once in each process, shared by
  all its tasks.
"""
