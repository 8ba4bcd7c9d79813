"""Carries link messages and control messages from process to process.

- `links`: batches between tasks: over TCP, or by reference within a process.
- `letters`: letters between the actors of different processes, and questions of clients.
- `connection`: one authenticated connection on a socket, and connections that are made again.
- `security`: who may connect: secrets, certificates, TLS.
- `loop`: the thread that runs the event loop, coroutines of user code beside it, virtual time.

Any layer above may import this; nothing above imports asyncio.
"""
