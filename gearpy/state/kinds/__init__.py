"""The states that a task can keep, and how their values become bytes.

- `values`: states with one value for each key: values, and what records are folded into.
- `entries`: states with entries for each key: lists, sets and maps. Each entry expires by itself.
- `handle`: what all states have: where they are kept, and values as they are stored.
- `place`: what the states of a task share: the key and namespace they are at, clocks, the store.
- `timers`: timers of keys, on event time and on wall time.
- `declared`: the tags of a task's state: what is declared, what a checkpoint holds, and that they
  agree.
- `expiry`: state that expires: when, and how its memory is freed.
- `bulk`: pairs that a part of a task keeps by itself, in dicts of its own, stored as keyed state
  is.
- `steps`: copies of such pairs that are made in steps, while the task goes on.
"""
