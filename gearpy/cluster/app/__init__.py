"""The app master: one application from its slots to its end, on the turns of one actor.

- `changes`: changes that clients, or autoscale, ask for.
"""
