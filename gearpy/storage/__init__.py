"""Files that are still there after a crash: the master's log, and snapshots of tasks.

- `folder`: the operations that all stores of files use: on a disk, at a URL, in memory.

Layers above may import this; nothing here knows the meaning of the bytes.
"""
