"""The classes that users write and get: tasks, sources, sinks, the graph.

- `interfaces`: the base classes of users' tasks, sources and sinks.
- `application`: the low-level graph: processors, edges, and the application made of them.
- `actor_app`: applications that are not streams: an app master of one's own, and its executors.
- `persistent`: a task whose state survives restarts without a record ever waiting for the end of an
  epoch.
- `window_result`: the results of windows and joins.
- `sides`: side outputs: streams of a processor beside its main one, told apart by a tag.
- `failure`: from an exception in user code to an `OperatorError` that names operator, line and
  record.
- `rejects`: records that user code could not take, and the policies for them.
- `counters`: the counters of a task.
- `keyed`: the keyed state of one task as its runner sees it: made when first used, saved, restored.
- `snapshots`: the state of a task at the end of an epoch, from which it goes on after a restart.
"""
