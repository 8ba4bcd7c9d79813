"""What runs one task: its inputs and outputs, time, epochs, state.

- `runner`: one task at work: a plain object without thread, socket or clock of its own.
- `actor`: a task as an actor: its mailbox, its thread, its way to the network, around a
  `TaskRunner`.
- `inlet`: the input side of a task: what came in and is not processed yet.
- `outlet`: the output side of a task: partitioning, credit, numbers, watermark and epoch per link.
- `driving`: gives a task its records: one by one or as batches, past bad ones if that is the
  policy.
- `epoch_ends`: the ends of a task's epochs: when it was asked for one, and what waits for the next
  to begin.
- `wiring`: from an application and a task id to the runner of that task.
- `turns`: what the tasks of an executor are doing at this moment, for turns that do not end.
- `info`: who a task is: what its runner is told, and what it tells others.
- `promises`: what a task promises downstream: as much as was promised to it, less what it holds up.
"""
