"""Stores of keyed state, in memory or on disk, and the changes of an epoch.

- `store`: protocol of a state store: the keyed state of one task, between records and across
  restarts.
- `heap`: state in memory, with its queue of cells in the order of a time.
- `disk`: state on disk, for more than fits memory.
- `disk_cells`: a database file of cells, for one task: LMDB, opened when there is something for it.
- `cells`: the bytes of keyed state: names of tables, cells in them, and the sections of a
  checkpoint.
- `delta`: changes of a store between two epochs, as sections of a checkpoint.
- `sizes`: sizes of what is kept in memory, estimated.
- `many`: many keys and values at once, as cells and as sections of a checkpoint.
"""
