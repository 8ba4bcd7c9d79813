"""Runs one task: its inputs and outputs, time, epochs, state.

- `runner`: one task at work: a plain object without thread, socket or clock of its own.
- `actor`: a task as an actor: its mailbox, its thread, its way to the network, around a
  `TaskRunner`.
- `inlet`: the input side of a task: messages that came in and are not processed yet.
- `outlet`: the output side of a task: partitioning, credit, numbers, watermark and epoch per link;
  and the promises that the task passes on.
- `feed`: feeds a task with records and event time, with its key timers between them, past bad
  records if that is the policy; checks its answers.
- `epoch_ends`: the ends of a task's epochs: when one was asked for, and output that waits for the
  next.
- `metering`: the measurements of a task: its turns, and probes that tell how old records are.
- `info`: what a task is: its id, its operator, its links.
- `wiring`: from an application and a task id to the runner of that task.
- `turns`: the turns of an executor's tasks at this moment, for turns that do not end.
- `recording`: what a task takes, with a `digest` of what it puts out.
- `rerun`: runs one task again, over what was recorded or over its source.
"""
