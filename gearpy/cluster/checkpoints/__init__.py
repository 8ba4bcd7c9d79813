"""What is stored of applications, looked at and changed without a cluster.

- `reading`: which applications a store has, their epochs, what is in them, and whether it is whole.
- `changing`: changes what is stored of a stopped application: places of sources, files, all of it.
- `migration`: from an epoch of one graph to one that tasks of another graph can begin with.
- `resuming`: from what a user calls a checkpoint to the one that an application begins with.
"""
