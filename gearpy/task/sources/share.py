"""Names partitions by number, and decides which task reads one that was found while it runs."""

from collections.abc import Collection, Iterable
from typing import Final

from gearpy.core.base.stable_hash import stable_hash

_NUMBERS: Final = 1 << 32


def numbered_partitions(count: int) -> list[str]:
    """Return the names of so many partitions. Snapshots have them: they never change."""
    return [f"{number:05d}" for number in range(count)]


def partition_number(name: str) -> int:
    """Return the number of a partition that was found, from 0 to 2**32 - 1.

    It never changes, and belongs to the task of this number modulo the parallelism. Partitions
    whose names differ in the number behind the last slash only are spread evenly.
    """
    group, _, number = name.rpartition("/")
    if not number.isdecimal():
        return stable_hash(name) % _NUMBERS
    return (stable_hash(group) + int(number)) % _NUMBERS


class Share:
    """The partitions of one task.

    Args:
        known: partitions that it has already.
    """

    def __init__(self, task_index: int, parallelism: int, known: Collection[str] = ()) -> None:
        self._task_index = task_index
        self._parallelism = parallelism
        self.known = set(known)

    def new_of(self, found: Iterable[str]) -> list[str]:
        """Return the partitions of this task that it does not have yet, by name.

        Args:
            found: the partitions of all tasks.
        """
        return sorted(
            name
            for name in found
            if name not in self.known
            and partition_number(name) % self._parallelism == self._task_index
        )
