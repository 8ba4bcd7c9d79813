"""Event time of one task: what waits for it, what is late, what is promised, what is due.

- `late`: late records of a source: older than what their own partition had promised before them.
- `table_late`: what late records and cuts by event time mean for the rows of a table, all rows at
  once.
- `wakes`: when a task is called because wall time has passed, or something outside of it has
  happened.
- `timers`: the timers of one task.
"""
