"""The command line: ``gear``, ``python -m gearpy``, ``bin/local``.

- `programs`: commands about a program: run it, draw its plan, compare it with Spark.
- `apps`: commands about applications and workers of a running cluster.
- `stored`: commands about stored data: checkpoints, coordinator logs, window logs, quarantines.
- `daemons`: commands that are a cluster, or a part of one.
- `terminal`: the common parts of all commands: options, exits, errors, tables, text.

Nothing imports this package but ``__main__``. The module of a command is imported when it is
called, so that ``gear --help`` is quick. One module has a command, its arguments and what it does.

Standard output has the output of the application. ``gear run``'s own messages go to standard
error; the other commands print their answers to standard output.
"""
