"""What changes, sent to all who watch the same, and asked for once.

- `watching`: the views of a cluster, made of answers that all viewers share.
- `topics`: what somebody watches: asked for again and again while there is one viewer.
- `frames`: events as they are sent, by the rules of server-sent events.
"""
