"""The durable hand-off of finished windows: a folder, here or at a URL, that several may read.

- `log`: what is in a log, and its batches as tables. Start here.
- `consumers`: who reads a log, and whether they keep up.
- `schema`: the schema of a log, as it stands in its file.
- `lane`: writes what one task writes, in two steps; `replays` are the rows that were shown before
  and come again, `recalls` keeps what they were.
- `compaction`: makes few files of many. `verify` reads all.
- `bodies`: files of a log: Parquet or Arrow, and what they tell of their batches.

Which files to read is decided by `core.handover.window_log`. May be imported by task and above, and
by programs that are no application of gearpy: it starts nothing, and loads quickly.
"""
