"""Event time of one task: waiting for it, late records, promises, timers.

- `late`: late records of a source: older than an earlier promise of their own partition; one by
  one, and in the rows of a table all at once.
- `timers`: the timers of one task, and when it is called since wall time has passed, or something
  outside of it has happened.
"""
