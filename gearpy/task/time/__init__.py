"""Event time of one task: waiting for it, late records, promises, timers.

- `late`: late records of a source: older than an earlier promise of their own partition.
- `table_late`: late records and cuts by event time in the rows of a table, all rows at once.
- `wakes`: when a task is called because wall time has passed, or something outside of it has
  happened.
- `timers`: the timers of one task.
"""
