"""Commands about what is stored: checkpoints, coordinator logs, window logs, quarantines.

- `checkpoint`: prints what is stored of an application: its epochs, what is in them, whether they
  are whole.
- `checkpoint_commands`: ``gear checkpoint ...``: its commands with their arguments and help.
- `checkpoint_edit`: changes what is stored of applications, or tells what it would change.
- `coordinator_log`: prints the coordinator log of an application, and appends to it.
- `coordinator_log_commands`: ``gear coordinator-log ...``: its commands with their arguments and
  help.
- `quarantine`: lists, shows and replays records that were put aside.
- `quarantine_commands`: ``gear quarantine ...``: its commands with their arguments and help.
- `window_log`: lists, shows, checks, compacts and purges window logs.
- `window_log_commands`: ``gear window-log ...``: its commands with their arguments and help.
- `applications`: applications as they are in the checkpoint store, whether or not there is a
  cluster.
"""
