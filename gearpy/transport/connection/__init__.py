"""One authenticated connection on a socket, and connections that are made again.

- `protocol`: one connection of `gearpy.wire` on one asyncio socket. Runs on: the loop thread.
- `redial`: outgoing connections: made when there is a need, and made again when they break.
"""
