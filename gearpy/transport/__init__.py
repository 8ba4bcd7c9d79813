"""How link messages and control messages get from process to process.

- `api`: what a transport is, its limits and its counters. Start here.
- `routes`: which tasks run here and where the others are.
- `memory`: transports of one process that find each other by name.
- `tcp`: transports of many processes; `listener` accepts connections, `peer` makes them,
  `protocol` puts one connection of `gearpy.wire` on a socket.
- `control_server` and `control_client`: questions and answers on the same listener.
- `loop`: the thread of the event loop, the one bridge between it and all others.
- `secret`: the shared secret file.

Any layer above may import this; nothing above imports asyncio.
"""

__all__: list[str] = []
