"""Commands that are a cluster, or a part of one.

- `commands`: ``gear master`` and ``gear worker``: their arguments and help.
- `master`: a master in this process, until it is told to stop.
- `worker`: a worker in this process, until it is told to stop.
- `local`: a whole cluster in this process, until it is told to stop.
- `certs`: makes certificates, and says which file goes where.
- `certs_commands`: ``gear certs ...``: its commands with their arguments and help.
"""
