"""Files that are still there after a crash: the master's log, and snapshots of tasks.

- `log`: an append-only log whose records are durable when `append` returns. Start here.
- `replica_store`: what one of several masters must remember, in such a log.
- `framing`: its files as bytes, and where they are torn or damaged.
- `folder`: the operations that all stores of files use: on a disk, at a URL, in memory.
- `checkpoints`: files of checkpoints in such a folder.
- `snapshot_files`: the state of tasks at the end of an epoch, as chains of such files; their bytes
  are in `snapshot_format`.
- `savepoints`: epochs under names, as such files.
- `coordinator_log`: the memory that app masters of one application share, as such files.
- `held`: the checkpoints of one application, in a store that may be away for a while.
- `changelog`: keyed state once more, by task, to rebuild it from when such files get lost.
- `artifacts`: programs that were uploaded, each under the SHA-256 of its bytes.
- `archives`: unpacks them and trusts nothing in them; `packing`: packs folders, alike each time.

Layers above may import this; nothing here knows the meaning of the bytes.
"""
