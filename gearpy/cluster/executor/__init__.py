"""The executor: tasks of one application, their transport, their epochs.

- `actor`: ExecutorActor: hosts tasks of one application, their transport and their thread.
- `actor_app`: ActorAppExecutor: an executor of an application of actors, around the user's.
- `measuring`: the measurements of one executor, for its own page of metrics.
- `epochs`: the epochs of a group of tasks: stores each one and reports it.
- `task_group`: the tasks of one attempt of one region in one executor.
- `snapshot_writer`: SnapshotWriter: stores epochs and loads them again, beside the tasks that go on
  meanwhile.
- `ahead`: keyed state of tasks that are to come, read from epochs before the one that they go on
  from.
"""
