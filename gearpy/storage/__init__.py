"""What is still there after a crash: the master's log, and snapshots of tasks.

- `log`: an append-only log whose records are durable when `append` returns. Start here.
- `framing`: its files as bytes, and what of them is torn or damaged.
- `checkpoints`: files of checkpoints in a folder or in memory; `url_checkpoints`: elsewhere;
  `checkpoint_files`: what these have in common.
- `coordinator_log`: what the app masters of an application must know of each other, as such files.
- `snapshot_files`: what tasks were at the end of an epoch, as chains of such files; their bytes are
  in `snapshot_format`.
- `coordinator_log`: what app masters must know of each other, over a checkpoint store.
- `changelog`: keyed state once more, by task, to rebuild it from when such files get lost.
- `disk`: the steps that both are made of, on a real folder or on one that loses power on demand.
- `artifacts`: programs that were uploaded, each under the SHA-256 of its bytes.
- `archives`: unpacks them and trusts nothing in them; `packing`: packs folders, alike each time.

Layers above may import this; nothing here knows what the bytes mean.
"""

__all__: list[str] = []
