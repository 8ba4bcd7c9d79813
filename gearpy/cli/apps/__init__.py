"""Commands about applications and workers of a running cluster.

- `applications`: ``gear app ...``, ``gear info``: lists, stops and restarts them, prints logs.
- `submit`: ``gear app submit``: starts an application, and hints at probable mistakes.
- `describe`: shows all there is to know of one application.
- `why`: ``gear why``: names the task that holds the clock of an application back.
- `progress`: how far an application is: a bar on a terminal, else a line now and then.
"""
