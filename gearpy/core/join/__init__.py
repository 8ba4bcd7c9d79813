"""Joins of two streams by key, one module for each kind.

- `sides`: joins of two streams by key: the common part of the cores of all kinds.
- `asof`: joins of each record with the nearest one of another stream: as-of joins.
- `interval`: joins of records whose event times are near each other, for every record anew.
- `keys`: keys of the two sides of a join: whether one side's can ever equal the other's.
- `latest`: joins of a stream with a table: the latest value of each key.
- `changes`: state of joins, and its changes since the end of the last epoch.
- `session`: joins over sessions: records of a key on both sides, until there was none for a while.
- `table`: joins with a table that is complete: which of its rows belong to a key, at an event time.
- `window`: joins over windows that are the same for all keys: tumbling, sliding, the one over
  everything.
"""
