"""Work in steps: what is too much for the end of an epoch is copied while the task goes on."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

#: The cost of a step: a key that is copied costs 1. It is over in some 6 ms.
STEP: Final = 1 << 17


class Copies:
    """Copies of a task's state that are made in steps.

    Each is an iterator of the costs of small pieces of work. Behind it comes another one, for what
    its owner has to do when it is whole.
    """

    def __init__(self) -> None:
        self._copying: list[Iterator[int]] = []
        self._merging: list[Iterator[int]] = []

    def add(self, copying: Iterator[int], merging: Iterator[int]) -> None:
        self._copying.append(copying)
        self._merging.append(merging)

    def steps(self) -> Iterator[bool] | None:
        """Return the steps of all copies that have begun; None if there are none.

        Each tells whether a copy is not whole yet.
        """
        if not self._copying:
            return None
        copying, self._copying = self._copying, []
        merging, self._merging = self._merging, []
        return _steps(chain.from_iterable(copying), chain.from_iterable(merging))

    def finish(self) -> None:
        for _ in self.steps() or ():
            pass


def _steps(copying: Iterator[int], merging: Iterator[int]) -> Iterator[bool]:
    for work, is_copying in ((copying, True), (merging, False)):
        done = 0
        for cost in work:
            done += cost
            if done >= STEP:
                yield is_copying
                done = 0
