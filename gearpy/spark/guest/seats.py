"""MasterSeats: decides who of three masters in tasks of Spark begins, and at whose place. Pure.

A master is known to the others by its address, and a task that Spark has started again has another
one. But its folder is the same: a seat is that folder, with the task that sits there now.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

#: A master is sent away from the executor of another one no more often in a row.
_MOVES_MAX: Final = 8


class Seated(NamedTuple):
    """A task of Spark that is, or will be, the master of a seat.

    Args:
        attempt: tells it from other tasks of the same seat.
        executor: of Spark, on which it is; empty if that is not known.
    """

    address: str
    attempt: str
    executor: str = ""
    task: int = 0


@dataclass(frozen=True, slots=True)
class BeginAll:
    """All begin with the logs in their folders, under new addresses; nobody else is a member."""

    seats: Mapping[int, Seated]


@dataclass(frozen=True, slots=True)
class Replace:
    """A master begins over the folder of one that is lost; it and the others are all there are."""

    number: int
    by: Seated
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndTask:
    """A task ends, and Spark starts it again: it is at a bad place, or most masters are lost.

    ``is_waiting`` says that it has not begun to be a master, and will end when it is told so.
    """

    number: int
    attempt: str
    is_waiting: bool


SeatDecision: TypeAlias = BeginAll | Replace | EndTask


class MasterSeats:
    """Knows which task has which seat; is asked again and again with the tasks that have come.

    Args:
        is_spread: whether there may be executors enough for each.
    """

    def __init__(self, numbers: range, *, is_spread: bool = True) -> None:
        self._numbers = numbers
        self._moves_max = _MOVES_MAX if is_spread else 0
        self._moves = 0
        self._seated: dict[int, Seated] = {}
        self._begun: set[str] = set()  # Attempts that are masters, or were.
        self._ended: set[str] = set()  # Attempts that were told to end.

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(self._seated[number].address for number in sorted(self._seated))

    def on_look(
        self, come: Mapping[int, Seated], leaving: AbstractSet[int] = frozenset()
    ) -> list[SeatDecision]:
        """Return the orders of this moment, where each seat has the task that came last.

        Spark takes away the executors of tasks that are ``leaving``. A `Replace`, or `BeginAll`,
        is returned again until it is known to be done.
        """
        here = {number: each for number, each in come.items() if each.attempt not in self._ended}
        waiting = {number for number, each in here.items() if each.attempt not in self._begun}
        if going := sorted(leaving & here.keys()):
            return self._end(going, here)
        if (crowded := self._crowded(here, waiting)) is not None:
            self._moves += 1
            return self._end([crowded], here)
        if waiting == set(self._numbers):
            return [BeginAll(dict(here))]
        if not self._seated:
            return []
        gone = {each for each in self._numbers if come.get(each) != self._seated[each]}
        if 2 * len(gone) > len(self._numbers):  # Nobody leads, and nobody will.
            return self._end(sorted(here.keys() - waiting), here)
        return [
            Replace(
                number,
                here[number],
                tuple(each.address for each in {**self._seated, number: here[number]}.values()),
            )
            for number in sorted(gone & here.keys())
        ]

    def on_begun(self, seats: Mapping[int, Seated]) -> None:
        self._seated, self._moves = dict(seats), 0
        self._begun |= {each.attempt for each in seats.values()}

    def on_told(self, seat: Seated) -> None:
        self._begun.add(seat.attempt)

    def on_replaced(self, number: int, by: Seated) -> None:
        self._seated[number], self._moves = by, 0

    def _crowded(self, here: Mapping[int, Seated], waiting: set[int]) -> int | None:
        """Return a seat whose task shares its executor with another one, while that can change."""
        if self._moves >= self._moves_max:
            return None
        for number in sorted(waiting, reverse=True):
            executor = here[number].executor
            if executor and any(
                each.executor == executor for other, each in here.items() if other != number
            ):
                return number
        return None

    def _end(self, numbers: Iterable[int], here: Mapping[int, Seated]) -> list[SeatDecision]:
        found = [
            EndTask(each, here[each].attempt, is_waiting=here[each].attempt not in self._begun)
            for each in numbers
        ]
        self._ended |= {each.attempt for each in found}
        return [*found]
