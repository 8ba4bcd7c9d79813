"""Whole clusters: daemons, or everything in one process.

- `daemon`: daemons: a master, or a worker, with all that it needs in a process of its own.
- `remote`: a cluster of daemons, as programs and notebooks work with it.
- `local`: LocalCluster: master and workers in one process, executors in it or as processes of their
  own.
"""
