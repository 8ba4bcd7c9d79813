"""How a program reaches a cluster, and who answers it there.

- `client`: what a program uses to reach a cluster: submit, list, describe, wait, replay, stop.
- `desk`: desk: answers clients for the whole cluster, where the master's listener is.
"""
