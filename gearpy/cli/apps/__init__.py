"""Commands about applications and workers of a running cluster.

- `applications`: ``gear app ...``, ``gear info``: lists, stops and restarts them, prints logs.
- `submit`: ``gear app submit``: starts an application, and hints at probable mistakes.
- `versions`: ``gear app update``, ``scale``, ``history``, ``rollback``: versions of a program.
- `shadow`: ``gear app shadow``: another version of a step beside the one that runs.
- `describe`: shows all there is to know of one application.
- `why`: ``gear why``: what is wrong with an application, and the tasks that hold its clock back.
- `top`: ``gear top``: a cluster, or one application, live in the terminal.
- `shell`: ``gear shell``: a Python prompt with a client that is connected to a cluster.
- `report`: ``gear report``: one HTML file with all that is known of a run.
- `screen`: what ``gear top`` draws.
- `progress`: how far an application is: a bar on a terminal, else a line now and then.
- `debug`: runs one task of an application again, in this process.
"""
