"""The machine of a process: its folders, log files, interpreter, and leftovers of user code.

- `folders`: folders of daemons: for this user only, and each used by one daemon at a time.
- `logs`: log files: of daemons, and of the processes of applications; `log_reader` reads them.
- `log_home`: where the processes of applications log: apart from those of other clusters.
- `log_reader`: LogReader: the last lines of an application's log files, by ids.
- `audit`: one line for each change that somebody asked for, in ``audit.log``.
- `about`: about the process of a master or worker: what the services show of it.
- `master_disk`: the files of a master: how large they are, and how much room is left.
- `metrics_page`: the page of metrics of a process, which Prometheus reads by HTTP; `metrics_server`
  is loaded where one is shown.
- `open_files`: the number of files and connections that this process may have open.
- `task_limits`: from the configuration to the limits of tasks.
- `tuning`: tunes the interpreter for a process that runs tasks, and undoes it.
- `held`: a call that holds the interpreter, so that nothing else in the process can tell of it.
- `leftovers`: finds and ends processes started by user code that would outlive their own process.
"""
