"""What is still there after a crash: the master's log, and snapshots of tasks.

- `log`: an append-only log whose records are durable when `append` returns. Start here.
- `framing`: its files as bytes, and what of them is torn or damaged.
- `checkpoints`: what tasks were at the end of an epoch, each in a file of its own.
- `disk`: the steps that both are made of, on a real folder or on one that loses power on demand.
- `artifacts`: programs that were uploaded, each under the SHA-256 of its bytes.
- `archives`: unpacks them and trusts nothing in them; `packing`: packs folders, alike each time.

Layers above may import this; nothing here knows what the bytes mean.
"""

__all__: list[str] = []
