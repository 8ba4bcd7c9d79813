"""One authenticated connection, without a socket.

- `frames`: length-prefixed, checksummed frames: the unit that crosses a connection after the
  handshake.
- `machine`: one authenticated connection, as a state machine: bytes and ``now_ms`` in, events and
  bytes out.
- `auth`: proof that both ends know one key: the bytes and the checks, without any state.
- `keys`: who may prove what: the cluster secret, the keys of applications, and what a launch is
  given.
- `receipts`: whether what is written on a link arrives: the other end says how many bytes it has.
- `letters`: how letters get from node to node exactly once and in order, and when a node counts as
  lost.
"""
