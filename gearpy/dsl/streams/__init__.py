"""The streams of the language, and the steps that users write behind them.

- `stream`: streams: all that a user can write of ungrouped records. Gearpump: `Stream`.
- `records`: steps of a stream over single records, or batches of them, that keep nothing.
- `routes`: steps of a stream that lead records together, apart, to a task of the user, or to a
  sink.
- `keyed`: streams grouped by key: running aggregates, state, and the way to windows and joins.
- `grouped`: records that a step takes together: by key, by window, or both.
- `windowed`: streams in windows: records are aggregated by window, and perhaps by key.
- `joined`: joins of a stream that is grouped by key with another one.
- `asynchronous`: steps of a stream whose functions are coroutines.
- `table_join`: joins of a stream with a table: all rows of a source that ends, read before the
  first record.
- `previews`: looks at the records of a stream: the program up to it runs in this process.
- `program`: the steps of an application, as its streams add them.
"""
