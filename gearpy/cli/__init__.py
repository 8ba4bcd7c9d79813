"""The command line: ``gear``, ``python -m gearpy``, ``bin/local``.

- `main`: every command by what it is about, and the module that has it. Start here.

Rooms:

- `programs`: commands about a program: run it, draw its plan, compare it with Spark.
- `apps`: commands about applications and workers of a running cluster.
- `stored`: commands about what is stored: checkpoints, coordinator logs, window logs, quarantines.
- `daemons`: commands that are a cluster, or a part of one.
- `terminal`: what all commands share: options, exits, errors, tables, text.

Nothing imports this package but ``__main__``. The module of a command is imported when it is
called, so that ``gear --help`` is quick. One module has a command, its arguments and what it does.

What the application prints goes to standard output. What ``gear run`` says itself goes to standard
error; what the other commands are asked for is their standard output.
"""

__all__: list[str] = []
