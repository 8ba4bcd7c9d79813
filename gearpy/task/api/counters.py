"""The counts of a task."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from gearpy.ids import MIN_MS


@dataclass(slots=True)
class TaskCounters:
    """Counters of a task's records; reported with its clock. They go on after a restart."""

    records_in: int = 0
    records_out: int = 0
    late_records: int = 0
    skipped_records: int = 0  #: Dropped since user code raised on them.
    quarantined_records: int = 0  #: The same, and kept to be looked at.
    done: int = 0  #: A source's progress in its own units ...
    total: int = 0  #: ... out of this many; 0 when it cannot know.
    newest_ms: int = MIN_MS  #: Newest event time that a source has read ...
    span_ms: int = 0  #: ... and how far that was ahead of its promise at most.
    held_records: int = 0  #: So many records that a source has read wait behind a cut.

    def counted(self) -> dict[str, int]:
        """Return the counts by name, for `restore`."""
        return {name: getattr(self, name) for name in self.__slots__}

    def restore(self, counted: Mapping[str, int]) -> None:
        """Go on from earlier counts; a name that is not known any more is left out."""
        for field in fields(self):
            setattr(self, field.name, counted.get(field.name, field.default))
