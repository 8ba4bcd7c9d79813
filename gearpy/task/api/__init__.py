"""The classes that users write and get: tasks, sources, sinks, the graph.

- `interfaces`: what users subclass: tasks, sources and sinks.
- `application`: the low-level graph: processors, edges, and the application made of them.
- `persistent`: a task whose state survives restarts without a record ever waiting for the end of an
  epoch.
- `window_result`: what windows put out.
- `join_result`: what joins yield.
- `sides`: side outputs: streams of a processor beside its main one, told apart by a tag.
- `failure`: from an exception in user code to an `OperatorError` that names operator, line and
  record.
- `rejects`: records that user code could not take, and the policies for them.
- `output`: what user code puts out, checked and as columns.
- `counters`: what a task counts of itself.
- `keyed`: the keyed state of one task as its runner sees it: made when first used, saved, restored.
- `snapshots`: what a task is at the end of an epoch, handed over; and what it goes on from after a
  restart.
"""
