"""The common parts of all commands: options, exits, errors, tables."""
