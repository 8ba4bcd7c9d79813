"""The app master: one application from its slots to its end.

- `changes`: changes that clients, or autoscale, ask for.
"""
