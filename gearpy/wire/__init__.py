"""The wire: messages <-> bytes, without a socket, clock or thread.

- `connection`: one authenticated connection, without a socket.
- `values`: values of users <-> bytes.

Start at `connection.machine`. Pure: a shell (`transport`) owns sockets, timers and randomness.
Any layer above may import this; it imports `messages`, `errors` and `ids` only.
"""
