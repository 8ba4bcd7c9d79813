"""One authenticated connection on a socket, and the listener that accepts it.

- `protocol`: one connection of `gearpy.wire` on one asyncio socket. Runs on: the loop thread.
"""
