"""The operators of the stream language: one class for each, which says all about it.

- `operator`: the base of all operators, the answers that several share, and the source.
- `records`: operators over single records or batches.
- `keyed`: operators that keep something for each key.
- `groups`: operators that fold records into values, running or in windows.
- `joins`: operators that join two streams, or a stream and a table.
- `routes`: operators that lead records together, apart, to a user's task, or to a sink.
- `keys`: the key of a stream: a function of the record, or the names of its fields.
- `signature`: texts of keys, windows and aggregates, by which kept state is recognised.
- `names`: names of steps, and mistakes in their arguments.
- `borrowed`: names of steps in other libraries, with what stands for them here.
"""
