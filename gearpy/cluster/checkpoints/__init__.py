"""Checkpoints of applications, inspected and changed without a cluster.

- `reading`: which applications a store has, their epochs, what is in them, and whether it is whole.
- `remote`: files that are read through the cluster, where a client does not see the store.
- `changing`: changes the stored epochs of a stopped application: places, files, everything.
- `savepoints`: epochs under names: lists, finds and drops them.
- `migration`: from an epoch of one graph to one that tasks of another graph can begin with.
- `resuming`: finds the checkpoint an application begins with, from the name that a user gives.
"""
