"""Events: news of a topic, asked for once and sent to all of its viewers.

- `watching`: the views of a cluster, made of answers that all viewers share.
- `topics`: what somebody watches: asked for again and again while there is one viewer.
- `frames`: events as they are sent, by the rules of server-sent events.
"""
