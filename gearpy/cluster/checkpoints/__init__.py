"""What is stored of applications, looked at and changed without a cluster.

- `tool`: what is stored of an application: its epochs, what is in them, and whether that is whole.
- `changes`: changes what is stored of an application that has stopped: places of sources, files,
  all of it.
- `paths`: where in a checkpoint store an application is, for tools that ask no cluster.
- `migration`: from an epoch of one graph to one that tasks of another graph can begin with.
- `resuming`: from what a user calls a checkpoint to the one that an application begins with.
"""
