"""Where keyed state is: in memory, or on disk; and what has changed of it.

- `store`: what a state store is: the keyed state of one task, between records and across restarts.
- `heap`: state in memory.
- `disk`: state on disk, for more than fits memory.
- `disk_cells`: a database file of cells, for one task: LMDB, opened when there is something for it.
- `cells`: the bytes of keyed state: names of tables, cells in them, and the sections of a
  checkpoint.
- `delta`: what has changed in a store between two epochs, and how it becomes sections.
- `queues`: cells in the order of a time, in memory.
- `many`: many keys and values at once, as cells and as sections of a checkpoint.
"""
