"""Actors: state that one thread at a time touches, driven by messages, supervised by parents.

Every actor is a `pykka.Actor`; this package adds what pykka lacks. Start with `api`.

Imported by the layers above. Knows nothing of streams.
"""
