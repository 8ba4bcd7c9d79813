"""Stages of single steps: stateless, with state, asynchronous, over columns, and the last, sinks.

- `stateless`: stages that keep nothing: branches, and lines in the log.
- `stateful`: stages that keep something: for each key a function's value, which keys came, or how
  many records came.
- `sink`: the end of a chain: records go to a sink's writer.
- `asynchronous`: the stage that calls a user's coroutine function with each record, many at a
  time; and the function that looks up each record's key.
- `guarantees`: the promise of an application from each source to each sink, and the weakest link of
  each path.
- `plan`: the physical plan of an application as data, for people and programs that look at it.
- `tables`: stages at the edge of rows and columns, and the user's own functions over columns.
"""
