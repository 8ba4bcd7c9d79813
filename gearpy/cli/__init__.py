"""The command line: ``gear``, ``python -m gearpy``, ``bin/local``.

- `main`: every command with its arguments and help. Start here.
- `options`: options that several commands have; `settings` makes a configuration of them.
- `run`: one application in this process; `program` loads it, `progress` shows how far it is.
- `app`: submits an application to a cluster, with `hints` at what may not be meant;
  `app_commands` and `quarantine_commands` have the arguments of ``gear app`` and
  ``gear quarantine``.
- `info`, `describe`, `why`, `logs`, `quarantine`: what there is to know of a cluster and its
  applications; `lifecycle` stops and restarts them. `asking` is what they have in common;
  `connect` finds the cluster.
- `plan`: how a program will run, and what becomes of its state in another one; `plan_text`,
  `plan_graph`, `plan_svg` print it, `plan_layout` is for the last. `plan_commands` has the
  arguments of ``gear plan``.
- `verify`: the answers of a program here and as a query of Spark; `verify_commands` has the
  arguments of ``gear verify``.
- `certs`: makes certificates; `certs_commands` has the arguments of ``gear certs``.
- `checkpoint`, `checkpoint_edit`: what is stored of applications, and changes of it;
  `checkpoint_commands` has the arguments of ``gear checkpoint``.
- `coordinator_log`: prints the log and appends to it; `log_commands` has the arguments of
  ``gear coordinator-log``; `stored` finds applications without a cluster.
- `windows`: what is in window logs; `windows_commands` has the arguments of ``gear window-log``.
- `local`: a whole cluster in this process; `master`, `worker`: its daemons, whose arguments are in
  `daemon_commands`.
- `output`: errors, tables and JSON, as people and programs read them; `text`: numbers and times.
- `exits`: the exit codes; `guard` ends a command with the right one; `signals`: Ctrl-C;
  `log`: where the log goes.

Nothing imports this package but ``__main__``. Modules are imported by the command that needs
them, so that ``gear --help`` is quick.

What the application prints goes to standard output. What ``gear run`` says itself goes to standard
error; what the other commands are asked for is their standard output.
"""

__all__: list[str] = []
