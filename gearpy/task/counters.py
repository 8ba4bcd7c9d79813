"""What a task counts of itself."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["TaskCounters"]


@dataclass(slots=True)
class TaskCounters:
    """What a task has handled; reported with its clock. Goes on counting after a restart."""

    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0  #: Dropped since user code raised on them.
    quarantined_records: int = 0  #: The same, and kept to be looked at.
    done: int = 0  #: A source's progress in its own units ...
    total: int = 0  #: ... out of this many; 0 when it cannot know.

    def restore(self, counted: Mapping[str, int]) -> None:
        """Go on from what was counted before; a name that is not known any more is left out."""
        for name in self.__slots__:
            setattr(self, name, counted.get(name, 0))
