"""What an actor is to those who write one or talk to one.

The mailbox type ``M`` of an actor is the union of the messages it understands; `Ref`, `Actor`
and `ActorContext` carry it, so that mypy checks every `tell`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
)

from gearpy.core.base.restart import RestartPolicy
from gearpy.ids import ActorPath

if TYPE_CHECKING:
    from gearpy.actor.system import ActorSystem

__all__ = [
    "MAILBOX_MAX",
    "Actor",
    "ActorContext",
    "BatchActor",
    "Cancellable",
    "Dispatcher",
    "DispatcherChoice",
    "ExitReason",
    "Exited",
    "Failed",
    "Killed",
    "Ref",
    "Runnable",
    "Stopped",
]

M = TypeVar("M")
N = TypeVar("N")
M_contra = TypeVar("M_contra", contravariant=True)

#: User messages that wait in a mailbox before `Ref.tell` raises `MailboxFull`.
MAILBOX_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Stopped:
    """It was asked to stop, and did."""


@dataclass(frozen=True, slots=True)
class Failed:
    """User code raised ``cause`` and the restart budget was spent."""

    cause: BaseException
    traceback: str

    def __str__(self) -> str:
        return f"{type(self.cause).__name__}: {self.cause}"


@dataclass(frozen=True, slots=True)
class Killed:
    """It did not stop in time, or the process or connection that held it is gone.

    Its code may still run; nothing it does is seen by others.
    """


ExitReason: TypeAlias = Stopped | Failed | Killed


@dataclass(frozen=True, slots=True)
class Exited:
    """The actor behind ``ref`` is gone for good; restarts are not exits."""

    ref: "Ref[Any]"
    reason: ExitReason


class Cancellable(Protocol):
    """Something that will happen later unless cancelled."""

    def cancel(self) -> None:
        """Make it not happen. Does nothing when called again, or too late."""
        ...


class Ref(ABC, Generic[M_contra]):
    """The address of an actor: what others hold of it.

    Stays valid over restarts. Refs are equal when their paths are. A system makes one `Ref`
    object for each actor, so ``is`` tells an actor from a later one of the same name.

    Runs on: any thread.
    """

    __slots__ = ("path",)
    path: ActorPath

    @abstractmethod
    def tell(self, message: M_contra) -> None:
        """Put a message in the actor's mailbox. To a stopped actor: into the dead letters.

        Raises:
            MailboxFull: too many messages wait there.
        """

    @abstractmethod
    def ask(self, message: M_contra, timeout_s: float) -> Any:
        """Wait for what `Actor.receive` returns for this message. For edges, not for actors.

        What `receive` raises is raised here too; an exception that is no `Exception` (such as
        `SystemExit`) arrives as `ActorStopped` with the original as its cause.

        Raises:
            ActorStopped: the actor has stopped, or stopped before it answered.
            AskTimeout: no answer in time; the question may still be handled.
            MailboxFull: too many messages wait there.
            ConfigError: the answer could never come, as the asker holds the thread it needs.
        """

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether the actor takes messages; also true while it waits for a restart."""

    @abstractmethod
    def add_watcher(self, key: object, notify: Callable[[Exited], None]) -> None:
        """Call ``notify`` once when the actor exits, at once when it has; from any thread.

        For systems and edges; actors call `ActorContext.watch`. ``notify`` must be quick.
        """

    @abstractmethod
    def remove_watcher(self, key: object) -> None:
        """Undo `add_watcher`; a notification may be under way already."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Ref({self.path})"


class Actor(ABC, Generic[M]):
    """Base of all actors: state that one thread at a time touches, driven by messages.

    Calls come one after the other, each perhaps on another thread. ``context`` is set between
    ``__init__`` and `on_start`. Whatever any of these methods raises is a failure: the actor
    is restarted or stopped as its `RestartPolicy` says, and no other actor suffers.

    Restart: a new object is made by the factory given to `spawn`; the mailbox, the `Ref` and
    the path stay, while children are stopped and timers and watches end. The message that
    failed is not repeated.
    """

    context: "ActorContext[M]"

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
        """Handle one message as a batch of one; answers None."""
        self.receive_batch([message])
        return None


class Runnable(Protocol):
    """What a shared dispatcher runs: gets a turn for each time it was scheduled."""

    def take_turn(self, messages_max: int, until_s: float) -> None:
        """Handle up to ``messages_max`` messages, none once `time.monotonic` is ``until_s``."""
        ...


class Dispatcher(Protocol):
    """Threads on which actors take turns. Gearpump: ``task-dispatcher``."""

    @property
    def threads(self) -> int:
        """How many turns can run at the same time."""
        ...

    def start(self) -> None:
        """Have the threads running; does nothing the second time."""
        ...

    def schedule(self, runnable: Runnable) -> None:
        """Queue one turn, behind all others."""
        ...


#: ``"pinned"``: a thread of its own. ``"shared"``: the system's pool. Or a pool of yours.
DispatcherChoice: TypeAlias = Literal["pinned", "shared"] | Dispatcher


class ActorContext(Protocol[M_contra]):
    """What an actor can do; belongs to one incarnation and to the actor's own turns.

    Spawning, watching and scheduling raise `ActorStopped` once the incarnation has ended.
    """

    @property
    def self_ref(self) -> Ref[M_contra]:
        """The actor's own address."""
        ...

    @property
    def system(self) -> "ActorSystem":
        """The system it lives in."""
        ...

    @property
    def parent(self) -> Ref[Any] | None:
        """Who spawned it; None for those the system spawned."""
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
        """Start a child; see `ActorSystem.spawn`. Its exit is told to `Actor.on_exited`."""
        ...

    def watch(self, ref: Ref[Any]) -> None:
        """Have `Actor.on_exited` called once when ``ref`` exits; at once when it has."""
        ...

    def unwatch(self, ref: Ref[Any]) -> None:
        """Undo `watch`: no `on_exited` follows, unless ``ref`` is a child."""
        ...

    def stop(self, ref: Ref[Any]) -> None:
        """Stop an actor of this system now; see `ActorSystem.stop`."""
        ...

    def stop_self(self) -> None:
        """Stop after the current message; those that wait become dead letters."""
        ...

    def schedule_once(self, delay_ms: int, message: M_contra) -> Cancellable:
        """Receive ``message`` once, ahead of what waits then. Ends with the incarnation."""
        ...

    def schedule(self, interval_ms: int, message: M_contra) -> Cancellable:
        """Receive ``message`` each interval, first after one. Ends with the incarnation.

        A tick is skipped while the one before it still waits to be received.
        """
        ...

    def schedule_self(self, message: M_contra) -> None:
        """Put a message at the back of the own mailbox, even when that is full."""
        ...

    def yield_turn(self) -> None:
        """End this turn after the current call; waiting messages come in the next turn.

        With `schedule_self`: go on with long work after the neighbours had their turns.
        """
        ...

    def now_ms(self) -> int:
        """Monotonic time; for measuring and deadlines."""
        ...

    def wall_ms(self) -> int:
        """Wall time in ms since the epoch; for showing and storing."""
        ...
