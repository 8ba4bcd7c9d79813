"""Delta tables in which readers see each record once.

- `table`: a Delta table in which readers see each record once.
- `writer`: the writing half of `delta_table`: files first, then one transaction for each epoch.
- `log`: a Delta table as its log tells it: what it has noted, and one transaction after the other.
- `files`: data files of a Delta table: where they are, and what the log tells readers of them.
"""
