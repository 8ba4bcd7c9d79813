"""The task runtime: what users write and what runs it, without actors' or sockets' details.

What users write:
- `api`: tasks, sources and sinks to subclass, and the context they work with.
- `application`: the low-level graph of processors.
- `persistent`: a task whose state lets no record wait.

What runs it:
- `runner`: one task at work; `inlet` is its input side, `outlet` its output side. `info`: who it
  is. `promises`: how far event time is behind it. `wakes`: when it is called without records.
- `driving`: gives the user's task its records. `output`: checks what it puts out.
- `timers`: what it has asked to be called for. `counters`: what it has handled.
- `snapshots`: what it is at the end of an epoch; `epoch_ends`: when that was asked for.
- `keyed`: its keyed state and timers.
- `guarantees`: what is promised from sources to sinks.
- `rejects`: records that it could not take.
- `wiring`: makes the runner of a task of an application.
- `actor`: puts a runner into a mailbox; `turns`: what it is doing, when that takes long.
- `failure`: from an exception in user code to what people are told.

What the stream language lowers to:
- `operators`: chains of stages. `source_task`: reads a source; `source_partition`: one of its
  partitions. `sink_stage`: the end of a chain.
- `late`: late records; `table_late`: those of a table. `sides`: side outputs.
- `event_gate`: lets records wait until event time has passed them.
- `fused`: map, filter and flat_map as one loop; `generated` makes functions of such loops.
- `stateless`: branches and log lines. `stateful`: a function with keyed state. `distinct`: the
  first record of each key.
- `aggregate`: folds by key, running or per window, and the quick way for windows that fire once.
  `row_aggregate`: aggregates over rows, `row_count`: their number alone; `top_n`: the largest
  records. `changes`: what changed.
- `window_stage`: windows of any kind with any trigger; `pane_store`: their state; `window_result`:
  what they put out.
- `join_stage`: joins; `join_result`: what they put out. `table_join`: joins with a table that is
  complete first; `side_table`: reads it, and has it for all tasks of the process.
- `async_stage`: coroutines; `lookup`: those that find something for a key.
- `step_state`: where the steps of a chain keep their state.

Records as columns:
- `row_schema`: what is in the rows of a stream, and the way to columns and back; `column_types`:
  which column keeps which values.
- `table_stages`: the edge of rows and columns, and functions over batches.
- `column_aggregate`: aggregates over windows, computed by Arrow; `partials`: what the rows of one
  table come to.

Start with `api`, then `runner`. May be imported by connectors, dsl, cluster and above.
"""
