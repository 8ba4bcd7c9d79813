"""Windows: records that belong together, their aggregates, and when those are put out.

- `windows`: windows: which records belong together, and when their panes fire.
- `trigger`: triggers: when a pane fires: early, when its window closes, or late.
- `watermark`: event-time progress of one task: from its input links, or from the records of a
  source.
- `event_order`: records that wait until event time has passed their place in it, and then come by
  that.
- `panes`: the pane of a key in a window: it grows, merges and fires.
- `aligned`: panes of windows that are the same for all keys: tumbling, sliding, and the one of all
  time.
- `sessions`: panes of session windows, which each key has of its own, and which grow together.
- `counted`: panes of count windows: so many records of a key, in the order in which they come.
- `sliding`: sliding windows made of pieces: a record is folded once.
- `aggregates`: aggregates of many records: count, sum, min, max and so on; users know it as
  ``gp.agg``.
"""
