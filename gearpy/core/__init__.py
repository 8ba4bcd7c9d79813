"""The deciding half of gearpy: plain classes without thread, socket, clock or logging.

Each is given events, ``now_ms`` and an ``rng``, and returns what should happen; actors and
transports are thin shells around them. Any layer above may import this.

- `base`: plain building blocks that every other core uses.
- `window`: windows: records that belong together, their aggregates, and when those are put out.
- `join`: joins of two streams by key, one module for each kind.
- `flow`: links and the tasks between them: credit, loss, alignment of epochs, and partitioning.
- `dag`: the graph of an application, and all that is derived from it.
- `epoch`: epochs of one attempt: where they end, when they are complete, which are kept.
- `app`: the decisions of an app master: start, restart, epochs, clock, end.
- `scaling`: how many tasks each step should have, by how busy they are.
- `coordinator`: the coordinator log of an application: the memory that its app masters share.
- `master`: the decisions of a master: applications, slots, and the state that its log keeps.
- `consensus`: several masters that agree on one log, so that what one has promised all will have.
- `handover`: finished results on their way out: window logs, batches, commits of tables.
- `gearpump`: state of one task after Gearpump: values that add up, apart by epoch.

Start with `dag.graph`, then `flow.link`, then `app.clock`.
"""
