"""Questions and answers on control connections.

- `client`: asks questions on a control connection: a plain blocking socket around
  `wire.connection.machine`.
- `server`: answers questions on control connections, on threads of its own.
"""
