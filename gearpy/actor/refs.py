"""The address of an actor, and how an actor can end."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from gearpy.ids import ActorPath

M_contra = TypeVar("M_contra", contravariant=True)


class Stopped(Struct, frozen=True):
    """The actor was asked to stop, and did."""


class Failed(Struct, frozen=True):
    """User code raised ``cause``."""

    cause: BaseException
    traceback: str

    def __str__(self) -> str:
        return f"{type(self.cause).__name__}: {self.cause}"


class Killed(Struct, frozen=True):
    """The actor did not stop in time, or its process or connection is gone.

    Its code may still run; nothing it does is seen by others.
    """


ExitReason: TypeAlias = Stopped | Failed | Killed


class Exited(Struct, frozen=True):
    """The actor behind ``ref`` is gone for good."""

    ref: "Ref[Any]"
    reason: ExitReason


class Ref(ABC, Generic[M_contra]):
    """The address of an actor: others hold this, not the actor itself.

    Refs are equal when their paths are. A system makes one `Ref`
    object for each actor, so ``is`` tells an actor from a later one of the same name.

    Runs on: any thread.
    """

    __slots__ = ("path",)
    path: ActorPath

    @abstractmethod
    def tell(self, message: M_contra) -> None:
        """Put a message in the actor's mailbox. To a stopped actor: into the dead letters."""

    @abstractmethod
    def ask(self, message: M_contra, timeout_s: float) -> Any:
        """Wait for the answer: the result of `Actor.receive`. For edges, not for actors.

        An exception of `receive` is raised here too; one that is no `Exception` (such as
        `SystemExit`) arrives as `ActorStopped` with the original as its cause.

        Raises:
            AskTimeout: no answer in time; the question may still be handled.
        """

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether the actor takes messages."""

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
