"""Plain building blocks that every other core uses.

- `agenda`: two sets of times that cost little for each change: due times, and the oldest time.
- `lazy_min`: the minimum of many values that mostly grow, at little cost for each change.
- `graph`: order, levels and mistakes of a directed graph: plain functions over vertices and edges.
- `stable_hash`: the hash that routes keys: alike in every process, run and version of Python.
- `one_key`: one key for all that is stored as one, such as NaN, and times in a repeated hour.
- `times`: durations and event times as people write them, turned into whole milliseconds.
- `fields`: fields of records: an item of a mapping, an attribute of anything else.
- `restart`: restart budgets: how often, and after which pause, a failed thing may start again.
- `pauses`: the pause before a thing that has failed is tried again.
- `attempts`: calls of slow functions: how many at once, how long, and how many retries.
- `versions`: versions of what masters say and store, while an upgrade goes from one to the next.
- `key_copy`: a copy of what keys have at one moment, made in steps while they change.
- `in_pieces`: long work in pieces, between which others may go on: freeing much, and sorting it.
- `copies`: copies of records: only the parts that somebody else could change are copied.
"""
