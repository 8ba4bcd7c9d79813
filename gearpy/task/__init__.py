"""The task runtime: what users write and what runs it, without actors' or sockets' details.

What users write:
- `api`: tasks, sources and sinks to subclass, and the context they work with.
- `application`: the low-level graph of processors.

What runs it:
- `runner`: one task at work; `inlet` is its input side, `outlet` its output side.
- `driving`: gives the user's task its records. `output`: checks what it puts out.
- `timers`: what it has asked to be called for. `counters`: what it has handled.
- `snapshots`: what it is at the end of an epoch, as bytes.
- `rejects`: records that it could not take.
- `wiring`: makes the runner of a task of an application.
- `actor`: puts a runner into a mailbox.
- `failure`: from an exception in user code to what people are told.

What the stream language lowers to:
- `operators`: chains of stages; sources and sinks.
- `fused`: map, filter and flat_map as one loop.
- `aggregate`: folds by key, running or per window.

Start with `api`, then `runner`. May be imported by connectors, dsl, cluster and above.
"""
