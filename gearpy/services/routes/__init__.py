"""The routes, by what they are about; each module has a router.

- `cluster`: the master, workers, partitioners, the supervisor that is not there.
- `applications`: applications as Gearpump describes them; to kill, restart and drain them.
- `inside`: what Gearpump does not tell: plan, why, checkpoints, quarantine, logs.
- `versions`: versions of what runs: update, scale, roll back.
- `states`: the state of steps, as at the end of an epoch.
- `views`: the views that the page draws, and series of measurements.
- `measurements`: measurements by Gearpump's names.
- `prometheus`: all that is measured, as the page that Prometheus reads.
- `submitting`: programs and graphs that are uploaded and submitted.
- `session`: who asks; login and logout; the version.
- `events`: the stream of events, also as a WebSocket.
- `earlier`: the paths of Gearpump 0.6 where 0.8 has others.
"""
