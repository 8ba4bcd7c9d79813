"""The executor: tasks of one application, their transport, their epochs.

- `actor`: ExecutorActor: hosts tasks of one application, their transport and their thread.
- `epochs`: the epochs of one group of tasks in an executor: who is told what, and what is told of
  it.
- `task_group`: the tasks of one attempt of one region in one executor.
- `epoch_files`: what one executor stores of each epoch, and which of its files a restart needs.
- `snapshot_writer`: SnapshotWriter: stores epochs and loads them again, beside the tasks that go on
  meanwhile.
"""
