"""Finished results on their way out: window logs, batches, commits of tables.

- `window_log`: names of the files of a window log: they tell its batches, and which files to read.
- `lanes`: lanes of a window log read as one stream: their order, and the watermark they promise.
- `handoff`: the next batch of finished windows to hand over, and the notes written around the call.
- `ledger`: who owns what a task of a sink writes, and which epoch of it is committed.
- `table_commits`: exactly once into a table that changes by transactions, such as one of Delta
  Lake.
- `transactions`: exactly once into a store whose transactions are fenced by name, such as Kafka.
"""
