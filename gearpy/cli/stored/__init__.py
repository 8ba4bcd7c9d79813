"""Commands about stored data: checkpoints, savepoints, state, coordinator logs, quarantines.

- `applications`: applications in the checkpoint store, whether or not there is a cluster.
- `checkpoint`: ``gear checkpoint ...``: prints, checks and changes the stored epochs of
  applications.
- `coordinator_log`: ``gear coordinator-log ...``: prints the log of an application, appends to it.
- `quarantine`: ``gear quarantine ...``: lists, shows and replays records that were put aside.
- `savepoint`: ``gear savepoint ...``: lists and drops epochs under names.
- `state`: ``gear state ...``: the state of the steps of an application, as tables.
- `window_log`: ``gear window-log ...``: lists, shows, checks, compacts and purges window logs.
"""
