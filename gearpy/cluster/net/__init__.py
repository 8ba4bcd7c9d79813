"""The ways in which roles reach each other: endpoints, letters, masters, permissions.

- `post`: delivery of messages to actors by path, in this process and in others.
- `masters`: questions to the master, over a network that may fail.
- `watched`: MasterWatch: knows the master that an actor belongs to, and which orders count.
- `limits`: from the configuration to the limits of transports and restarts.
- `endpoint`: Endpoint: everything for a process in a cluster: a listener, a node, actors.
"""
