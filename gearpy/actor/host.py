"""What an actor system provides for one cell, and what `spawn` was given to make it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from gearpy.actor.api import Actor
from gearpy.core.base.restart import RestartPolicy

__all__ = ["Blueprint", "Host"]

M = TypeVar("M")


class Host(Protocol):
    """Runs the turns of one cell, through a runner for each incarnation."""

    @property
    def lane(self) -> object | None:
        """The single thread that the cell shares with others; None when there is none."""
        ...

    def start(self) -> None:
        """Make the runner of the next incarnation, retire the last one, give a turn.

        When it raises, the last runner is still in place.
        """
        ...

    def give_turn(self) -> None:
        """Have `ActorCell.take_turn` called once. Runs on any thread."""
        ...

    def retire(self) -> None:
        """End the runner; the cell needs no more turns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint(Generic[M]):
    """What `spawn` was given: how to make and treat the actor."""

    factory: Callable[[], Actor[M]]
    supervision: RestartPolicy
    mailbox_max: int
