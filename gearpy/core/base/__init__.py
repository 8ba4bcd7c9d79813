"""Plain building blocks that every other core uses.

- `agenda`: two sets of times that cost little for each change: what is due, and which is the
  oldest.
- `lazy_min`: the minimum of many values that mostly grow, at little cost for each change.
- `graph`: order, levels and mistakes of a directed graph: plain functions over vertices and edges.
- `sizing`: how much memory records take, roughly, without touching all of them.
- `stable_hash`: the hash that routes keys: alike in every process, run and version of Python.
- `times`: durations and event times as people write them, turned into whole milliseconds.
- `fields`: fields of records: an item of a mapping, an attribute of anything else.
- `restart`: how often, and after what pause, something that failed may start again.
- `attempts`: calls of something slow: how many at once, how long, and how often again.
- `copies`: records of one's own: copies of what somebody else could change, and only of that.
"""
