"""The roles of a cluster, each an actor: master, worker, app master, executor.

- `master`, `worker`, `appmaster`, `executor`: the actors, shells around the cores.
- `post`: how they reach each other; every message passes the codec.
- `artifacts`: from what was submitted to the application.
- `limits`: from the configuration to limits and clocks; `tuning`: of the interpreter.
- `client`: what a program uses to reach a cluster; `local`: every role in one process.

May be imported by entry points only.
"""
