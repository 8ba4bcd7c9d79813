"""The decisions of an app master: start, restart, epochs, clock, end.

- `application`: ApplicationCore: starts tasks, restarts regions after a failure, ends the
  application.
- `recovery`: the regions of an application start, fail, start again, and end.
- `regions`: one region at work, its epochs, and all regions of an application.
- `change`: a change of a running application to another version of its graph, and the trial of that
  one.
- `ahead`: state that the next version reads before the version that runs has ended.
- `decisions`: the commands of an `ApplicationCore` to its app master, and their limits.
- `deployment`: how the tasks of an application are started and stopped, step by step.
- `executors`: the executors of one application: wanted, running, and waited for.
- `hosts`: the machines that the tasks of a processor may be on.
- `crew`: the executors of an application of actors: wanted by its app master, replaced when lost.
- `deadly`: input that ends the processes that work on it.
- `incidents`: failures of an application: each is counted once, however it shows.
- `clock`: the application clock: the progress of all tasks, and the tasks that stall or hold it.
- `replays`: records of the quarantine that were given back to tasks, until an epoch has them for
  good.
- `consumers`: programs outside of the application that read its sinks, and whether they are stuck.
- `turn_limit`: turns of tasks that last: which to tell of, and which one has lasted too long.
- `causes`: how an application ends: the time limits of a drain, and texts for people that say
  why.
"""
