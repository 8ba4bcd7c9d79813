"""Windows: which records belong together, what they come to, and when that is put out.

- `windows`: windows: which records belong together, and when what they come to is put out.
- `trigger`: when what has come to a window is put out: early, when it closes, late.
- `watermark`: event-time progress of one task: from its input links, or from the records of a
  source.
- `event_order`: records that wait until event time has passed their place in it, and then come by
  that.
- `panes`: what a key has in one window, and what becomes of it: it grows, merges and fires.
- `aligned`: panes of windows that are the same for all keys: tumbling, sliding, and the one of all
  time.
- `sessions`: panes of session windows, which each key has of its own, and which grow together.
- `counted`: panes of count windows: so many records of a key, in the order in which they come.
- `timed`: panes of windows that close as time passes: their clock, and what waits for it.
- `sliding`: sliding windows put together of pieces: a record is folded once, whatever holds its
  time.
- `aggregates`: what many records come to: count, sum, min, max, mean and so on; users know it as
  ``gp.agg``.
"""
