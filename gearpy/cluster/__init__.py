"""The roles of a cluster, each an actor: master, worker, app master, executor.

- `master`, `worker`, `appmaster`, `executor`: the actors, shells around the cores. `task_group`:
  an executor's tasks of one attempt; `describe`: what an app master tells of its application.
- `app_config`: what an application sets of the configuration;
- `app_checkpoints`: an app master's coordinator log and epochs; `app_quarantine`: the records it
  was told of; `app_events`: from messages to events of its task manager.
- `executor_epochs`: the epochs of an executor's tasks; `epoch_files`: what is stored of them;
  `snapshot_writer`: the actor that stores and loads it.
- `roles`: from a launch message to the actor of an application's process.
- `master_store`: the master's state with its log; `master_answers`: what it is asked;
  `master_limits`: what the configuration says to it; `master_workers`: its workers and what they
  run; `master_contacts`: whom it tells and watches.
- `post`: how they reach each other; every message passes the codec. `remote_ref`: the address of
  an actor elsewhere; `questions`: those asked of actors elsewhere, and by them.
- `artifacts`: from what was submitted to the application; `isolation`: its modules;
  `requirements`: whether what it needs is installed.
- `targets`: where in a program the application is; `upload`: takes it to the master; `fetch`: to
  the machines that run it, which ask `masters`: again and again, of which there is one.
- `daemon`: a master or a worker with all that its process needs; `endpoint` is what every process
  has: listener, node, actors. `permissions`: what an application may say to the cluster.
- `threads`: a worker's executors as threads; `processes`: as processes; `child_process` is one of
  those, seen from the worker, `child_exit` why it ended. `child`: such a process itself;
  `launch_spec`: what it is told; `lifeline`: how it notices that its worker is gone;
  `leftovers`: what it has started and what would outlive it.
- `logs`: log files; `folders`: of daemons and of what they start, and temporary ones.
- `limits`: from the configuration to limits and clocks; `tuning`: of the interpreter.
- `checkpoint_paths`: where in a store an application is; `checkpoint_tool`, `checkpoint_changes`:
  what is stored of it, without a cluster; `resuming`: the checkpoint that a user names;
  `state_migration`: makes it one of a program that has changed.
- `client`: what a program uses to reach a cluster; `local`: every role in one process; the
  package `embedded`: one application in it, until it ends or is stopped.
- `desk`: answers clients for the whole cluster; `log_reader`: logs of applications, by ids.

May be imported by entry points only.
"""
