"""Epochs of the links into one task, brought into line.

Every data message belongs to a numbered epoch; on a link the number never falls. What a task is
at the end of an epoch can be told apart from what follows only if no record of the next epoch
is processed before: a link that is ahead waits for the others. Gearpump cuts by event time, its
`CheckpointManager`; here the cut is where the sources were when they were asked.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from gearpy.errors import MessageLost
from gearpy.ids import TaskId

M = TypeVar("M")


class EpochEnd(Struct, frozen=True):
    """Marks the place behind the last message of an epoch."""

    epoch: int


class LinkAlignment(Generic[M]):
    """Passes messages on epoch by epoch; holds back messages of links that are ahead.

    A link has ended an epoch with its first data message of a later one; what comes behind it waits
    until every link has. Unless it ``is_holding_back``, all is passed on at once, and an `EpochEnd`
    only says that nothing of the epoch will follow; `hold_back` then lets links wait that are
    ahead.

    Invariant: each link keeps its order; before ``EpochEnd(n)`` comes no message of an epoch after
    ``n``, and behind it none up to ``n``; it comes as soon as all links have ended the epoch.
    """

    def __init__(
        self, links: Iterable[TaskId], epoch: int, *, is_holding_back: bool = True
    ) -> None:
        self._is_holding_back = is_holding_back
        self._is_enough = False  # Links that are ahead wait, though they need not.
        self.epoch = epoch  #: Messages that are passed on now belong to it.
        self.newest = dict.fromkeys(links, epoch)  #: Of the data of each link.
        #: Links that have ended the epoch; the first message of each has a number.
        self._held: dict[TaskId, deque[tuple[int | None, M]]] = {}

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def passes(self, link: TaskId, epoch: int | None) -> bool:
        is_of_now = epoch is None or epoch == self.epoch
        return is_of_now and self.newest.get(link) == self.epoch and link not in self._held

    def take(self, link: TaskId, message: M, epoch: int | None) -> Sequence[M | EpochEnd]:
        """Take a message; return the messages to process now, in this order.

        Messages without an ``epoch`` only keep their order. Raises `MessageLost` where the link was
        at a later epoch before.
        """
        newest = self.newest.get(link)
        if newest is None:
            return (message,)
        if epoch is not None:
            if epoch < newest:
                raise MessageLost(f"from task {link}: epoch {epoch} came after epoch {newest}")
            self.newest[link] = epoch
        if not self._is_holding_back:
            is_ahead = self._is_enough and epoch is not None and epoch > self.epoch
            is_held = is_ahead or link in self._held
            if is_held:
                self._held.setdefault(link, deque()).append((epoch, message))
            if min(self.newest.values()) == self.epoch:
                return () if is_held else (message,)
            return [*self._let_go(), *(() if is_held else (message,))]
        held = self._held.get(link)
        if held is not None:
            held.append((epoch, message))
            return ()
        if epoch is None or epoch == self.epoch:
            return (message,)
        self._held[link] = deque([(epoch, message)])
        passed: list[M | EpochEnd] = []
        while len(self._held) == len(self.newest):
            # A link may skip an epoch whose end it was never asked for.
            self.epoch = min(_first_epoch(held) for held in self._held.values())
            passed.append(EpochEnd(self.epoch - 1))
            for each in list(self._held):
                self._release(each, passed)
        return passed

    def hold_back(self) -> None:
        self._is_enough = True

    def _let_go(self) -> Iterator[M | EpochEnd]:
        held, self._held, self._is_enough = self._held, {}, False
        first = {link: _first_epoch(those) for link, those in held.items()}
        self.epoch = min((self.newest | first).values())
        yield EpochEnd(self.epoch - 1)
        yield from (message for those in held.values() for _, message in those)
        if (reached := min(self.newest.values())) > self.epoch:
            self.epoch = reached
            yield EpochEnd(reached - 1)

    def _release(self, link: TaskId, passed: list[M | EpochEnd]) -> None:
        held = self._held[link]
        while held and held[0][0] in {None, self.epoch}:
            passed.append(held.popleft()[1])
        if not held:
            del self._held[link]


def _first_epoch(held: "deque[tuple[int | None, M]]") -> int:
    epoch = held[0][0]
    assert epoch is not None, "a link ends an epoch with a data message"
    return epoch
