"""The wire: messages <-> bytes, without a socket, clock or thread.

- `payload`: the records of a batch <-> bytes; `arrow_payload`: those that are columns.
- `extensions` says which values can travel, `numpy_values` those of numpy; `records` which classes,
  `forms` how instances are taken apart, `class_names` how a class is found by its name.
- `frames`: length-prefixed, checksummed frames with hard size limits.
- `link_codec`: what tasks say to each other <-> frames.
- `codec`: control messages <-> bytes, validated strictly; `control_codec`: questions and answers.
- `receipts`: whether what was written on a link arrives.
- `mail`: letters from node to node, each once and in order; when a node counts as lost.
- `keys`: the cluster secret and the keys of applications; who may prove what.
- `auth` and `connection`: proof of a key, then frames: bytes and ``now_ms`` in, events and bytes
  out.

Start at `connection`. Pure: a shell (`gearpy.transport`) owns sockets, timers and randomness.
Any layer above may import this; it imports `messages`, `errors` and `ids` only.
"""

__all__: list[str] = []
