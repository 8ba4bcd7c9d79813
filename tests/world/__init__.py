"""A whole cluster in virtual time: real roles, real tasks, a network and processes by chance.

- `cluster`: `ClusterSimulation`, all roles of a cluster, whose processes can be killed and frozen.
- `actors`: its processes, in a `World` of `gearpy.testing`; `network`: letters and links of them.
- `stores`: a checkpoint store that fails at times. `promises`: checks every letter.

Start with `cluster`. Imported by tests and `bin/bench`.
"""
