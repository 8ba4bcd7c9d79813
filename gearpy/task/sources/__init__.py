"""The task that reads a source: its partitions, late records, the end of an epoch.

- `task`: the task that reads a source, and runs the chain of stages behind it.
- `partition`: one partition of a source as its task reads it: late records, the cut by event time,
  silence, small batches.
- `probed`: how much is read while an input is looked for that ends processes.
- `place_text`: places in the input, as people read them.
- `share`: names of partitions, and which task reads one that was found while it runs.
"""
