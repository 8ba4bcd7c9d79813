"""What an actor system offers to its users, and to the cells that live in it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gearpy.actor.api import MAILBOX_MAX, Actor, Cancellable, DispatcherChoice, Ref
from gearpy.actor.dead_letters import PathCounter
from gearpy.core.base.restart import RestartPolicy
from gearpy.ids import ActorPath

if TYPE_CHECKING:
    from random import Random

    from gearpy.actor.cell import ActorCell
    from gearpy.actor.mailbox import Reply

__all__ = ["ActorSystem", "Runtime", "Timers"]

N = TypeVar("N")


class Timers(Protocol):
    """Calls functions later.

    They must be quick, and are not called after `Cancellable.cancel`, unless under way by then.
    """

    def call_later(self, delay_ms: int, call: Callable[[], object], /) -> Cancellable:
        """Call once, after ``delay_ms``."""
        ...

    def call_every(self, interval_ms: int, call: Callable[[], object], /) -> Cancellable:
        """Call at a fixed rate, first after ``interval_ms``; late calls are not made up for."""
        ...


class ActorSystem(Protocol):
    """A set of actors with names of their own, on threads or on virtual time.

    Runs on: any thread.
    """

    @property
    def dead_letters(self) -> PathCounter:
        """Messages told to actors that had stopped, or that waited when they stopped."""
        ...

    @property
    def refused(self) -> PathCounter:
        """Messages refused with `MailboxFull`."""
        ...

    def spawn(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        dispatcher: DispatcherChoice = "pinned",
        supervision: RestartPolicy | None = None,
        mailbox_max: int = MAILBOX_MAX,
    ) -> Ref[N]:
        """Start an actor without a parent.

        ``factory`` runs in the new actor's first turn, and again for each restart; what it
        raises is a failure of the actor, not of the caller. Without ``supervision`` the first
        failure stops the actor.

        Raises:
            ConfigError: a living actor has this name.
            ActorStopped: the system was shut down.
        """
        ...

    def stop(self, ref: Ref[Any]) -> None:
        """Stop an actor after its current message; those that wait become dead letters.

        Returns at once. Its children stop first.
        """
        ...

    def stop_gracefully(self, ref: Ref[Any]) -> None:
        """Stop an actor when all that waits now has been handled; it takes no more messages."""
        ...

    def resolve(self, path: ActorPath | str) -> Ref[Any] | None:
        """Return the living actor of this path or name."""
        ...

    def shutdown(self, timeout_s: float = 10.0) -> bool:
        """Stop all actors and wait; kill those that take longer. True when all stopped.

        Raises:
            ConfigError: called by an actor, which cannot wait for its own end.
        """
        ...


class Runtime(Protocol):
    """What a cell needs of the system it lives in."""

    @property
    def system(self) -> ActorSystem:
        """The same thing as its users see it."""
        ...

    @property
    def timers(self) -> Timers:
        """Timers on the system's time."""
        ...

    @property
    def rng(self) -> "Random":
        """Randomness for back-off."""
        ...

    @property
    def stop_timeout_ms(self) -> int:
        """How long a parent waits for its children to stop before it kills them."""
        ...

    @property
    def dead_letters(self) -> PathCounter:
        """See `ActorSystem`."""
        ...

    @property
    def refused(self) -> PathCounter:
        """See `ActorSystem`."""
        ...

    @property
    def is_shutting_down(self) -> bool:
        """Whether all actors are being stopped; none is told any more of the end of another."""
        ...

    def now_ms(self) -> int:
        """Monotonic time."""
        ...

    def wall_ms(self) -> int:
        """Wall time."""
        ...

    def wait(self, reply: "Reply", timeout_s: float) -> bool:
        """Let time pass until there is an answer; False when there is none in time."""
        ...

    def spawn_cell(
        self,
        factory: Callable[[], Actor[N]],
        name: str,
        *,
        parent: "ActorCell[Any] | None",
        dispatcher: DispatcherChoice,
        supervision: RestartPolicy,
        mailbox_max: int,
    ) -> Ref[N]:
        """Make and start a cell; see `ActorSystem.spawn`."""
        ...

    def forget(self, cell: "ActorCell[Any]") -> None:
        """Free the name of a cell that has ended."""
        ...
