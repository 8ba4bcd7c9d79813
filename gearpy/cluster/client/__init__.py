"""Clients of a cluster, and the desk that answers them.

- `client`: a program's way to a cluster: submit, list, describe, wait, replay, stop.
- `questions`: what a client may ask that changes nothing.
- `changes`: a change of an application that runs, and whether it stays.
- `looking`: asks a cluster for all that views are made of, once or again and again.
- `measured`: asks a cluster for all that it measures.
- `alerting`: follows the alerts of a cluster, and tells webhooks of them.
- `desk`: answers clients for the whole cluster, beside the master's listener.
"""
