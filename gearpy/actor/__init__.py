"""Actors: state that one thread at a time touches, driven by messages, supervised by parents.

Every actor is a `pykka.Actor`; this package adds what pykka lacks. Start with `api`.

- `api`: `Actor`, `BatchActor`, `ActorContext` and `ActorSystem`: what an actor is, what it can
  do, and where it lives.
- `refs`: `Ref`, the address of an actor, `Exited` and its reasons.
- `life`: what stays of an actor over its restarts; tell and ask.
- `mailbox`: the inbox of an actor, bounded, system messages first; dead letters.
- `unknown`: messages that an actor has no use for, counted and logged.
- `supervisor`: what becomes of a failed actor and of its children, by `core.base.restart`.
- `dispatcher`: the threads on which actors take turns; `timers`: one thread for all timers.
- `local_system`: names, spawning and stopping; `threaded`: the system on threads.

Imported by the layers above. Knows nothing of streams.
"""
