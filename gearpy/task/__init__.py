"""The task runtime: users' tasks and the code that runs them, without details of actors or sockets.

- `api`: the classes that users write and get: tasks, sources, sinks, the graph.
- `runtime`: runs one task: its inputs and outputs, time, epochs, state.
- `sources`: reads a source: its partitions, late records, the end of an epoch.
- `chain`: a chain of stages in one task: records run through it without a queue between.
- `stages`: stages of single steps: stateless, with state, asynchronous, over columns, and the sink
  at the end.
- `aggregates`: stages that fold records by key: running, or per window; rows and columns.
- `joins`: stages that join two streams, or a stream with a table.
- `time`: event time of one task: waiting for it, late records, promises, timers.

Start with `api.interfaces`, then `runtime.runner`. May be imported by connectors, dsl, cluster and
above.
"""
