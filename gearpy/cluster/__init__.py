"""The roles of a cluster, each an actor: master, worker, app master, executor.

- `boot`: whole clusters: daemons, or everything in one process.
- `embedded`: one application in the process that started it, until its input ends or someone stops
  it.
- `client`: clients of a cluster, and the gateway that answers them.
- `master`: the master: applications, workers, slots, and the log that makes them durable.
- `quorum`: several masters with one log: who leads, and what the others answer.
- `worker`: the worker: slots, and the processes or threads that it starts in them.
- `app`: the app master: one application from its slots to its end.
- `executor`: the executor: tasks of one application, their transport, their epochs.
- `processes`: processes that others start, and those in which programs are tried.
- `programs`: programs on their way to where they run: packed, uploaded, fetched, imported.
- `rerun`: a task of an application, run once more in this process.
- `checkpoints`: checkpoints of applications, inspected and changed without a cluster.
- `states`: state of applications, looked at from outside: as tables, and by SQL.
- `net`: how roles reach each other: endpoints, letters between processes, masters, permissions.
- `host`: the machine of a process: its folders, log files, interpreter, and leftovers of user code.

Start with `boot.local`, which has all of them in one process. May be imported by entry points only.
"""
