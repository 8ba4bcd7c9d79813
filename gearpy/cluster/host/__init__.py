"""The machine of a process: its folders, log files, interpreter, and leftovers of user code."""
