"""The machine of a process: its folders, log files, interpreter, and leftovers of user code.

- `folders`: folders of daemons: for this user only, and each used by one daemon at a time.
- `logs`: log files: of daemons, and of the processes of applications; `log_reader` reads them.
- `log_reader`: LogReader: the last lines of an application's log files, by ids.
- `tuning`: what a process that runs tasks changes about the interpreter, and changes back.
- `leftovers`: what code of users has started and what would outlive its process: found, and ended.
"""
