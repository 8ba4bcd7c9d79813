"""How link messages and control messages get from process to process.

- `api`: what a transport is, its limits and its counters. Start here.
- `routes`: which tasks run here and where the others are.
- `memory`: transports of one process that find each other by name.
- `tcp`: transports of many processes; `listener` accepts connections, `peer` makes them,
  `protocol` puts one connection of `gearpy.wire` on a socket.
- `control_server` and `control_client`: questions and answers on the same listener.
- `nodes`: letters between actors of different processes, and which of them are lost;
  `node_link` writes to one process, `node_server` hears them all.
- `loop`: the thread of the event loop, the one bridge between it and all others.
- `coroutines`: those of user code, beside the tasks; `shared_lookup`: a slow function that is asked
  once by all who want to know; `virtual_loop`: an event loop in virtual time, for simulations.
- `credentials`: what a process shows to its peers: `secret` has the shared secret file, `tls` the
  encryption and its certificates, which `certificates` makes; `private_files` are their owner's.

Any layer above may import this; nothing above imports asyncio.
"""

__all__: list[str] = []
