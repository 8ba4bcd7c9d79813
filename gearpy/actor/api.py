"""The base classes of actors, and the system they live in.

The mailbox type ``M`` of an actor is the union of the messages it understands; `Ref`, `Actor`
and `ActorContext` carry it, so that mypy checks every `tell`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

import pykka
from pykka._envelope import Envelope

from gearpy.actor.dispatcher import Dispatcher, DispatcherChoice
from gearpy.actor.mailbox import MAILBOX_MAX, Mailbox, Reply
from gearpy.actor.refs import Exited, ExitReason, Failed, Killed, Ref, Stopped
from gearpy.actor.timers import ActorTimer, Cancellable, Timers
from gearpy.actor.unknown import UnknownMessages
from gearpy.errors import ActorStopped, ConfigError, GearpyError
from gearpy.ids import ActorPath

__all__ = [
    "MAILBOX_MAX",
    "Actor",
    "ActorContext",
    "ActorSystem",
    "BatchActor",
    "Cancellable",
    "CommittingActor",
    "Dispatcher",
    "DispatcherChoice",
    "ExitReason",
    "Exited",
    "Failed",
    "Killed",
    "Ref",
    "Stopped",
    "TurnCall",
]

M = TypeVar("M")
N = TypeVar("N")


class NotTaken(GearpyError):
    """The answer of an actor to a question that it has no use for; raised where it was asked."""


class Actor(pykka.Actor, Generic[M]):
    """Base of all actors: state that one thread at a time touches, driven by messages.

    Calls come one after the other, each perhaps on another thread. ``context`` is set between
    ``__init__`` and `on_start`. Whatever any of these methods raises is a failure: the actor
    is stopped, and no other actor suffers.

    It is a pykka actor too, once it starts: pykka's registry finds it by its class, and pykka's
    `ActorRef` tells, asks and stops it. `ActorSystem.spawn` stands for pykka's `start`.
    """

    context: "ActorContext[M]"

    #: A union of the messages that it takes; others are noted, and do it no harm. None: all.
    takes: ClassVar[Any] = None

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        """Make the object; pykka adds its own parts at the start, so nobody must call this."""

    def on_start(self) -> None:
        """Begin; runs before the first message. Usually sends or schedules something."""

    @abstractmethod
    def receive(self, message: M) -> object:
        """Handle one message. The result answers an `ask` and is dropped for a `tell`."""

    def on_exited(self, exited: Exited) -> None:
        """Hear that a watched actor or a child is gone; once for each. The default ignores it."""

    def on_stop(self) -> None:
        """Clean up; runs once for each `on_start` that returned, also after a failure.

        Children have stopped and timers are cancelled by then. What it raises is only logged.
        """

    # -- pykka's hooks for a new type of actor ---------------------------------------------

    @classmethod
    def start(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse: an actor without a system has nobody to supervise it."""
        raise ConfigError(f"{cls.__name__} starts by ActorSystem.spawn, which supervises it")

    def join(self, context: "ActorContext[M]") -> pykka.ActorRef[Any]:
        """Become a pykka actor; systems call this."""
        self.context = context
        super().__init__()
        return self._actor_ref

    def on_receive(self, message: M) -> object:
        """Handle the messages that pykka's `_handle_receive` leaves: all but calls of proxies."""
        if self.is_taken(message):
            return self.receive(message)
        kind = type(message).__name__
        return NotTaken(f"actor {self.context.self_ref.path} has no use for {kind}")

    def is_taken(self, message: object) -> bool:
        if self.takes is None or isinstance(message, self.takes):
            return True
        context, kind = self.context, type(message).__name__
        context.system.unknown.note(context.self_ref.path, kind, context.now_ms())
        return False

    def _create_actor_inbox(self) -> Mailbox:  # type: ignore[override]  # Static in pykka.
        return self.context.inbox

    @staticmethod
    def _create_future() -> Reply:
        return Reply()

    def _start_actor_loop(self) -> None:
        self.on_start()


class BatchActor(Actor[M]):
    """An actor that takes its messages by the list, to save work for each of them.

    Asked messages, and those of timers, still come one by one through `receive`, in order
    with the batches. When `receive_batch` raises, none of its messages is repeated.
    """

    #: Messages in one call at most; a shared dispatcher's ``turn_messages`` limits it too.
    batch_max: ClassVar[int] = 1_000

    @abstractmethod
    def receive_batch(self, messages: list[M]) -> None:
        """Handle everything that is queued, oldest first. Never called with an empty list."""

    def receive(self, message: M) -> object:
        self.receive_batch([message])
        return None


class CommittingActor(Actor[M]):
    """An actor whose answers wait until it has committed to them, once for many messages.

    `receive` decides, and notes what must be durable or told; `commit` does that. So what waits
    together is written together. If `commit` raises, or the actor ends before, nobody is answered.
    """

    @abstractmethod
    def commit(self) -> None:
        """Carry out the noted changes; called at the end of each turn, before any answer."""


@dataclass(frozen=True, slots=True)
class TurnCall:
    """A message of an actor to itself: a function to be called in a turn of its own."""

    call: Callable[[], None]


class ActorSystem(ABC):
    """A set of actors with names of their own, on threads or on virtual time.

    Runs on: any thread.

    Attributes:
        stop_timeout_ms: how long a parent waits for its children to stop before it kills them.
    """

    #: Whether all actors are being stopped; none is told any more of the end of another.
    is_shutting_down: bool = False
    #: Whether pykka's registry, one for the process, lists the actors.
    is_registered: ClassVar[bool] = False

    def __init__(self, *, stop_timeout_ms: int) -> None:
        self.stop_timeout_ms = stop_timeout_ms
        self.unknown = UnknownMessages()

    @abstractmethod
    def spawn(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        dispatcher: DispatcherChoice = "pinned",
        mailbox_max: int = MAILBOX_MAX,
        parent: Ref[Any] | None = None,
    ) -> Ref[N]:
        """Start an actor.

        ``factory`` runs in the new actor's first turn; what it raises is a failure of the actor,
        not of the caller. ``parent`` is an actor of this system that spawns in its turn, by
        `ActorContext.spawn`.
        """

    @abstractmethod
    def stop(self, ref: Ref[Any]) -> None:
        """Stop an actor after its current message; those that wait become dead letters.

        Returns at once. Its children stop first.
        """

    @abstractmethod
    def stop_gracefully(self, ref: Ref[Any]) -> None:
        """Stop an actor when all that waits now has been handled; it takes no more messages."""

    @abstractmethod
    def resolve(self, path: ActorPath | str) -> Ref[Any] | None:
        """Return the living actor of this path or name."""

    @abstractmethod
    def shutdown(self, timeout_s: float = 10.0) -> bool:
        """Stop all actors and wait; kill those that take longer. True when all stopped."""

    # -- for actors and what keeps them alive ----------------------------------------------

    @property
    @abstractmethod
    def timers(self) -> Timers:
        """Timers on the system's time."""

    @abstractmethod
    def now_ms(self) -> int:
        """Monotonic time."""

    @abstractmethod
    def wall_ms(self) -> int:
        """Wall time in ms since the epoch."""

    @abstractmethod
    def wait(self, reply: Reply, timeout_s: float) -> bool:
        """Let time pass until there is an answer; False when there is none in time."""

    @abstractmethod
    def forget(self, ref: Ref[Any]) -> None:
        """Free the name of an actor that is gone."""


@dataclass(slots=True, eq=False)
class _Watch:
    """One watch of one actor. Inactive once told, undone or outlived."""

    ref: Ref[Any]
    is_active: bool = True


class ActorContext(Generic[M]):
    """The abilities of an actor; for the actor's own turns.

    Spawning, watching and scheduling raise `ActorStopped` once the actor stops.
    """

    def __init__(
        self,
        actor: Actor[M],
        self_ref: Ref[M],
        *,
        parent: Ref[Any] | None,
        system: ActorSystem,
        inbox: Mailbox,
        is_child: Callable[[Ref[Any]], bool],
    ) -> None:
        self.self_ref = self_ref
        self.parent = parent
        self.system = system
        self.inbox = inbox
        self._actor = actor
        self._is_child = is_child
        self._is_open = True
        self._timers: set[ActorTimer] = set()
        self._watches: dict[Ref[Any], _Watch] = {}

    def spawn(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        dispatcher: DispatcherChoice = "pinned",
        mailbox_max: int = MAILBOX_MAX,
    ) -> Ref[N]:
        """Start a child; see `ActorSystem.spawn`. Its exit is told to `Actor.on_exited`."""
        self._check_open()
        return self.system.spawn(
            factory,
            name,
            dispatcher=dispatcher,
            mailbox_max=mailbox_max,
            parent=self.self_ref,
        )

    def stop(self, ref: Ref[Any]) -> None:
        self.system.stop(ref)

    def stop_self(self) -> None:
        self.system.stop(self.self_ref)

    # -- watches ---------------------------------------------------------------------------

    def watch(self, ref: Ref[Any]) -> None:
        """Have `Actor.on_exited` called once when ``ref`` exits; at once when it has."""
        self._check_open()
        known = self._watches.get(ref)
        if (known is not None and known.ref is ref) or self._is_child(ref):
            return  # A parent is told of its children anyway.
        watch = self._watches[ref] = _Watch(ref)

        def notify(exited: Exited) -> None:
            self.inbox.put_system(partial(self._on_exited, watch, exited))

        ref.add_watcher(watch, notify)

    def unwatch(self, ref: Ref[Any]) -> None:
        """Undo `watch`: no `on_exited` follows, unless ``ref`` is a child."""
        watch = self._watches.pop(ref, None)
        if watch is not None:
            watch.is_active = False
            watch.ref.remove_watcher(watch)

    def _on_exited(self, watch: _Watch, exited: Exited) -> None:
        is_due, watch.is_active = watch.is_active, False
        if self._watches.get(watch.ref) is watch:
            del self._watches[watch.ref]
        if is_due and not self.system.is_shutting_down:
            self._actor.on_exited(exited)

    # -- timers ----------------------------------------------------------------------------

    def schedule_once(self, delay_ms: int, message: M) -> Cancellable:
        """Receive ``message`` once, ahead of waiting messages. Ends with the actor."""
        return self._add_timer(delay_ms, message, once=True)

    def schedule(self, interval_ms: int, message: M) -> Cancellable:
        """Receive ``message`` each interval, first after one. Ends with the actor.

        A tick is skipped while the one before it still waits to be received.
        """
        return self._add_timer(interval_ms, message, once=False)

    def _add_timer(self, delay_ms: int, message: M, *, once: bool) -> ActorTimer:
        self._check_open()
        receive = partial(self._actor.receive, message)
        timer = ActorTimer(self.inbox, self._timers, receive, once=once)
        timer.start(self.system.timers, delay_ms)
        return timer

    # -- turns and time --------------------------------------------------------------------

    def schedule_self(self, message: M) -> None:
        self.inbox.put_unbounded(Envelope(message))

    def now_ms(self) -> int:
        return self.system.now_ms()

    def wall_ms(self) -> int:
        """Wall time in ms since the epoch; for showing and storing."""
        return self.system.wall_ms()

    # -- end -------------------------------------------------------------------------------

    def close(self) -> None:
        """End all timers and watches, for good. Runs on any thread when the actor is killed."""
        self._is_open = False
        for timer in list(self._timers):
            timer.cancel()
        for watch in list(self._watches.values()):
            watch.is_active = False
            watch.ref.remove_watcher(watch)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ActorStopped(f"actor {self.self_ref.path} has stopped")
