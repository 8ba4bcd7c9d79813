"""What all commands share: options, exits, errors, tables, text.

- `exits`: how a command ends, as the shell sees it.
- `guard`: ends a command with the right exit code and nothing but the right words.
- `options`: arguments and options that several commands have.
- `output`: errors, tables and JSON, as people and programs read them.
- `settings`: from options to a configuration.
- `text`: numbers, times and foreign text as the command line shows them.
- `log`: where the command line sends gearpy's log.
- `signals`: ctrl-C and SIGTERM: the first stops cleanly, the second at once.
"""
