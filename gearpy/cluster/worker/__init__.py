"""The worker: slots, and the processes or threads that it starts in them.

- `actor`: WorkerActor: offers slots, starts executors in them, and stays with its master.
- `__main__`: ``python -m gearpy.cluster.worker``, which a worker starts: `child`, loaded quickly.
- `child`: the process of one executor, or app master.
- `child_process`: ChildProcess: one child with its process group, its outputs, its end and why.
- `fork_server`: ForkServer: starts a child as a fork of a process that is warm already: `forker`.
- `oom`: processes that the system has killed for want of memory, and whom it should kill first.
- `processes`: ProcessLauncher: executors and app masters as child processes of a worker.
- `threads`: ThreadLauncher: executors and app masters as actors of this process.
- `lifeline`: how a process of an application learns that its worker is gone: its standard input
  ends.
- `app_master_role`, `executor_role`, `actor_app_role`: from a launch message and the configuration
  to the actor of an application's process, which loads its own role and no other
  where it is not a fork.
- `executor_page`: the page of metrics of one executor.
- `launch_spec`: LaunchSpec: a worker's instructions to a process it starts, on its standard input.
"""
