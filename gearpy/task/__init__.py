"""The task runtime: what users write and what runs it, without actors' or sockets' details.

What users write:
- `api`: tasks, sources and sinks to subclass, and the context they work with.
- `application`: the low-level graph of processors.
- `persistent`: a task whose state lets no record wait.

What runs it:
- `runner`: one task at work; `inlet` is its input side, `outlet` its output side.
- `driving`: gives the user's task its records. `output`: checks what it puts out.
- `timers`: what it has asked to be called for. `counters`: what it has handled.
- `snapshots`: what it is at the end of an epoch; `epoch_ends`: when that was asked for.
- `keyed`: its keyed state and timers.
- `guarantees`: what is promised from sources to sinks.
- `rejects`: records that it could not take.
- `wiring`: makes the runner of a task of an application.
- `actor`: puts a runner into a mailbox.
- `failure`: from an exception in user code to what people are told.

What the stream language lowers to:
- `operators`: chains of stages. `source_task`: reads a source; `source_partition`: one of its
  partitions. `sink_stage`: the end of a chain.
- `late`: late records. `sides`: side outputs. `stateful`: a function with keyed state.
- `fused`: map, filter and flat_map as one loop.
- `aggregate`: folds by key, running or per window. `changes`: what they have changed.

Start with `api`, then `runner`. May be imported by connectors, dsl, cluster and above.
"""
