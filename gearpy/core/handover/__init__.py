"""Finished results on their way out: window logs, batches, commits of tables.

- `window_log`: what the names of the files of a window log tell: which batches there are, and which
  to read.
- `lane_owner`: who may write a lane of a window log: one start of one task of one run at a time.
- `lanes`: several lanes of a window log read as one stream: whose turn it is, and what can be
  promised.
- `handoff`: which batch of finished windows is handed over next, and what is written down around
  that.
- `table_commits`: exactly once into a table that changes by transactions, such as one of Delta
  Lake.
"""
