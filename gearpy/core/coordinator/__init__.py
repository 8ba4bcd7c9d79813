"""The coordinator log of an application: what its app masters must know of each other.

- `log`: the coordinator log of one application: what its app masters must know of each other.
- `views`: what messages of each type mean: epochs, places of sources, configuration, graph.
- `segments`: who may append to a coordinator log, and what of it counts: the protocol, in steps.
- `codec`: files of a coordinator log as bytes: messages with a checksum each, and marks of what
  counts.
- `repair`: what is left of a damaged coordinator log, and what is lost with it.
"""
