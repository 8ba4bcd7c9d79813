"""Actors: state that one thread at a time touches, driven by messages, supervised by parents.

Start with `api` (what an actor is) and `system` (what spawns one).

- `api`: `Actor`, `BatchActor`, `Ref`, `ActorContext`, `Exited` and its reasons.
- `system`: `ActorSystem`, and what a cell needs of one; `local_system`: their common half.
- `cell`: the life of one actor over its restarts; `host`: what runs it; `context`: what one
  incarnation holds.
- `mailbox`: two queues, system messages first; `local_ref`: tell and ask.
- `dead_letters`: what becomes of messages that no mailbox takes.
- `supervisor`: what becomes of a failed actor and of its children, by `core.base.restart`.
- `dispatcher`: many actors on few threads; `timers`: one thread for all timers.
- `threaded`: the system on pykka; the only import of pykka, and loaded only when imported.

Imported by the layers above. Knows nothing of streams.
"""

from gearpy.actor.api import (
    MAILBOX_MAX,
    Actor,
    ActorContext,
    BatchActor,
    Cancellable,
    Dispatcher,
    DispatcherChoice,
    Exited,
    ExitReason,
    Failed,
    Killed,
    Ref,
    Stopped,
)
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.actor.system import ActorSystem

__all__ = [
    "MAILBOX_MAX",
    "Actor",
    "ActorContext",
    "ActorSystem",
    "BatchActor",
    "Cancellable",
    "Dispatcher",
    "DispatcherChoice",
    "ExitReason",
    "Exited",
    "Failed",
    "Killed",
    "Ref",
    "SharedDispatcher",
    "Stopped",
]
