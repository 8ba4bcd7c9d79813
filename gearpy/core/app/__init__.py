"""The decisions of an app master: start, restart, epochs, clock, end.

- `application`: the decisions of an app master: when tasks start, what restarts after a failure,
  when it ends.
- `decisions`: the commands of an `ApplicationCore` to its app master, and their limits.
- `deployment`: how the tasks of an application are started and stopped, step by step.
- `region`: one region at work: its attempts, one after the other, and the epochs they store.
- `region_set`: the regions of one application: which one a task or an attempt belongs to, and all
  together.
- `region_epochs`: the epochs of one region, attempt after attempt: begun, stored, committed, gone
  back to.
- `executors`: the executors of one application: those it wants, those it has, those it waits for.
- `incidents`: what goes wrong in an application: every failure is counted once, however it shows.
- `clock`: the application clock: how far all tasks are, what stalls it and what holds it.
- `consumers`: programs outside of the application that read its sinks, and whether they are stuck.
- `drain`: how long a good end may take that somebody has asked for.
- `turn_limit`: turns of tasks that last: which to tell of, and which one has lasted too long.
- `causes`: why an application ends, where its program is not the reason: for people, with what to
  do.
"""
