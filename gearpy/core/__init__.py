"""The deciding half of gearpy: plain classes without thread, socket, clock or logging.

Each is given events, ``now_ms`` and an ``rng``, and returns what should happen; actors and
transports are thin shells around them. Any layer above may import this.

- `base`: plain building blocks that every other core uses.
- `window`: windows: which records belong together, what they come to, and when that is put out.
- `join`: joins of two streams by key, one module for each kind.
- `flow`: one link, and one task between its links: credit, loss, epochs, and who gets which record.
- `dag`: the graph of an application, and what follows from it.
- `epoch`: epochs of one attempt: where they end, when they are complete, which are kept.
- `app`: what an app master decides: start, restart, epochs, clock, end.
- `coordinator`: the coordinator log of an application: what its app masters must know of each
  other.
- `master`: what a master decides: applications, slots, and what must not be forgotten.
- `handover`: finished results on their way out: window logs, batches, commits of tables.
- `gearpump`: state of one task after Gearpump: values that add up, apart by epoch.

Start with `dag.graph`, then `flow.link`, then `app.clock`.
"""
