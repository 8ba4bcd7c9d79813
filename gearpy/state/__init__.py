"""Keyed state of tasks: what they keep for each key between records, and across restarts.

- `keyed`: `KeyedState`, which tasks get as ``context.state``. Start here.
- `values`, `entries`: the states that are declared there; `handle` is what they have in common.
- `bulk`: pairs that a part of a task keeps by itself, and tells at the end of an epoch.
- `timers`: timers of keys, as state.
- `expiry`: time to live.
- `coders`: how values become bytes.
- `open`: makes the keyed state of a task.

Below them:

- `api`: what a state store is, and what it hands over at the end of an epoch.
- `keys`: keys as bytes, equal ones as equal bytes.
- `cells`: the bytes of cells and checkpoints.
- `declared`: which states there are, and that a checkpoint agrees.
- `place`: the current key and namespace, and clocks.
- `heap`, `queues`: state in memory.
- `disk`, `disk_cells`: state in a file.
- `delta`: what has changed, as sections of a checkpoint; `many`: the same for many pairs at once.

May be imported by task and above.
"""
