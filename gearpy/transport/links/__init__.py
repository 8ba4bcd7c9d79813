"""Batches between tasks: over TCP, or by reference within a process.

- `tcp`: the transport between processes: TCP with proof of a shared key, and TLS where configured.
- `peer`: the connection to one peer: queues what senders hand over and writes it.
- `routes`: tables of tasks: handlers of local tasks, addresses of the others; transports that
  use them.
- `memory`: transports of one process: messages are handed over by reference.
- `listener`: accepts connections and passes on what authenticated peers send.
"""
