"""Commands about applications and workers of a running cluster.

- `submit`: submits an application to a cluster.
- `commands`: ``gear app ...``: its commands with their arguments and help.
- `asking`: what every command that asks a cluster does: configuration, connection, errors.
- `connect`: finds the master, and stays with its cluster.
- `describe`: shows all there is to know of one application.
- `info`: lists the applications and workers of a cluster.
- `lifecycle`: stops, restarts and replays an application of a cluster.
- `logs`: prints the log of an application's executor or app master.
- `why`: tells what holds the clock of an application back, and who does not take what it has shown.
- `progress`: how far an application is, while it runs: a bar on a terminal, else a line now and
  then.
- `hints`: what may not be meant in a submission, although nothing of it is wrong.
"""
