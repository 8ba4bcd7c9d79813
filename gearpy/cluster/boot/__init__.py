"""Whole clusters: daemons, or everything in one process.

- `master`: MasterDaemon: a master, with all that it needs in a process.
- `worker`: WorkerDaemon: a worker, and the processes that it starts.
- `daemon`: what both have in common.
- `refusals`: the watch for masters that refuse this process.
- `remote`: a cluster of daemons, as programs and notebooks work with it.
- `local`: LocalCluster: master and workers in one process, executors in it or as processes of their
  own.
"""
