"""A copy of what keys have at one moment, which is made in steps while they change."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

#: Keys, or records of keys, that are copied in one piece, which is over in some 3 ms.
PIECE: Final = 1 << 11
#: From so many keys on a copy is made in steps, between which the owner goes on.
STEPS_FROM: Final = 1 << 13


class KeyCopy:
    """Copies what keys have at one moment, in pieces; one that is to change is copied first.

    Its owner adds each key here before it changes. Where nothing is copied it adds them to a plain
    set, at the speed of that.
    """

    __slots__ = ("_copy", "_error", "_left", "fresh")

    def __init__(self, left: set[Any], copy: Callable[[list[Any]], object]) -> None:
        self.fresh: set[Any] = set()  #: The added keys; the owner goes on with them alone.
        self._left = left
        self._copy = copy
        self._error: Exception | None = None

    def add(self, key: Any) -> None:
        self.fresh.add(key)
        if key not in self._left:
            return
        self._left.remove(key)
        try:
            self._copy([key])
        except Exception as error:  # noqa: BLE001 - no record is to blame for it
            self._error = error

    def discard(self, key: Any) -> None:
        self.fresh.discard(key)

    def steps(self) -> Iterator[None]:
        left = self._left
        while left:
            self._copy([left.pop() for _ in range(min(PIECE, len(left)))])
            yield
        if self._error is not None:
            raise self._error


def in_steps(steps: Iterator[object], amount: int) -> Iterator[object] | None:
    """Return the steps of a copy of so many keys; None if they are few, and it is made at once."""
    if amount >= STEPS_FROM:
        return steps
    finish(steps)
    return None


def finish(steps: Iterable[object]) -> None:
    deque(steps, maxlen=0)
