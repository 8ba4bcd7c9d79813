"""The common parts of all commands: options, exits, errors, tables.

- `groups`: groups of commands, and commands whose module is imported when they are called.
- `options`: the options that commands share, and the values that a user has given for them.
- `settings`: from options to a configuration.
- `connect`: finds the master, and stays with its cluster.
- `extras`: adds extras to the environment of a clone when a command first needs them.
- `services`: the services that a command starts, if what they need is installed.
- `earlier`: options as Gearpump spells them, answered by those of today.
- `exits`: how a command ends, as the shell sees it.
- `guard`: ends a command with the right exit code and nothing but the right words.
- `output`: errors, tables and JSON, as people and programs read them.
- `coercion`: makes most values of options, without what typer would load for that.
- `absent`: modules that a process does without.
- `log`: where the command line sends gearpy's log.
"""
