"""One application in the process that started it, until its input ends or somebody stops it.

- `run`: from the application to its summary, with all that a cluster does in between.
- `launch`: a cluster in this process with one application, and its end.
- `background`: a run beside the program, which a notebook steers.
- `peek`: a run until enough of it was seen.
- `signals`: the first Ctrl-C or SIGTERM drains, the second ends at once.
- `source_warnings`: what sources and sinks warn of, where no log is set up.
- `run_folder`: the folder of a run that can be resumed: its checkpoints, and whose they are.
"""
