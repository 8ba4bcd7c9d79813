"""How roles reach each other: endpoints, letters between processes, masters, permissions.

- `post`: how roles reach each other: by path, with messages that can cross a process boundary.
- `masters`: questions to the master, over a network that may fail.
- `permissions`: what a process that runs code of users may say to processes of the cluster.
- `limits`: from the configuration to the limits of tasks and transports, and the clocks they run
  on.
- `endpoint`: endpoint: what a process needs to take part in a cluster: a listener, a node, actors.
"""
