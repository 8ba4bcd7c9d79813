"""The worker: slots, and the processes or threads that it starts in them.

- `actor`: WorkerActor: offers slots, starts executors in them, and stays with its master.
- `__main__`: ``python -m gearpy.cluster.worker``, which a worker starts: `child`, loaded quickly.
- `child`: the process of one executor, or app master.
- `processes`: ProcessLauncher: executors and app masters as child processes of a worker.
- `threads`: ThreadLauncher: executors and app masters as actors of this process.
- `app_master_role`, `executor_role`, `actor_app_role`: from a launch message and the configuration
  to the actor of an application's process, which loads its own role and no other
  where it is not a fork.
- `executor_page`: the page of metrics of one executor.
- `launch_spec`: LaunchSpec: a worker's instructions to a process it starts, on its standard input.
"""
